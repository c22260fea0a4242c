"""The XLA backend as the worker sees it, on JAX's CPU."""

import json
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from backends.cpu import CpuBackend
from backends.jax.kernel import XlaKernel
from backends.jax.slope import LoopTurns, QueueTurns, SlopeSampler
from backends.jax.target import Target
from backends.xla import XlaBackend
from suite.backend import DeviceInfo
from suite.case import Case, Regime
from suite.errors import DeviceNotFound, UsageError
from suite.measure.spine import Order, Trial
from suite.outcome import Evidence, Outcome
from suite.settings import MeasureSettings
from tests.backends.cases import CALL, COLD, WARM, calibration_case, fresh_verdict, gemm_case, tolerance_of
from tests.fake.turns import ScriptedTurns

ON_CPU = ("fp64", "fp32", "bf16", "fp16", "int8", "fp8_e4m3")


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


def on_xla(format_name: str, m: int, n: int, k: int, **given: Any) -> Case:
    return gemm_case(format_name, m, n, k, backend="xla", **given)


def prepared(backend: XlaBackend, case: Case, sets: int = 1) -> XlaKernel:
    assert backend.supports(case) is None
    kernel = backend.prepare(case, sets, seed=3)
    assert isinstance(kernel, XlaKernel)
    return kernel


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "fp8_e5m2", "w8a16"])
def test_a_format_of_the_ladder_that_xla_has_not_is_no_misspelling_of_one_it_has(backend: XlaBackend, name: str) -> None:
    told = backend.supports(on_xla(name, 32, 32, 32))
    only = "bf16, fp16, int8, fp8_e4m3; take one of those, or a backend of torch"
    assert told == f"gemm through XLA has no format {name}, only fp64, fp32, tf32, {only}"


@pytest.mark.parametrize(
    ("switches", "name"), [({"fp16_accumulation": True}, "fp16_accumulation"), ({"tunable_op": True}, "tunable_op")]
)
def test_a_switch_of_torchs_is_no_misspelling_of_one_of_xlas(backend: XlaBackend, switches: dict[str, Any], name: str) -> None:
    told = backend.supports(on_xla("fp16", 32, 32, 32, switches=switches))
    assert told is not None
    assert told.startswith(f"gemm through XLA has no switch {name}, only tf32, ")
    assert "did you mean" not in told


class TestDevice:
    def test_a_cpu_is_the_same_chip_as_the_cpu_backends(self, backend: XlaBackend) -> None:
        (info,) = backend.devices()
        (other,) = CpuBackend().devices()
        assert (info.name, info.uid, info.llc_bytes, info.cold_by) == (other.name, other.uid, other.llc_bytes, "flush")
        assert DeviceInfo.from_json(json.loads(json.dumps(info.to_json()))) == info
        assert backend.evidence is Evidence.MEASURED

    def test_there_is_one(self) -> None:
        with pytest.raises(DeviceNotFound, match="no device 7"):
            XlaBackend({"platform": "cpu"}).select(7)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"platform": "gpu"}, "none of auto, cpu"),
            ({"plattform": "cpu"}, "did you mean 'platform'"),
            ({"flush_factor": 1.0}, "at least 2"),
        ],
    )
    def test_options_are_checked(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            XlaBackend(options)

    def test_a_platform_that_is_not_there_is_told_in_jaxs_words(self) -> None:
        with pytest.raises(DeviceNotFound, match="no device for platform tpu"):
            XlaBackend({"platform": "tpu"}).devices()

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            ("--no_such_flag=1", "Unknown flag in XLA_FLAGS: --no_such_flag=1"),
            ("--xla_cpu_enable_fast_math=maybe", "Couldn't interpret value maybe for flag xla_cpu_enable_fast_math"),
        ],
    )
    def test_flags_that_xla_does_not_take_are_refused_in_its_words(
        self, monkeypatch: pytest.MonkeyPatch, value: str, said: str
    ) -> None:
        monkeypatch.setenv("XLA_FLAGS", value)
        with pytest.raises(UsageError) as refused:
            XlaBackend({"platform": "cpu"}).devices()
        assert not isinstance(refused.value, DeviceNotFound)  # another device would do no better
        assert str(refused.value) == f"XLA does not take XLA_FLAGS={value}: {said}; correct it, or unset XLA_FLAGS"

    @pytest.mark.parametrize("name", ["JAX_PLATFORMS", "JAX_PLATFORM_NAME"])
    def test_a_platform_that_is_not_there_names_the_variable_that_narrows_it(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setenv(name, "cpu")
        with pytest.raises(DeviceNotFound, match=rf"platform tpu under {name}=cpu: .*; unset {name}, or install JAX for tpu$"):
            XlaBackend({"platform": "tpu"}).devices()

    def test_versions_and_flags_are_recorded(self, backend: XlaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
        facts = backend.environment()
        assert facts["jax"].value
        assert facts["xla_flags"].value == "--xla_cpu_enable_fast_math=false"
        assert facts["jax_compilation_cache"].value in ("on", "off")
        for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS"):
            monkeypatch.delenv(name, raising=False)
        without = backend.environment()
        assert (without["xla_flags"].value, without["libtpu_init_args"].value) == ("not set", "not set")
        assert all(fact.value is not None or fact.reason for fact in facts.values())

    def test_every_variable_that_changes_a_program_is_recorded_where_it_is_set(
        self, backend: XlaBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JAX_EXEC_TIME_OPTIMIZATION_EFFORT", "0.5")
        assert backend.environment()["jax_exec_time_optimization_effort"].value == "0.5"

    def test_memory_and_telemetry_are_the_hosts(self, backend: XlaBackend) -> None:
        assert 0 < backend.memory_free() <= backend.devices()[0].memory_bytes
        assert backend.peak_memory_bytes() is None
        telemetry = backend.telemetry()
        telemetry.start()
        assert all(channel.values or channel.unavailable for channel in telemetry.stop().values())


class TestGemm:
    @pytest.mark.parametrize(
        ("layout", "format_name"),
        [
            *(("nt", name) for name in ON_CPU),
            # Of the other layout by default a float, which all of them are transposed like, and int8.
            *(pytest.param("tn", name, marks=() if name in ("fp32", "int8") else pytest.mark.thorough) for name in ON_CPU),
        ],
    )
    def test_every_format_is_right(self, backend: XlaBackend, format_name: str, layout: str) -> None:
        case = on_xla(format_name, 48, 40, 96, layout=layout)
        kernel = prepared(backend, case, sets=2)
        assert fresh_verdict(kernel, case, seed=5).passed
        described = json.loads(json.dumps(dict(kernel.describe())))
        assert described["compile_s"] > 0
        # What XLA does with int8 depends on layout and version.
        known = {"fp64": "native", "fp32": "native", "fp8_e4m3": "emulated"}
        assert kernel.execution == known.get(format_name, kernel.execution)
        assert bool(described["emulation"]) == (kernel.execution == "emulated")
        # By the roof of the unit that really multiplied, as on the other backend of a CPU.
        assert described.get("executed_pipe") == ("fp32" if described["emulation"] == "XLA multiplies f32" else None)

    @pytest.mark.parametrize("distribution", ["normal", "uniform", "integer", "zeros", "constant", "outliers"])
    def test_every_distribution_is_right(self, backend: XlaBackend, distribution: str) -> None:
        case = on_xla("fp8_e4m3", 32, 32, 64, distribution=distribution)
        assert fresh_verdict(prepared(backend, case), case, seed=7).passed

    def test_numbers_depend_on_seed_set_and_operand_only(self, backend: XlaBackend) -> None:
        case = on_xla("fp32", 16, 16, 16)
        one, two = prepared(backend, case, sets=2), prepared(backend, case, sets=2)
        for first, second in zip(one.inputs, two.inputs, strict=True):
            assert all(np.array_equal(a.data, b.data) for a, b in zip(first, second, strict=True))
        matrices = [np.asarray(operand.data) for each in one.inputs for operand in each]
        assert not any(np.array_equal(a, b) for i, a in enumerate(matrices) for b in matrices[:i])
        one.refill(99)
        assert not np.array_equal(one.inputs[0][0].data, two.inputs[0][0].data)

    def test_fp32_is_not_computed_in_less(self, backend: XlaBackend) -> None:
        case = on_xla("fp32", 64, 64, 1024)
        result = fresh_verdict(prepared(backend, case), case, seed=11)
        assert result.error_rel is not None
        assert result.error_rel < 1e-5

    @pytest.mark.parametrize(
        ("case", "words"),
        [
            (on_xla("tf32", 8, 8, 8), "tf32 is a mode of NVIDIA tensor cores"),
            (on_xla("fp32", 8, 8, 8, layout="xx"), "no layout 'xx'"),
            (on_xla("fp32", 8, 8, 8, distribution="nrmal"), "did you mean 'normal'"),
            (on_xla("fp8_e4m3", 8, 8, 8, semantics={"scaling": "row"}), "row scales is not offered"),
            (on_xla("int8", 8, 8, 8, semantics={"scaling": "tensor"}), "only raw integers"),
            (on_xla("mxfp44", 8, 8, 32), "no format 'mxfp44'"),
            (on_xla("fp32", 8, 8, 8, switches={"split": True}), "no switch 'split'"),
        ],
    )
    def test_what_is_not_there_is_told(self, backend: XlaBackend, case: Case, words: str) -> None:
        assert words in (backend.supports(case) or "")

    @pytest.mark.parametrize(
        ("target", "format_name", "words"),
        [
            (Target("tpu"), "fp64", "no fp64"),
            (Target("cuda", (7, 5)), "tf32", "compute capability 8.0"),
            (Target("cuda", (9, 0)), "tf32", None),
            (Target("cpu"), "fp64", None),
        ],
    )
    def test_formats_that_a_platform_lacks(self, target: Target, format_name: str, words: str | None) -> None:
        told = target.missing(format_name)
        assert told is None if words is None else words in (told or "")


class TestCalibration:
    @pytest.mark.parametrize("operation", ["read", "copy", "triad", "empty"])
    def test_it_does_what_it_says(self, backend: XlaBackend, operation: str) -> None:
        case = calibration_case(operation, 0 if operation == "empty" else 3 << 16, backend="xla")
        assert fresh_verdict(prepared(backend, case), case, seed=2).passed

    def test_unknown_operations_are_told(self, backend: XlaBackend) -> None:
        assert "did you mean 'triad'" in (backend.supports(calibration_case("trad", 1 << 16, backend="xla")) or "")


def wrong_transpose(kernel: XlaKernel) -> None:
    a, b = (np.asarray(each.data) for each in kernel.inputs[0])
    kernel.outputs[0] = jnp.asarray(a @ b.reshape(b.shape[1], b.shape[0]), kernel.outputs[0].dtype)


def unwritten_tile(kernel: XlaKernel) -> None:
    poisoned = np.asarray(kernel.outputs[0])[-8:, -8:].copy()
    kernel.enqueue(0)
    kernel.outputs[0] = kernel.outputs[0].at[-8:, -8:].set(poisoned)


def wrong_scale(kernel: XlaKernel) -> None:
    kernel.enqueue(0)
    kernel.outputs[0] = kernel.outputs[0] * 1.1


def truncated_k(kernel: XlaKernel) -> None:
    a, b = (np.asarray(each.data) for each in kernel.inputs[0])
    kernel.outputs[0] = jnp.asarray(a[:, :-16] @ b[:, :-16].T, kernel.outputs[0].dtype)


def not_a_number(kernel: XlaKernel) -> None:
    kernel.enqueue(0)
    kernel.outputs[0] = kernel.outputs[0].at[3, 5].set(jnp.nan)


class TestPlantedBugs:
    @pytest.mark.parametrize("bug", [wrong_transpose, unwritten_tile, wrong_scale, truncated_k, not_a_number])
    def test_each_is_incorrect(self, backend: XlaBackend, bug: Callable[[XlaKernel], None]) -> None:
        case = on_xla("fp32", 96, 96, 96)
        kernel = prepared(backend, case)
        assert not fresh_verdict(kernel, case, 4, lambda: bug(kernel)).passed
        assert fresh_verdict(kernel, case, 5).passed

    def test_a_stale_output_is_incorrect(self, backend: XlaBackend) -> None:
        case = on_xla("fp32", 96, 96, 96)
        kernel = prepared(backend, case)
        kernel.enqueue(0)
        stale = np.asarray(kernel.outputs[0]).copy()

        def keep() -> None:
            kernel.outputs[0] = jnp.asarray(stale)

        assert not fresh_verdict(kernel, case, 6, keep).passed


class TestTiming:
    @pytest.mark.parametrize("regime", [COLD, WARM, CALL], ids=lambda regime: regime.label)
    def test_the_measuring_spine_takes_it(self, backend: XlaBackend, regime: Regime) -> None:
        case = on_xla("fp32", 32, 32, 32, regime=regime)
        settings = MeasureSettings(min_time_s=0.01, max_time_s=0.2, steady_timeout_s=0.05, steady_window_s=0.02)
        trial = Trial(backend, case, Order(1, tolerance_of(case), 5, 1), settings, lambda phase: None)
        assert trial.prepare() is None
        trial.measure(0)
        measurement = trial.finish()
        trial.close()
        assert measurement.outcome is Outcome.OK, measurement.reason
        assert measurement.samples is not None
        assert measurement.samples.method == "host"
        assert (measurement.samples.details["flush_bytes"] > 0) == (regime is COLD)
        assert json.dumps(measurement.to_json())

    @pytest.mark.parametrize("turns", [LoopTurns, lambda kernel: QueueTurns(kernel, "tried")], ids=["loop", "queue"])
    def test_a_slope_leaves_right_outputs_and_counts_its_launches(
        self, backend: XlaBackend, turns: Callable[[XlaKernel], Any]
    ) -> None:
        case = on_xla("fp32", 64, 64, 64)
        kernel = prepared(backend, case, sets=2)
        sampler = SlopeSampler(turns(kernel), kernel.sets, 1e-4, 1e-7)
        assert sampler.launches == 2 * sampler.details["turns"]
        assert len(sampler.sample(3)) == 3
        assert json.dumps(dict(sampler.details))
        assert fresh_verdict(kernel, case, 8, sampler.replay).passed

    def test_the_loop_is_tied_and_holds_one_product_a_set(self, backend: XlaBackend) -> None:
        kernel = prepared(backend, on_xla("fp32", 64, 64, 64), sets=2)
        sampler = SlopeSampler(LoopTurns(kernel), kernel.sets, 1e-4, 1e-7)
        assert sampler.method == "loop"
        assert sampler.details["tie"] in ("barrier", "first", "all")
        assert sampler.details["products_in_a_turn"] == 2


class TestSlope:
    def test_what_a_program_costs_beside_its_turns_is_in_no_sample(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sampler = SlopeSampler(ScriptedTurns(monkeypatch), 1, 1e-4, 1e-7)
        turns = sampler.details["turns"]
        assert turns * 1_000 >= 250_000  # half of ten times the 50 us, not the 100 us of a sample
        assert list(sampler.sample(2)) == [turns * 1_000] * 2

    @pytest.mark.parametrize("noise_ns", [0, 5_000])
    def test_a_sample_lasts_about_as_long_as_asked_whatever_the_first_turns_read(
        self, monkeypatch: pytest.MonkeyPatch, noise_ns: int
    ) -> None:
        """Two turns of 200 ns are nothing beside 5 us of noise: counts grow until their work stands out."""
        sampler = SlopeSampler(ScriptedTurns(monkeypatch, turn_ns=200, noise_ns=noise_ns), 1, 2e-3, 1e-7)
        assert 1e6 <= sampler.details["turns"] * 200 <= 16e6

    def test_a_long_launch_is_taken_twice_a_sample_and_no_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        turns = ScriptedTurns(monkeypatch, turn_ns=50_000_000)
        sampler = SlopeSampler(turns, 1, 2e-3, 1e-7)
        assert sampler.details["turns"] == 2
        assert len(turns.ran) <= 8

    def test_a_pair_that_was_disturbed_is_taken_again_and_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        turns = ScriptedTurns(monkeypatch)
        sampler = SlopeSampler(turns, 1, 1e-4, 1e-7)
        turns.disturbed = sampler.details["turns"]
        assert list(sampler.sample(1)) == [sampler.details["turns"] * 1_000]
        assert sampler.details["pairs_taken_again"] == 1

    def test_a_loop_never_has_one_turn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        turns = ScriptedTurns(monkeypatch)
        SlopeSampler(turns, 1, 1e-9, 1e-7)
        assert min(turns.ran) == 2

    def test_a_replay_takes_both_lengths(self, monkeypatch: pytest.MonkeyPatch) -> None:
        turns = ScriptedTurns(monkeypatch)
        sampler = SlopeSampler(turns, 1, 1e-4, 1e-7)
        turns.ran.clear()
        sampler.replay()
        assert turns.ran == [sampler.details["turns"], 2 * sampler.details["turns"]]


class TestOnADeviceBeside:
    """What the backend chooses where launches are asynchronous and nothing can be flushed."""

    @pytest.fixture
    def beside(self) -> XlaBackend:
        made = XlaBackend({"platform": "cpu"})
        made.select(0)
        made._target = Target("cuda", (9, 0))
        return made

    def test_short_launches_come_several_to_a_turn(self, beside: XlaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("backends.jax.slope.launch_s", lambda kernel: 1e-5)  # on a busy host it takes as long as it takes
        kernel = prepared(beside, on_xla("fp32", 16, 16, 16, regime=WARM))
        sampler = beside.sampler(kernel, on_xla("fp32", 16, 16, 16, regime=WARM), 1e-3)
        assert sampler.method == "loop"
        assert sampler.details["rotations_in_a_turn"] > 1
        assert sampler.details["products_in_a_turn"] == sampler.details["rotations_in_a_turn"]
        assert sampler.launches == sampler.details["rotations_in_a_turn"] * sampler.details["turns"]
        assert fresh_verdict(kernel, on_xla("fp32", 16, 16, 16), 8, sampler.replay).passed

    def test_calls_that_cost_the_host_more_than_the_device_are_no_time_on_the_device(
        self, beside: XlaBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("backends.xla.SETS_IN_A_LOOP", 0)
        monkeypatch.setattr(QueueTurns, "host_share", lambda turns, count: 0.95)
        case = on_xla("fp32", 16, 16, 16, regime=WARM)
        with pytest.raises(NotImplementedError, match="handed over in 95%"):
            beside.sampler(prepared(beside, case), case, 1e-4)

    def test_the_share_of_the_host_is_what_handing_over_takes(self, beside: XlaBackend) -> None:
        turns = QueueTurns(prepared(beside, on_xla("fp32", 256, 256, 256)), "tried")
        assert 0 < turns.host_share(4) <= 1


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (AssertionError(), "none is left"),
        (RuntimeError("Unknown backend rocm. Available backends are ['cpu']"), "Unknown backend rocm"),
        (RuntimeError("Unable to initialize backend 'tpu': UNKNOWN: libtpu.so: cannot open"), "libtpu.so: cannot open"),
    ],
)
def test_a_platform_without_a_device_is_refused_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, told: str
) -> None:
    def local_devices(backend: str | None) -> list[Any]:
        raise raised

    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setattr("jax.local_devices", local_devices)
    with pytest.raises(DeviceNotFound) as refused:
        XlaBackend({}).devices()
    assert str(refused.value) == (
        f"JAX finds no device for platform auto under JAX_PLATFORMS=cuda: {told}; unset JAX_PLATFORMS, or install JAX for cuda"
    )
