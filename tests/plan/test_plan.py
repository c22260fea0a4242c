"""Plans for an H200 and for a CPU: what is measured, in which regime, and what is refused before anything runs."""

import subprocess
import sys
from dataclasses import replace

import pytest

from suite import predict_xla
from suite.backend import DeviceInfo
from suite.errors import UsageError
from suite.jobs.gemm import GemmJob, GemmSettings
from suite.outcome import Outcome
from suite.plan import data_seed, left_out, parse_regime, plan
from suite.planned import DeviceSlot
from suite.settings import MeasureSettings, RunConfig

H200 = DeviceInfo(
    "cuda", 0, "NVIDIA H200", "f" * 16, 150_754_820_096, architecture="sm_90", visible_units=132, max_clock_hz=1980e6,
    llc_bytes=60 * 2**20, power_limit_w=700.0,
)  # fmt: skip
RTX_4090 = DeviceInfo(
    "cuda", 0, "NVIDIA GeForce RTX 4090", "e" * 16, 25_386_352_640, architecture="sm_89", visible_units=128,
    max_clock_hz=2520e6, llc_bytes=72 * 2**20,
)  # fmt: skip
CPU = DeviceInfo(
    "cpu", 0, "Some CPU", "c" * 16, 24 * 2**30, architecture="x86_64", visible_units=2, max_clock_hz=2.6e9,
    llc_bytes=32 * 2**20, isa=("avx2", "fma", "avx512f"), cold_by="flush",
)  # fmt: skip


def slot(info, index=0):
    return DeviceSlot(index, info.backend, f"backends.{info.backend}:X", info)


def config(**kwargs):
    measure = kwargs.pop("measure", MeasureSettings())
    top = {name: kwargs.pop(name) for name in ("oversize", "max_cases", "max_kernel_s", "hardware") if name in kwargs}
    return RunConfig(jobs={"gemm": GemmSettings(**kwargs)}, measure=measure, **top)


def gemm(cases):
    return [case for case in cases if case.case.workload.job == "gemm"]


def test_calibration_comes_first_and_only_where_none_is_stored():
    fresh = plan(config(formats=["bf16"]), [slot(H200)])
    assert [dict(c.case.workload.params)["op"] for c in fresh[:5]] == ["read", "copy", "triad", "empty", "empty"]
    assert {c.case.regime.dispatch for c in fresh[3:5]} == {"device", "call"}
    assert all(c.case.workload.job == "gemm" for c in plan(config(formats=["bf16"]), [slot(H200)], calibrated={0}))


def test_the_standard_profile_is_cold_and_warm_with_burst_where_it_tells_something():
    cases = gemm(plan(config(formats=["bf16"], shapes=["8192", "1x8192x8192"]), [slot(H200)]))
    labels = [(c.case.workload.param("m"), c.case.regime.label) for c in cases]
    assert labels == [
        (8192, "cold/sustained/device"),
        (8192, "warm/sustained/device"),
        (8192, "cold/burst/device"),
        (1, "cold/sustained/device"),  # memory-bound: a burst would say nothing the clock decides
        (1, "warm/sustained/device"),
    ]


def test_burst_cases_are_bounded_and_spread_over_the_formats():
    shapes = ["16384", "12288", "8192"]
    cases = plan(
        config(formats=["bf16", "fp16", "fp8_e4m3"], shapes=shapes, measure=MeasureSettings(max_burst_cases=4)), [slot(H200)]
    )
    bursts = [c.case for c in cases if c.case.regime.load == "burst"]
    assert len(bursts) == 4
    assert {case.workload.format for case in bursts} == {"bf16", "fp16", "fp8_e4m3"}
    assert max(case.workload.param("m") for case in bursts) == 16384


def test_cold_rotates_over_three_caches_on_a_gpu_and_flushes_on_a_cpu():
    on_gpu = gemm(plan(config(formats=["bf16"], shapes=["512"]), [slot(H200)]))[0]
    on_cpu = gemm(plan(config(formats=["fp32"], shapes=["512"]), [slot(CPU)]))[0]
    assert (on_gpu.sets - 1) * 3 * 512 * 512 * 2 >= 3 * 60 * 2**20
    assert on_cpu.sets == 1


def test_cold_and_warm_cases_of_a_backend_that_asks_lie_at_several_places_in_memory():
    placed = replace(H200, places=16)
    shapes = ["16x15616x15616", "512", "16384"]
    found = {
        (c.case.workload.param("m"), c.case.regime.cache): c.sets
        for c in gemm(plan(config(formats=["bf16"], shapes=shapes), [slot(placed)]))
        if c.case.regime.load == "sustained"
    }
    weight = 2 * (15616 * 15616 + 2 * 16 * 15616)
    assert found[16, "cold"] == found[16, "warm"] == 4 * 2**30 // weight == 8
    assert found[512, "warm"] == 16
    assert found[512, "cold"] > 3 * 60 * 2**20 / (3 * 512 * 512 * 2)  # a cache asks for more of them than that
    assert found[16384, "cold"] == found[16384, "warm"] == 2


def test_a_cold_margin_displaces_more_and_takes_the_memory_for_it():
    plain, doubled = (
        gemm(plan(config(formats=["bf16"], shapes=["2048"], measure=MeasureSettings(cold_margin=margin)), [slot(H200)]))
        for margin in (1.0, 2.0)
    )
    set_bytes = 3 * 2048 * 2048 * 2
    assert (doubled[0].sets - 1) * set_bytes >= 2 * 3 * 60 * 2**20 > (doubled[0].sets - 2) * set_bytes
    assert doubled[0].memory_bytes - plain[0].memory_bytes == (doubled[0].sets - plain[0].sets) * set_bytes
    assert [c.sets for c in doubled if c.case.regime.cache == "warm"] == [1]


def test_predicted_time_follows_the_energy_window_and_the_rounds(monkeypatch):
    monkeypatch.setattr(GemmJob, "implementations", ("library", "another"))

    def predicted_s(implementations=("library",), **measure):
        settings = config(
            formats=["bf16"], shapes=["512"], implementations=list(implementations), measure=MeasureSettings(**measure)
        )
        return {c.case.regime.label: c.predicted_s for c in gemm(plan(settings, [slot(H200)]))}

    cold, warm = "cold/sustained/device", "warm/sustained/device"
    plain, energy = predicted_s(), predicted_s(energy=True)
    assert energy[cold] - plain[cold] == pytest.approx(2.1 - 0.1)
    pair = ("library", "another")
    rounds = predicted_s(pair, interleave=10, energy=True)
    assert rounds[cold] > 10 * 2.1
    assert rounds[warm] == energy[warm]  # alone in its regime, it is measured once
    burst = {
        label: predicted_s(pair, regimes=["cold/burst/device"], interleave=count) for label, count in (("one", 1), ("ten", 10))
    }
    assert burst["ten"]["cold/burst/device"] > 9 * burst["one"]["cold/burst/device"]


# Whole seconds of cases through XLA on an H200: fp8 and int8, sustained and cold.
XLA_TOOK_S = {("fp8_e4m3", 8192): 37, ("fp8_e4m3", 16384): 130, ("int8", 8192): 13, ("int8", 16384): 33}


def test_what_xla_spends_on_compiling_and_checking_is_in_the_predicted_time():
    xla = slot(replace(H200, backend="xla"))
    settings = config(
        formats=["fp8_e4m3", "int8"], shapes=["8192", "16384"], measure=MeasureSettings(regimes=["cold/sustained/device"])
    )
    cases = plan(settings, [xla])
    for each in gemm(cases):
        workload = each.case.workload
        assert 1 / 3 < each.predicted_s / XLA_TOOK_S[workload.format, workload.param("m")] < 3
    read, *_ = [each for each in cases if each.case.workload.job == "calibration" and each.case.workload.param("op") == "read"]
    assert 10 < read.predicted_s < 20
    assert all(each.predicted_s < 4 for each in plan(settings, [slot(H200)]))
    product = gemm(cases)[0].work
    tuned, *plain = (predict_xla.besides_s(product, each) for each in (H200, CPU, replace(H200, architecture="TPU v5 lite")))
    assert tuned > 10 > 3 > max(plain)  # only GPUs have an autotuner


def test_every_case_on_every_device_with_its_own_slot():
    cases = plan(config(formats=["bf16", "fp32"], shapes=["512", "1024"]), [slot(H200, 0), slot(H200, 1)])
    by_slot = [{c.case.key for c in cases if c.slot == index} for index in (0, 1)]
    assert by_slot[0] == by_slot[1]
    assert len(by_slot[0]) == len(cases) / 2


def test_cohorts_hold_one_workload_in_one_regime():
    cases = gemm(plan(config(formats=["bf16"], shapes=["512", "1024"]), [slot(H200, 0), slot(H200, 1)]))
    for cohort in {c.cohort for c in cases}:
        assert len({(c.case.workload, c.case.regime) for c in cases if c.cohort == cohort}) == 1
    assert len({c.cohort for c in cases}) == len({(c.case.workload, c.case.regime) for c in cases})


def test_case_keys_are_unique_and_stable():
    cases = plan(config(shapes=["512", "1024"]), [slot(H200)])
    assert len({c.case.key for c in cases}) == len(cases)
    assert [c.case.key for c in cases] == [c.case.key for c in plan(config(shapes=["512", "1024"]), [slot(H200)])]


@pytest.mark.parametrize(
    "twice",
    [
        {"implementations": ["library", "library"]},
        {"formats": ["bf16", "bf16"], "shapes": ["512", "512x512x512"]},
        {"measure": MeasureSettings(regimes=["standard", "warm/sustained/device", "cold/sustained/device"])},
        {"measure": MeasureSettings(regimes=["cold/sustained/device", "standard"])},
    ],
)
def test_what_is_asked_for_twice_is_measured_once(twice):
    cases = plan(config(**{"formats": ["bf16"], "shapes": ["512"]} | twice), [slot(CPU)])
    keys = [each.case.key for each in gemm(cases)]
    assert len(set(keys)) == len(keys) == 2  # cold and warm


def test_a_shape_over_memory_is_refused_with_need_limit_and_remedy():
    with pytest.raises(UsageError) as error:
        plan(config(formats=["bf16"], shapes=["300000"]), [slot(H200)])
    message = str(error.value)
    assert "300000x300000x300000" in message
    assert "NVIDIA H200" in message
    assert "GB" in message
    assert "oversize=record" in message


@pytest.mark.parametrize(("caches", "more"), [(["cold"], "usable; "), (["cold", "warm"], "usable (and 1 more case); ")])
def test_the_others_over_memory_are_counted(caches, more):
    measure = MeasureSettings(regimes=[f"{cache}/sustained/device" for cache in caches])
    with pytest.raises(UsageError) as error:
        plan(config(formats=["bf16"], shapes=["300000"], measure=measure), [slot(H200)])
    assert more in str(error.value)


def test_what_fits_is_not_refused():
    """The reference goes block by block: an operand of 24 GB needs no float64 copy of 48."""
    cases = gemm(plan(config(formats=["bf16"], shapes=["8192x106496x16384"]), [slot(RTX_4090)]))
    assert cases[1].verdict is None  # warm: one set of 6 GB in 25


def test_emulating_a_format_takes_its_wide_copies():
    emulated = gemm(plan(config(formats=["fp8_e4m3"], shapes=["2048"]), [slot(CPU)]))[0]
    native = gemm(plan(config(formats=["fp8_e4m3"], shapes=["2048"]), [slot(H200)]))[1]
    assert emulated.memory_bytes - native.memory_bytes == 2 * 2 * 2048 * 2048


def test_a_compiled_case_is_planned_with_what_its_launches_return():
    implementations = ["library", "compiled"]
    cases = gemm(plan(config(formats=["bf16"], shapes=["512x1024x256"], implementations=implementations), [slot(H200)]))
    library, compiled = (next(c for c in cases if c.case.implementation == name) for name in implementations)
    assert library.sets == compiled.sets > 1
    assert compiled.memory_bytes - library.memory_bytes == compiled.sets * 512 * 1024 * 2


def test_oversize_can_be_recorded_instead():
    cases = gemm(plan(config(formats=["bf16"], shapes=["300000", "512"], oversize="record"), [slot(H200)]))
    verdicts = {c.case.workload.param("m"): c.verdict for c in cases}
    assert verdicts == {300000: Outcome.OUT_OF_MEMORY, 512: None}


def test_memory_is_not_checked_without_device_facts():
    (case, *_) = gemm(plan(config(formats=["bf16"], shapes=["300000"]), [DeviceSlot(0, "cuda", "x:Y", None)]))
    assert case.verdict is None


def test_shapes_whose_floor_is_too_long_for_this_device_are_left_out_and_named():
    settings = config(formats=["fp64"], shapes=["512", "16384"], max_kernel_s=0.2)
    assert {c.case.workload.param("m") for c in gemm(plan(settings, [slot(CPU)]))} == {512}
    assert {c.case.workload.param("m") for c in gemm(plan(settings, [slot(H200)]))} == {512, 16384}
    lines = left_out(settings, [slot(CPU)])
    assert len(lines) == 1
    assert "16384x16384x16384" in lines[0]


def test_a_floor_hardly_above_the_limit_is_told_in_digits_that_show_it():
    (line,) = left_out(config(formats=["fp64"], shapes=["2048"], max_kernel_s=0.103), [slot(CPU)])
    assert line.endswith("about 0.103244 s a launch on cpu, above max_kernel_s=0.103")
    (line,) = left_out(config(formats=["fp64"], shapes=["2048"], max_kernel_s=0.1), [slot(CPU)])
    assert line.endswith("about 0.103 s a launch on cpu, above max_kernel_s=0.1")


def test_a_format_without_a_peak_here_is_left_out_by_the_fp32_rate():
    """fp8 on a CPU has no peak to go by, and would otherwise run for minutes."""
    settings = config(formats=["fp8_e4m3"], shapes=["512", "16384"], max_kernel_s=0.2)
    assert {c.case.workload.param("m") for c in gemm(plan(settings, [slot(CPU)]))} == {512}


def test_a_format_that_a_gpu_converts_is_left_out_by_the_bf16_rate():
    """fp4 has no unit on an H200: 8192^3 takes 1.1 ms in bf16, and would take 16 ms in fp32."""
    settings = config(formats=["mxfp4"], shapes=["8192", "16384"], max_kernel_s=0.005)
    assert {case.case.workload.param("m") for case in gemm(plan(settings, [slot(H200)]))} == {8192}


def test_more_cases_than_allowed_are_refused():
    with pytest.raises(UsageError, match="max_cases=10"):
        plan(config(shapes=["512", "1024"], max_cases=10), [slot(H200)])


def test_no_job_and_unknown_hardware_are_refused():
    with pytest.raises(UsageError, match="no job"):
        plan(RunConfig(), [slot(H200)])
    with pytest.raises(UsageError, match="nvidia-h200"):
        plan(config(hardware="nvidia-h200-sxm5-142gb"), [slot(H200)])


@pytest.mark.parametrize(
    ("label", "named"), [("cold", "cache/load/dispatch"), ("cold/hot/device", "'hot'"), ("cool/burst/call", "'cool'")]
)
def test_bad_regimes_are_named(label, named):
    with pytest.raises(UsageError, match=named):
        parse_regime(label)


def test_data_is_the_same_for_every_implementation_and_moves_with_the_seed():
    assert data_seed(0, "00ff00ff00ff00ff") == data_seed(0, "00ff00ff00ff00ff")
    assert data_seed(0, "00ff00ff00ff00ff") != data_seed(1, "00ff00ff00ff00ff")
    assert 0 <= data_seed(2**31, "ffffffffffffffff") < 2**31


def test_planning_imports_no_framework_and_no_database():
    heavy = "torch jax triton numpy sqlalchemy streamlit plotly hydra"
    code = f"import sys, suite.plan; print([m for m in '{heavy}'.split() if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_switch_that_is_a_list_makes_a_case_of_each_value_side_by_side():
    """In one cohort for each regime, so that interleaving alternates them."""
    cases = gemm(plan(config(formats=["fp8_e4m3"], shapes=["4096"], fp8_fast_accum=[True, False]), [slot(H200)]))
    by_cohort = [(case.cohort, case.case.regime.label, dict(case.case.switches)["fp8_fast_accum"]) for case in cases]
    labels = list(dict.fromkeys(label for _, label, _ in by_cohort))
    assert labels[:2] == ["cold/sustained/device", "warm/sustained/device"]
    assert [(label, on) for _, label, on in by_cohort] == [(label, on) for label in labels for on in (True, False)]
    assert len({cohort for cohort, _, _ in by_cohort}) == len(labels)
    assert len({case.case.key for case in cases}) == len(cases)
    assert len({case.case.workload.key for case in cases}) == 1


def test_a_switch_splits_only_the_formats_it_means_something_for():
    cases = gemm(plan(config(formats=["bf16", "fp8_e4m3"], shapes=["512"], fp8_fast_accum=[True, False]), [slot(H200)]))
    formats = [case.case.workload.format for case in cases if case.case.regime.cache == "cold"]
    assert (formats.count("bf16"), formats.count("fp8_e4m3")) == (1, 2)


def test_an_emulated_case_has_its_own_pipe_memory_and_floor():
    native, emulated = (
        case
        for case in gemm(plan(config(formats=["fp64"], shapes=["8192"], emulation=["none", "int8"]), [slot(H200)]))
        if case.case.regime.label == "cold/sustained/device"
    )
    assert (native.work.pipe, emulated.work.pipe) == ("fp64", "int8x28")
    assert emulated.memory_bytes - native.memory_bytes > 5e9  # the slices of both operands and their sums
    assert emulated.predicted_s < native.predicted_s
    assert native.case.workload.key == emulated.case.workload.key


def test_an_emulation_runs_where_the_native_product_would_take_too_long():
    """Each set of switches is left out by its own floor, and said to be."""
    settings = config(formats=["fp64"], shapes=["8192"], emulation=["none", "int8"], max_kernel_s=0.016)
    cases = gemm(plan(settings, [slot(H200)]))
    assert {dict(case.case.switches).get("emulation") for case in cases} == {"int8"}
    (line,) = left_out(settings, [slot(H200)])
    assert "fp64: at least 0.0164 s a launch" in line
