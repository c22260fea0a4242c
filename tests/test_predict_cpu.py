"""The predicted time of a case on a CPU follows what decides it: the target, the time allowed, the size, the format."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from suite.backend import DeviceInfo
from suite.case import Workload
from suite.hardware.cpu import derive
from suite.jobs.decode_step import DecodeStepJob, DecodeStepSettings
from suite.plan import plan
from suite.planned import DeviceSlot
from suite.predict_cpu import LAUNCHES_BESIDE, PREPARE_S, PREPARE_S_PER_BYTE, Sampling, case_s, checking_s, launch_s
from suite.roofline import Ceilings
from suite.settings import MeasureSettings, RunConfig
from suite.work import Work

ZEN4 = DeviceInfo(
    "cpu", 0, "Two cores", "c", 24 * 2**30, architecture="x86_64", visible_units=2, max_clock_hz=2.6e9, llc_bytes=32 * 2**20,
    isa=("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni"), cold_by="flush",
)  # fmt: skip
LIMITS = Ceilings(ZEN4, derive(ZEN4))
FAST = MeasureSettings(target=0.01, max_time_s=1.0, steady_timeout_s=3.0)
ALONE = Sampling(rounds=1, least_s=0.1, flush_s=0.0)


def of(measure: MeasureSettings, launch_s: float = 0.01, operand_bytes: int = 2**24, sampling: Sampling = ALONE) -> float:
    return case_s(launch_s, PREPARE_S_PER_BYTE * operand_bytes, measure, sampling)


def test_a_narrower_target_takes_longer_up_to_the_time_allowed() -> None:
    patient = replace(FAST, max_time_s=60.0)
    times = [of(replace(patient, target=target)) for target in (0.1, 0.02, 0.01, 0.002)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(times[0] + 60.0, rel=0.05)
    assert of(replace(FAST, target=0.0001)) == of(replace(FAST, target=0.002))


def test_settling_is_at_least_what_it_was_seen_to_take_and_ends_with_its_timeout() -> None:
    unhurried = of(FAST)
    assert unhurried - of(replace(FAST, steady_window_s=0.25)) == pytest.approx(3.3 * 1.06 * 0.25)
    assert of(replace(FAST, steady_timeout_s=0.0)) == pytest.approx(unhurried - 2.3 * 1.06 * 0.5)


def test_a_launch_that_outlasts_windows_and_samples_sets_the_time() -> None:
    """At least one in each window, one sampled, and those around it."""
    assert of(FAST, launch_s=10.0) > 7 * 10.0
    assert of(FAST, launch_s=10.0) < 12 * 10.0


def test_large_operands_take_time_to_fill_and_check() -> None:
    assert of(FAST, operand_bytes=10**9) - of(FAST, operand_bytes=0) == pytest.approx(4.0)
    assert checking_s(Workload("gemm", "bf16", ()), Work(1, 10**9, "bf16")) == pytest.approx(4.0)


def test_each_alternating_round_settles_briefly_and_is_sampled_for_the_least_time() -> None:
    ten = of(FAST, sampling=Sampling(rounds=10, least_s=0.5, flush_s=0.0))
    assert ten - of(FAST, sampling=Sampling(rounds=2, least_s=0.5, flush_s=0.0)) == pytest.approx(8 * (0.5 + 1.06 * 0.25))


@pytest.mark.parametrize(
    ("pipe", "times"), [("fp32", 2.0), ("fp64", 2.0), ("bf16", 2.0), ("int8", 5.0), ("fp16", 17.0), ("fp8", 7.0), ("fp4", 7.0)]
)
def test_a_format_that_is_converted_is_further_from_its_floor(pipe: str, times: float) -> None:
    assert launch_s(1.0, Work(1, 1, pipe), LIMITS) == times


def test_a_format_with_instructions_of_its_own_is_not_converted() -> None:
    native = replace(ZEN4, isa=(*ZEN4.isa, "avx512_fp16"))
    assert launch_s(1.0, Work(1, 1, "fp16"), Ceilings(native, derive(native))) == 2.0


def test_what_has_no_floor_takes_no_time_of_its_own() -> None:
    assert launch_s(None, Work(0, 2**28, None), LIMITS) == 0.0


class Step(NamedTuple):
    """A decode step with a vocabulary of 32,000, and its median time with what compiling, filling and checking took."""

    part: str
    format: str
    hidden_size: int
    layers: int
    batch: int
    kv_len: int
    p50_s: float
    taken_s: float

    @property
    def settings(self) -> DecodeStepSettings:
        return DecodeStepSettings(
            parts=[self.part], formats=[self.format], batches=[self.batch], kv_lens=[self.kv_len], layers=self.layers,
            hidden_sizes=self.hidden_size, intermediate_sizes=8192 if self.hidden_size == 2048 else 14336, vocabularies=32000,
            implementations=["library"],
        )  # fmt: skip


# Measured alone on the machine of ``suite.predict_cpu``; most of it was the check, which was planned as a fifth of that.
STEPS = (
    Step("weights", "bf16", 2048, 1, 1, 512, 0.0133, 4.81),
    Step("weights", "fp32", 2048, 1, 1, 512, 0.0236, 5.99),
    Step("weights", "fp8_e4m3", 2048, 1, 1, 512, 0.380, 9.75),
    Step("weights", "w4a16", 2048, 1, 1, 512, 0.0096, 9.81),
    Step("weights", "bf16", 4096, 1, 4, 512, 0.131, 11.9),
    Step("weights", "w8a16", 4096, 1, 1, 512, 0.0167, 11.9),
    Step("weights", "fp8_e4m3", 4096, 1, 1, 512, 0.969, 19.8),
    Step("step", "fp16", 2048, 1, 1, 512, 0.0150, 6.37),
    Step("step", "bf16", 2048, 1, 16, 4096, 0.490, 12.4),
    Step("step", "bf16", 4096, 2, 1, 512, 0.0607, 21.3),
)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.part}-{step.format}-{step.hidden_size}")
def test_what_a_decode_step_s_check_took_is_predicted_to_about_half_as_much_again(step: Step) -> None:
    job = DecodeStepJob()
    (workload,) = job.workloads(step.settings)
    predicted_s = PREPARE_S + checking_s(workload, job.work(workload)) + LAUNCHES_BESIDE * step.p50_s
    assert step.taken_s / 1.5 < predicted_s < step.taken_s * 1.5


def test_a_plan_of_a_decode_step_follows_its_weights_and_its_context() -> None:
    def planned_s(**changed: int) -> float:
        settings = STEPS[-1]._replace(**changed).settings
        cases = plan(RunConfig(jobs={"decode_step": settings}), [DeviceSlot(0, "cpu", "backends.cpu:CpuBackend", ZEN4)], {0})
        return cases[0].predicted_s

    assert planned_s() == pytest.approx(24.0, rel=0.5)  # what it took, settling and sampling included
    more_s = [planned_s(), planned_s(layers=4), planned_s(layers=8)]
    assert more_s[2] - more_s[1] == pytest.approx(2 * (more_s[1] - more_s[0]), rel=0.1)
    assert planned_s(kv_len=65536) > planned_s() + 5.0
