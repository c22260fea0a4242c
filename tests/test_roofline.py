"""Ceilings, bounds and the physical-limit gate, on a real H200's facts and on a CPU's."""

import random
import statistics
from dataclasses import replace

import pytest

from suite.backend import Channel, DeviceInfo
from suite.case import Regime
from suite.hardware.catalogue import load
from suite.hardware.match import match
from suite.measure.collected import Collected, Taken
from suite.measure.statistics import median_interval
from suite.measurement import Measurement, SampleSet
from suite.outcome import Bound, Outcome
from suite.roofline import (
    Ceilings,
    EmpiricalRoofs,
    above_derived,
    bound,
    empirical_fraction,
    floors_s,
    fraction,
    in_cache,
    judge,
    ridge_point,
    roof,
    summarize,
)
from suite.rows import Calibration
from suite.work import Work

COLD = Regime("cold", "sustained", "device")
WARM = Regime("warm", "sustained", "device")
H200 = DeviceInfo(
    "cuda", 0, "NVIDIA H200", "f" * 16, 150_754_820_096, "sm_90", 132, 1980e6, llc_bytes=60 * 2**20, power_limit_w=700.0
)
SHEET = load("nvidia-h200-sxm5-141gb")
LIMITS = Ceilings(H200, SHEET)
CALIBRATION = Calibration(4.61e12, 4.30e12, 4.37e12, 1.0e-6, 1.1e-5)


def gemm(size, bytes_each=2, pipe="bf16"):
    return Work(2 * size**3, 3 * bytes_each * size**2, pipe)


def timed(p50_s, telemetry=None, launches=1, count=4):
    ns = round(p50_s * 1e9)
    samples = SampleSet((ns,) * count, launches, "graph", 1e-9, count, ns * count, ns)
    return Measurement(Outcome.OK, samples=samples, interval_s=(p50_s, p50_s), converged=True, telemetry=telemetry or {})


class Scripted:
    """What a sample set takes from a sampler."""

    launches, method, resolution_s, details = 1, "scripted", 1e-9, {}


def clock(hz):
    return {"device_clock": Channel("Hz", (0.0,), (hz,))}


def held(counted_hz, driver_hz=1.46e9):
    """A clock that the driver holds under its maximum."""
    return {**clock(counted_hz), "sm_clock": Channel("Hz", (0.0,), (driver_hz,))}


def test_the_rate_moves_with_the_clock_and_the_fraction_at_the_clock_does_not():
    """The same kernel at 1630 MHz and 1336 MHz: 808 and 666 TFLOP/s, both 0.92 of the peak at that clock."""
    work = gemm(8192)
    fast = summarize(timed(work.flops / 808e12, clock(1630e6)), work, COLD, LIMITS, CALIBRATION)
    slow = summarize(timed(work.flops / 666e12, clock(1336e6)), work, COLD, LIMITS, CALIBRATION)
    assert fast.fraction_spec == pytest.approx(808 / 989.5, rel=1e-3)
    assert fast.fraction_boost == pytest.approx(808 / 1070.5, rel=1e-3)
    assert fast.fraction_at_clock == pytest.approx(slow.fraction_at_clock, rel=0.01)
    assert slow.fraction_spec < 0.85 * fast.fraction_spec


def two_clocks(fast_share, cycles=2.2e6, launches=1):
    """A kernel of constant cycles, partly at one clock and partly at another, with the mean clock counted."""
    clocks = [1410e6] * round(100 * fast_share) + [1335e6] * round(100 * (1 - fast_share))
    durations = tuple(round(cycles / hz * 1e9) * launches for hz in clocks)
    counted_hz = cycles * launches * len(clocks) / (sum(durations) * 1e-9)  # what a counter read before and after tells
    samples = SampleSet(durations, launches, "graph", 1e-9, len(durations), sum(durations), min(durations))
    return Measurement(Outcome.OK, samples=samples, converged=True, telemetry=held(counted_hz))


def test_cycles_are_the_same_whichever_clock_the_median_launch_ran_at():
    """The mean clock with the median time told of cycles 3 % apart, of one kernel on one device."""
    work = gemm(8192)
    found = [summarize(two_clocks(share), work, COLD, LIMITS, CALIBRATION) for share in (0.1, 0.4, 0.6, 0.9)]
    assert {round(each.p50_s * 1e9) for each in found} == {round(2.2e6 / 1335e6 * 1e9), round(2.2e6 / 1410e6 * 1e9)}
    assert [each.p50_s * each.clock_hz for each in found] == pytest.approx([2.2e6] * 4, rel=1e-5)
    assert [each.clock_hz for each in found] == pytest.approx([1335e6, 1335e6, 1410e6, 1410e6], rel=1e-5)
    assert [each.fraction_at_clock for each in found] == pytest.approx([found[0].fraction_at_clock] * 4, rel=1e-5)
    grouped = summarize(two_clocks(0.4, launches=7), work, COLD, LIMITS, CALIBRATION)
    assert grouped.p50_s * grouped.clock_hz == pytest.approx(2.2e6, rel=1e-5)


def test_clocks_counted_over_each_sample_outrank_a_mean_clock():
    plain = two_clocks(0.4, launches=7).samples
    clocks_khz = (1_410_000,) * 40 + (1_335_000,) * 60
    counted = replace(plain, clocks_khz=clocks_khz, median_cycles=7 * 2.2e6)
    measurement = Measurement(Outcome.OK, samples=counted, interval_cycles=(2.19e6, 2.21e6), telemetry=held(1.7e9))
    found = summarize(measurement, gemm(8192), COLD, LIMITS, CALIBRATION)
    assert found.p50_cycles == pytest.approx(2.2e6)
    assert found.clock_hz == pytest.approx(1335e6, rel=1e-5)
    assert (found.interval_low_cycles, found.interval_high_cycles) == (2.19e6, 2.21e6)
    uncounted = summarize(replace(measurement, samples=plain), gemm(8192), COLD, LIMITS, CALIBRATION)
    assert (uncounted.p50_cycles, uncounted.clock_hz > 1.6e9) == (None, True)


def test_a_few_long_samples_do_not_raise_the_clock_above_the_device_s_own():
    held_up = SampleSet((1_000_000,) * 9 + (6_000_000,), 1, "graph", 1e-9, 10, 15_000_000, 1_000_000)
    measurement = Measurement(Outcome.OK, samples=held_up, converged=True, telemetry=held(1.9e9, 1.95e9))
    assert summarize(measurement, gemm(4096), COLD, LIMITS, CALIBRATION).clock_hz == LIMITS.info.max_clock_hz


@pytest.mark.parametrize("telemetry", [clock(1.9e9), held(1.9e9, 1.98e9)])
def test_a_tail_of_long_samples_is_no_higher_clock_where_nothing_holds_it_down(telemetry):
    """A launch that waits takes cycles: at the counted clock, which is every sample's."""
    tailed = SampleSet((1_000_000,) * 8 + (1_100_000,) * 2, 1, "graph", 1e-9, 10, 10_200_000, 1_000_000)
    measurement = Measurement(Outcome.OK, samples=tailed, converged=True, telemetry=telemetry)
    assert summarize(measurement, gemm(4096), COLD, LIMITS, CALIBRATION).clock_hz == 1.9e9


def test_the_gate_judges_by_the_clock_as_it_was_counted():
    """Most launches leave out some of the work: the few that take longer are no reason for a higher limit."""
    work = gemm(8192)
    peak_at_clock = LIMITS.boost_flop_s("bf16", 1.4e9)
    short, long = (round(work.flops / (share * peak_at_clock) * 1e9) for share in (1.1, 0.9))
    samples = SampleSet((short,) * 6 + (long,) * 4, 1, "graph", 1e-9, 10, 6 * short + 4 * long, short)
    measurement = Measurement(Outcome.OK, samples=samples, converged=True, telemetry=clock(1.4e9))
    assert judge(measurement, work, LIMITS, COLD).outcome is Outcome.IMPOSSIBLE


def test_without_a_counter_there_is_no_fraction_at_the_clock():
    work = gemm(8192)
    summary = summarize(timed(1.6e-3), work, COLD, LIMITS, CALIBRATION)
    assert summary.fraction_at_clock is None
    assert summary.clock_hz is None


def test_host_timed_figures_above_the_peak_are_refused():
    """2,854 TFLOP/s from timing without a synchronisation (intel-xpu-backend-for-triton issue 470)."""
    work = gemm(4096)
    refused = judge(timed(work.flops / 2854e12), work, LIMITS, COLD)
    assert refused.outcome is Outcome.IMPOSSIBLE
    assert "bf16 limit of 1071" in refused.reason
    assert judge(timed(work.flops / 900e12), work, LIMITS, COLD).outcome is Outcome.OK


def test_the_limit_is_the_peak_at_the_clock_that_was_measured():
    work = gemm(8192)
    at_low_clock = judge(timed(work.flops / 900e12, clock(1336e6)), work, LIMITS, COLD)
    assert at_low_clock.outcome is Outcome.IMPOSSIBLE


def test_a_cold_result_above_the_memory_bandwidth_is_refused_and_a_warm_one_is_cache():
    """5,019 GB/s on a card that has 1,434: inputs stayed in cache (TileGym issue 82)."""
    work = Work(0, 30 * 2**20, None)
    too_fast = timed(work.compulsory_bytes / 6e12)
    assert judge(too_fast, work, LIMITS, COLD).outcome is Outcome.IMPOSSIBLE
    assert judge(too_fast, work, LIMITS, WARM).outcome is Outcome.OK
    assert summarize(too_fast, work, WARM, LIMITS, CALIBRATION).fraction_spec is None


def test_samples_of_no_length_are_refused_and_not_divided_by():
    """``inf`` TFLOP/s from no iterations at all (hipBLASLt issue 1786)."""
    work = gemm(64)
    nothing = judge(timed(0.0), work, Ceilings(H200, None), COLD)
    assert (nothing.outcome, nothing.reason) == (Outcome.IMPOSSIBLE, "the median sample lasted no time or less")
    assert summarize(nothing, work, COLD, LIMITS, CALIBRATION) is None


def test_a_derived_peak_never_refuses():
    cpu = DeviceInfo("cpu", 0, "Some CPU", "c" * 16, 2**34, "x86_64", 2, 2.596e9, isa=("avx2", "fma", "avx512f"))
    spec = match(cpu).spec
    assert spec.derived
    work = gemm(2048, 4, "fp32")
    assert judge(timed(work.flops / 1e15), work, Ceilings(cpu, spec), COLD).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("details", "why"),
    [
        ({"guest": "yes"}, "over 2 % above the derived peak: its clock is nominal"),
        ({"clock_source": "cpufreq cpuinfo_max_freq"}, "over 2 % above the derived peak, an estimate"),
    ],
)
def test_what_passes_a_derived_peak_keeps_its_rate_and_is_no_fraction_of_it(details, why):
    """A guest's 2.6 GHz and a core that boosts to 3.6: 135 % of the peak is no share of anything."""
    cpu = DeviceInfo("cpu", 0, "EPYC", "c" * 16, 2**34, "x86_64", 2, 2.6e9, isa=("avx512f", "avx512_bf16"), details=details)
    limits = Ceilings(cpu, match(cpu).spec)
    work, peak = gemm(2048), limits.peak_flop_s("bf16")
    for times, share in ((0.9, 0.9), (1.015, 1.015), (1.03, None), (1.355, None)):
        found = summarize(timed(work.flops / (times * peak)), work, COLD, limits, CALIBRATION)
        assert found.flop_s == pytest.approx(times * peak, rel=1e-4)
        expected = share if share is None else pytest.approx(share, rel=1e-4)
        assert found.fraction_spec == expected
        assert found.fraction_boost == (None if "guest" in details else expected)  # a nominal clock is no maximum
        assert above_derived(found.flop_s, peak, limits) == ("" if share else why)
    quick = timed(work.flops / (1.355 * peak), clock(3.6e9))
    assert summarize(quick, work, COLD, limits, CALIBRATION).fraction_at_clock == pytest.approx(1.355 * 2.6 / 3.6, rel=1e-4)


def test_a_declared_peak_is_never_taken_for_a_derived_one():
    assert above_derived(2e15, 989.5e12, LIMITS) == ""
    assert above_derived(2e15, None, LIMITS) == ""
    assert above_derived(2e15, 1e12, Ceilings(H200, None)) == ""


@pytest.mark.parametrize(
    ("work", "p50_s", "regime", "expected"),
    [
        (gemm(8192), 1.4e-3, COLD, Bound.COMPUTE),
        (Work(2 * 8192 * 8192, 2 * 8192 * 8192, "bf16"), 3.2e-5, COLD, Bound.MEMORY),
        (Work(2 * 8192 * 8192, 2 * 2048 * 4096, "bf16"), 3.2e-5, WARM, Bound.CACHE),  # memory is no ceiling
        (gemm(256), 2.5e-6, COLD, Bound.LAUNCH),
        (Work(0, 4 * 2**30, None), 1e-3, COLD, Bound.MEMORY),
        (Work(0, 0, None), 1e-6, WARM, Bound.LAUNCH),
        (Work(0, 0, None), 1.0, WARM, Bound.LAUNCH),  # an empty kernel, before any is calibrated
    ],
)
def test_bound_is_the_largest_floor(work, p50_s, regime, expected):
    assert bound(work, p50_s, regime, LIMITS, CALIBRATION) is expected


def test_a_cpu_is_judged_against_its_derived_peak_where_arithmetic_binds_and_not_where_memory_does():
    cpu = DeviceInfo("cpu", 0, "Some CPU", "c" * 16, 2**34, "x86_64", 2, 2.5e9, isa=("avx2", "fma", "avx512f"))
    limits, measured = Ceilings(cpu, match(cpu).spec), Calibration(read_bytes_s=14e9)
    square, thin = gemm(2048, 4, "fp32"), Work(2 * 4096 * 4096, 4 * 4096 * 4096, "fp32")
    assert summarize(timed(0.2), square, COLD, limits, measured).fraction_spec == pytest.approx(
        square.flops / 0.2 / limits.peak_flop_s("fp32")
    )
    assert summarize(timed(0.02), thin, COLD, limits, measured).fraction_spec is None
    assert summarize(timed(0.02), thin, COLD, limits, measured).bound == "memory"
    assert summarize(timed(0.3), Work(0, 2**32, None), COLD, limits, measured).fraction_spec is None


def test_launch_bound_uses_the_empty_kernel_of_its_own_dispatch():
    call = Regime("warm", "sustained", "call")
    work = gemm(1024)
    assert bound(work, 2e-5, call, LIMITS, CALIBRATION) is Bound.LAUNCH
    assert bound(work, 2e-5, COLD, LIMITS, CALIBRATION) is not Bound.LAUNCH


def test_an_unknown_device_has_no_fractions_and_an_unknown_bound():
    """An unknown name must not become some other chip's peak (OLMo-core issue 817: 105.7 % became 14.66 %)."""
    b300 = Ceilings(DeviceInfo("cuda", 0, "Unheard Of 9000", "0" * 16, 2**37), None)
    work = gemm(8192)
    summary = summarize(timed(1e-3), work, COLD, b300, CALIBRATION)
    assert (summary.fraction_spec, summary.fraction_boost, summary.fraction_at_clock) == (None, None, None)
    assert summary.bound == "unknown"
    assert summary.flop_s == pytest.approx(work.flops / 1e-3)


def test_amd_takes_the_larger_of_report_and_sheet_for_the_cache():
    """ROCm reports 4 MB of L2 on an MI300X, whose Infinity Cache is 256 MB (ROCm issue 4203)."""
    info = DeviceInfo("rocm", 0, "AMD Instinct MI300X", "a" * 16, 192 * 2**30, "gfx942", llc_bytes=4 * 2**20)
    assert Ceilings(info, load("amd-mi300x")).llc_bytes >= 256e6
    assert LIMITS.llc_bytes == 60 * 2**20  # NVIDIA's own report outranks its sheet's 50


def test_the_roof_bends_at_the_ridge():
    ridge = ridge_point(989.5e12, 4.8e12)
    assert ridge == pytest.approx(206.1, rel=1e-3)
    low, at, high = roof(989.5e12, 4.8e12, [ridge / 2, ridge, ridge * 10])
    assert (low, at, high) == pytest.approx((989.5e12 / 2, 989.5e12, 989.5e12))


def test_memory_bound_work_is_judged_by_bandwidth():
    work = Work(2 * 8192 * 8192, 2 * 8192 * 8192, "bf16")
    bytes_s = 4.0e12
    assert fraction(bytes_s * work.arithmetic_intensity, bytes_s, work.arithmetic_intensity, 989.5e12, 4.8e12) == pytest.approx(
        4.0 / 4.8
    )


def test_empirical_fraction_leaves_memory_out_for_cached_data():
    roofs = EmpiricalRoofs(800e12, 4.4e12)
    assert empirical_fraction(400e12, 4.4e12, 90.0, roofs) == pytest.approx(400e12 / (90 * 4.4e12))
    assert empirical_fraction(400e12, 4.4e12, 90.0, roofs, in_cache=True) == pytest.approx(0.5)
    assert empirical_fraction(1.0, 1.0, 1.0, None) is None


def test_what_memory_bounds_has_an_empirical_fraction_before_any_rate_of_its_format():
    """On a busy CPU every product with much arithmetic was contended, and half of a quick run had no fraction."""
    roofs = EmpiricalRoofs(None, 4.4e12)
    assert empirical_fraction(200e12, 2.2e12, 90.0, roofs, memory_bound=True) == pytest.approx(0.5)
    assert empirical_fraction(200e12, 2.2e12, 90.0, roofs) is None
    assert empirical_fraction(200e12, 2.2e12, 90.0, roofs, in_cache=True, memory_bound=True) is None
    known = EmpiricalRoofs(100e12, 4.4e12)
    assert empirical_fraction(50e12, 2.2e12, 90.0, known, memory_bound=True) == pytest.approx(0.5)
    own = EmpiricalRoofs(200e12, 4.4e12)  # the best rate of the format is the result's own, which memory held down
    assert empirical_fraction(200e12, 2.2e12, 90.0, own, memory_bound=True) == pytest.approx(0.5)
    assert in_cache("warm", 2**20, 60 * 2**20)
    assert not in_cache("cold", 2**20, 60 * 2**20)
    assert not in_cache("warm", 2**30, 60 * 2**20)


def test_what_memory_would_bound_is_bound_by_the_cache_that_holds_it_and_has_no_declared_roof():
    decode = Work(2 * 16 * 4096 * 4096, 2 * (16 * 4096 * 2 + 4096 * 4096), "bf16")  # 33.8 MB in a cache of 60 MiB
    assert (bound(decode, 9e-6, WARM, LIMITS, CALIBRATION), bound(decode, 9e-6, COLD, LIMITS, CALIBRATION)) == (
        "cache",
        "memory",
    )
    warm = summarize(timed(9.0e-6), decode, WARM, LIMITS, CALIBRATION)
    assert (warm.fraction_spec, warm.fraction_boost, warm.fraction_at_clock) == (None, None, None)
    assert bound(gemm(1024), 6e-6, WARM, LIMITS, CALIBRATION) == "compute"  # arithmetic takes longer than memory would
    copy = Work(0, 2**25, None)
    assert bound(copy, 9e-6, WARM, LIMITS, CALIBRATION) == "cache"
    assert bound(copy, 9e-6, WARM, Ceilings(LIMITS.info, None), CALIBRATION) == "cache"


def test_a_collective_is_bound_by_its_link_however_short_it_is():
    """12 us of an all_reduce is under three empty calls; as launch bound its busbw would be read as memory bandwidth."""
    call = Regime("warm", "sustained", "call")
    assert bound(Work(0, 2**20, "device_link"), 12e-6, call, LIMITS, CALIBRATION) is Bound.LINK
    assert bound(Work(0, 2**20, None), 12e-6, call, LIMITS, CALIBRATION) is Bound.LAUNCH


def test_energy_needs_a_window_that_resolves_the_counter():
    work = gemm(8192)
    short = {"energy": Channel("J", (0.0, 0.5), (100.0, 450.0))}
    long = {"energy": Channel("J", (0.0, 2.5), (100.0, 1850.0))}
    assert summarize(timed(1e-3, short), work, COLD, LIMITS, CALIBRATION).energy_j is None
    per_launch = summarize(timed(1e-3, long, launches=10, count=250), work, COLD, LIMITS, CALIBRATION).energy_j
    assert per_launch == pytest.approx(1750 / 2500)


def reasons(power_w):
    return {
        "throttle.sw_power_cap": Channel("", (0.0, 1.0), (1.0, 0.0)),
        "throttle.hw_thermal": Channel("", (0.0, 1.0), (0.0, 1.0)),
        "throttle.hw_slowdown": Channel("", (0.0, 1.0), (0.0, 0.0)),
        "power": Channel("W", (0.0, 1.0), (power_w, power_w)),
    }


def test_throttle_names_reasons_and_shares():
    capped = summarize(timed(1e-3, reasons(691.0)), gemm(8192), COLD, LIMITS, CALIBRATION)
    assert capped.throttle == "hw_thermal 50%, sw_power_cap 50%"
    assert summarize(timed(1e-3), gemm(8192), COLD, LIMITS, CALIBRATION).throttle is None


@pytest.mark.parametrize(("driver_mhz", "power_w"), [(1980, 407.0), (1980, 696.0)])
def test_the_power_cap_is_not_named_while_the_clock_is_at_its_maximum(driver_mhz, power_w):
    """The driver sets that bit at 407 W of 700 too; a read of memory draws 696 W at the full clock."""
    told = reasons(power_w) | {"sm_clock": Channel("Hz", (0.0,), (driver_mhz * 1e6,))}
    assert summarize(timed(1e-3, told), gemm(8192), COLD, LIMITS, CALIBRATION).throttle == "hw_thermal 50%"


@pytest.mark.parametrize(("driver_mhz", "power_w"), [(1399, 650.0), (1965, 689.0), (1946, 693.0)])
def test_the_power_cap_is_named_where_it_takes_some_of_the_clock(driver_mhz, power_w):
    """Of an H200: fp16 8192^3 at 93 % of its limit as the sensor has it, 1024^3, and fp32."""
    told = reasons(power_w) | {"sm_clock": Channel("Hz", (0.0,), (driver_mhz * 1e6,))}
    assert "sw_power_cap 50%" in summarize(timed(1e-3, told), gemm(8192), COLD, LIMITS, CALIBRATION).throttle


def test_a_clock_that_somebody_set_is_no_power_cap():
    told = reasons(407.0) | {"sm_clock": Channel("Hz", (0.0,), (1.4e9,))}
    assert summarize(timed(1e-3, told), gemm(8192), COLD, LIMITS, CALIBRATION).throttle == "hw_thermal 50%"


def test_without_a_clock_the_power_cap_is_named_only_near_the_limit():
    assert summarize(timed(1e-3, reasons(407.0)), gemm(8192), COLD, LIMITS, CALIBRATION).throttle == "hw_thermal 50%"


def test_a_burst_is_over_before_the_power_sensor_follows():
    burst = Regime("cold", "burst", "device")
    assert summarize(timed(1e-3, reasons(691.0)), gemm(8192), burst, LIMITS, CALIBRATION).power_w is None


def test_what_is_refused_has_no_rate_to_show():
    work = gemm(4096)
    refused = judge(timed(work.flops / 2854e12), work, LIMITS, COLD)
    assert refused.samples is not None
    assert summarize(refused, work, COLD, LIMITS, CALIBRATION) is None


@pytest.mark.parametrize(
    ("method", "details"), [("spin", {}), ("host", {"flush_bytes": 2**30}), ("graph", {"untimed": "copies"})]
)
def test_energy_of_untimed_work_is_not_billed_to_the_launches(method, details):
    energy = {"energy": Channel("J", (0.0, 2.5), (100.0, 1850.0))}
    measured = timed(1e-3, energy)
    flushed = replace(measured, samples=replace(measured.samples, method=method, details=details))
    assert summarize(measured, gemm(8192), COLD, LIMITS, CALIBRATION).energy_j is not None
    assert summarize(flushed, gemm(8192), COLD, LIMITS, CALIBRATION).energy_j is None


@pytest.mark.parametrize("limits", [LIMITS, Ceilings(H200, None)])
def test_time_that_runs_backwards_is_impossible_with_and_without_a_sheet(limits):
    backwards = timed(-5e-9)
    refused = judge(backwards, gemm(64), limits, WARM)
    assert (refused.outcome, refused.reason) == (Outcome.IMPOSSIBLE, "the median sample lasted no time or less")
    assert summarize(backwards, gemm(64), WARM, limits, CALIBRATION) is None


RTX_4090 = DeviceInfo("cuda", 0, "NVIDIA GeForce RTX 4090", "4" * 16, 25_393_692_672, "sm_89", 128, 2520e6)
GEFORCE = Ceilings(RTX_4090, load("nvidia-rtx-4090"))


def test_sums_in_fp16_are_held_against_their_own_rate():
    """An RTX 4090 adds fp16 products up in fp16 at 330 TFLOP/s, twice the fp16 peak of its sheet."""
    work = gemm(8192, pipe="fp16_acc_fp16")
    fast = timed(work.flops / 320e12, clock(2520e6))
    assert judge(fast, work, GEFORCE, COLD).outcome is Outcome.OK
    assert judge(fast, gemm(8192, pipe="fp16"), GEFORCE, COLD).outcome is Outcome.IMPOSSIBLE
    assert summarize(fast, work, COLD, GEFORCE, CALIBRATION).fraction_spec == pytest.approx(320 / 330.3, rel=1e-3)
    assert judge(timed(work.flops / 340e12, clock(2520e6)), work, GEFORCE, COLD).outcome is Outcome.IMPOSSIBLE


def test_a_peak_that_stands_in_for_a_rate_refuses_nothing():
    work = gemm(8192, pipe="fp16_acc_fp16")
    faster = timed(work.flops / 1500e12)
    assert judge(faster, work, LIMITS, COLD).outcome is Outcome.OK
    assert judge(faster, gemm(8192, pipe="fp16"), LIMITS, COLD).outcome is Outcome.IMPOSSIBLE
    assert floors_s(work, COLD, LIMITS, CALIBRATION) == floors_s(gemm(8192, pipe="fp16"), COLD, LIMITS, CALIBRATION)


def test_an_emulated_product_costs_as_many_products_as_it_takes():
    """fp32 at 90 TFLOP/s is four fifths of what nine bf16 products allow, and no twelfth of bf16."""
    work, one = gemm(8192, 4, "bf16x9"), gemm(8192, 4, "bf16")
    compute_s, _ = floors_s(work, COLD, LIMITS, CALIBRATION)
    assert compute_s == pytest.approx(9 * floors_s(one, COLD, LIMITS, CALIBRATION)[0])
    summary = summarize(timed(work.flops / 90e12, clock(1830e6)), work, COLD, LIMITS, CALIBRATION)
    assert summary.flop_s == pytest.approx(90e12)
    assert summary.fraction_spec == pytest.approx(9 * 90 / 989.5, rel=1e-3)
    assert summary.fraction_at_clock == pytest.approx(9 * 90 / 989.5, rel=1e-2)


def test_many_products_make_compute_the_largest_floor():
    thin = Work(2 * 256 * 8192 * 8192, 8 * 8192 * 8192, "int8x55")
    assert bound(thin, 1.0, COLD, LIMITS, CALIBRATION) is Bound.COMPUTE
    assert bound(replace(thin, pipe="int8"), 1.0, COLD, LIMITS, CALIBRATION) is Bound.MEMORY


def test_how_many_products_an_emulation_takes_refuses_nothing():
    work = gemm(8192, 4, "bf16x9")
    assert judge(timed(work.flops / 200e12), work, LIMITS, COLD).outcome is Outcome.OK
    refused = judge(timed(work.flops / 1500e12), work, LIMITS, COLD)
    assert "above the bf16 limit" in refused.reason


def test_the_median_is_of_all_samples_and_within_its_interval():
    """Two input sets of different speed in turn: every second sample of 8,192 is of one set alone."""
    draw = random.Random(3)
    durations = [20_000 + 4_000 * (index % 2) + draw.randrange(300) for index in range(8192)]
    collected = Collected()
    collected.begin_batch()
    collected.add(Taken(durations, 0.0, 1.0))
    samples = collected.sample_set(Scripted(), 0.0)
    interval = median_interval([duration * 1e-9 for duration in durations])
    measured = Measurement(Outcome.OK, samples=samples, interval_s=tuple(interval))
    summary = summarize(measured, gemm(1024), COLD, LIMITS, CALIBRATION)
    assert summary.interval_low_s <= summary.p50_s <= summary.interval_high_s
    assert summary.p50_s == pytest.approx(statistics.median(durations) * 1e-9)
    assert samples.stride == 2
    before = summarize(replace(measured, samples=replace(samples, median_ns=None)), gemm(1024), COLD, LIMITS, CALIBRATION)
    assert before.p50_s == statistics.median(samples.durations_ns) * 1e-9  # all that an older store has


def test_what_is_possible_is_judged_by_the_median_of_all_samples():
    work = gemm(4096)
    measured = timed(work.flops / 900e12)
    assert judge(replace(measured, samples=replace(measured.samples, median_ns=1.0)), work, LIMITS, COLD).outcome is (
        Outcome.IMPOSSIBLE
    )
