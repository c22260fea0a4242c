"""Ceilings and every derived number, in one pure module.

The store keeps samples, work counts and telemetry; what is computed from them (rates, fractions, bound, verdict of the
physical-limit gate) is computed here and nowhere else, and cached under ``FORMULAS_VERSION`` so that it can be rebuilt.

    fraction = achieved rate / min(peak, arithmetic intensity x bandwidth)

for each ceiling: ``spec`` (the vendor's dense peak), ``boost`` (units x operations per clock x the device's maximum
clock), ``at_clock`` (the same at the clock measured on the device) and ``empirical`` (the best verified rate and
bandwidth stored for this device).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from suite.backend import Channel, DeviceInfo
from suite.case import Regime
from suite.hardware.cpu import NOMINAL
from suite.hardware.spec import DEVICE_LINK, LINKS, HardwareSpec, parse_pipe
from suite.measure.statistics import median, quantile
from suite.measurement import Measurement, SampleSet
from suite.outcome import Bound, Outcome
from suite.rows import Calibration
from suite.telemetry import THROTTLE_PREFIX
from suite.work import Work

# 2: medians of all samples, products of emulations, calibrations by backend; 3: what a cache bounds has no declared roof;
# 4: the error of quantisation; 5: no fraction of a derived peak that was passed; 6: short collectives are a link's too;
# 7: the clock is that of a launch of median length; 8: a power cap is told by the clock that it takes; 9: cycles of samples;
# 10: no share of a boost roof by a nominal clock
FORMULAS_VERSION = 10
NS = 1e-9
PHYSICAL_MARGIN = 1.02  # clock and bandwidth readings are good to about this much
LAUNCH_MULTIPLE = 3  # under this many empty-kernel times, launching is what is measured
POWER_CAPS = ("sw_power_cap",)
POWER_CAP_SHARE = 0.97  # of the limit, where the driver's clock or its maximum is not known
LOCKED_BELOW_SHARE = 0.9  # of the limit: a clock under its maximum at less power is one that somebody has set
FULL_CLOCK_SHARE = 0.998  # of the maximum: a step of an H200's clock is 0.8 %, so that a mean under this had a quarter of one
ENERGY_WINDOW_S = 2.0  # the energy counter steps every 100 ms: shorter windows read its steps


class Ceilings(NamedTuple):
    """What bounds one device: the facts its runtime reports, and its spec sheet where it was matched."""

    info: DeviceInfo
    spec: HardwareSpec | None

    def peak_flop_s(self, pipe: str | None) -> float | None:
        """The vendor's dense peak, operations per second."""
        return self.spec.peak_flop_s(pipe) if self.spec and pipe else None

    def boost_flop_s(self, pipe: str | None, clock_hz: float | None = None) -> float | None:
        """The pipe's rate at ``clock_hz``, or at the device's maximum clock; ``None`` without a clock or a rate per clock."""
        clock = clock_hz or self.max_clock_hz
        return self.spec.boost_flop_s(pipe, clock) if self.spec and pipe and clock else None

    @property
    def max_clock_hz(self) -> float | None:
        """The device's maximum clock; ``None`` where what it reports is a CPU's nominal one, above which it boosts."""
        nominal = self.spec is not None and self.spec.derived and self.spec.clocks.boost_hz.note == NOMINAL
        return None if nominal else self.info.max_clock_hz

    @property
    def bandwidth_bytes_s(self) -> float | None:
        """The vendor's memory bandwidth."""
        return self.spec.bandwidth_bytes_s if self.spec else None

    def link_bytes_s(self, link: str) -> float | None:
        """One direction of the vendor's interconnect, where ranks have a device each; of other links no sheet says anything."""
        return self.spec.interconnect.per_direction_bytes_s.value if self.spec and link == DEVICE_LINK else None

    @property
    def llc_bytes(self) -> int | None:
        """The last-level cache: what the device reports; on AMD the larger of report and sheet.

        ROCm reports one die's L2 (4 MB on an MI300X), not the Infinity Cache behind it.
        """
        reported = self.info.llc_bytes
        if reported is not None and self.info.backend != "rocm":
            return reported
        declared = self.spec.llc_bytes if self.spec else None
        return max((size for size in (declared, reported) if size is not None), default=None)


class EmpiricalRoofs(NamedTuple):
    """The best verified rate (operations per second) of a pipe and load, and the best measured bandwidth, of one device."""

    peak_flop_s: float | None
    bandwidth_bytes_s: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """Derived numbers of one timed result, in SI units for one launch; ``None`` where it cannot be known.

    The empirical ceiling moves as results are added, so its fraction is computed when rows are read, not kept here.
    """

    formulas_version: int
    bound: str
    count: int
    p50_s: float
    p05_s: float
    p95_s: float
    min_s: float
    interval_low_s: float | None
    interval_high_s: float | None
    flop_s: float
    bytes_s: float
    fraction_spec: float | None
    fraction_boost: float | None
    fraction_at_clock: float | None
    clock_hz: float | None
    energy_j: float | None
    power_w: float | None
    throttle: str | None
    quantisation_error: float | None
    p50_cycles: float | None = None
    interval_low_cycles: float | None = None
    interval_high_cycles: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summarize(
    measurement: Measurement, work: Work, regime: Regime, ceilings: Ceilings, calibration: Calibration
) -> Summary | None:
    """Derive everything a row shows from one measurement; ``None`` unless it was timed, verified and possible.

    A time that another tool took of what it did not check is shown too, with that outcome.

    What was refused keeps its samples in the store, and has no rate that anything could show.
    """
    samples = measurement.samples
    if measurement.outcome not in (Outcome.OK, Outcome.UNCHECKED) or samples is None:
        return None
    times_s, p50_s = launch_times_s(samples), median_s(samples)
    if p50_s <= 0:
        return None
    flop_s, bytes_s = work.flops / p50_s, work.compulsory_bytes / p50_s
    power_w = _sustained_power_w(measurement, regime)
    clock_hz = launch_clock_hz(samples, measurement.telemetry, power_w, ceilings.info)
    limit = bound(work, p50_s, regime, ceilings, calibration, clock_hz)

    def share(peak_flop_s: float | None) -> float | None:
        if limit is Bound.CACHE or above_derived(flop_s, peak_flop_s, ceilings):
            return None
        return _declared_fraction(work, p50_s, regime, ceilings, calibration, peak_flop_s)

    return Summary(
        formulas_version=FORMULAS_VERSION,
        bound=limit.value,
        count=samples.count,
        p50_s=p50_s,
        p05_s=quantile(times_s, 0.05),
        p95_s=quantile(times_s, 0.95),
        min_s=samples.min_ns * NS / samples.launches,
        interval_low_s=measurement.interval_s[0] if measurement.interval_s else None,
        interval_high_s=measurement.interval_s[1] if measurement.interval_s else None,
        flop_s=flop_s,
        bytes_s=bytes_s,
        fraction_spec=share(ceilings.peak_flop_s(work.pipe)),
        fraction_boost=share(ceilings.boost_flop_s(work.pipe)),
        fraction_at_clock=share(ceilings.boost_flop_s(work.pipe, clock_hz)) if clock_hz else None,
        clock_hz=clock_hz,
        energy_j=_energy_per_launch_j(measurement, samples, regime),
        power_w=power_w,
        throttle=throttle(measurement.telemetry, power_w, ceilings.info),
        quantisation_error=_quantisation_error(measurement),
        p50_cycles=median_cycles(samples),
        interval_low_cycles=measurement.interval_cycles[0] if measurement.interval_cycles else None,
        interval_high_cycles=measurement.interval_cycles[1] if measurement.interval_cycles else None,
    )


def judge(measurement: Measurement, work: Work, ceilings: Ceilings, regime: Regime) -> Measurement:
    """Refuse what physics does not allow: an ``ok`` result above a declared limit becomes ``impossible``.

    The rate limit is the unit's at the clock measured, at the maximum clock without a counter, or the sheet's peak where no
    rate per clock is known; the byte limit is the sheet's bandwidth, for cold results.  A derived (CPU) peak refuses nothing
    (``above_derived`` takes the fraction away), nor does one that stands in for a rate that the sheet does not list, nor how
    many products an emulation is known to take.
    """
    if measurement.outcome is not Outcome.OK or measurement.samples is None:
        return measurement
    p50_s = median_s(measurement.samples)
    if p50_s <= 0:
        return replace(measurement, outcome=Outcome.IMPOSSIBLE, reason="the median sample lasted no time or less")
    if ceilings.spec is None or ceilings.spec.derived:
        return measurement
    clock_hz = mean(measurement.telemetry.get("device_clock"))  # as counted: what samples say of it may be what is wrong
    unit = parse_pipe(work.pipe).rate if work.pipe and ceilings.spec.lists(work.pipe) else None
    limit_flop_s = ceilings.boost_flop_s(unit, clock_hz) or ceilings.peak_flop_s(unit)
    reason = ""
    if limit_flop_s and work.flops / p50_s > PHYSICAL_MARGIN * limit_flop_s:
        reason = f"{work.flops / p50_s / 1e12:.4g} tera-operations/s is above the {unit} limit of {limit_flop_s / 1e12:.4g}"
    bandwidth = ceilings.bandwidth_bytes_s
    if regime.cache == "cold" and bandwidth and work.compulsory_bytes / p50_s > PHYSICAL_MARGIN * bandwidth:
        reason = f"{work.compulsory_bytes / p50_s / 1e9:.4g} GB/s cold is above the memory bandwidth of {bandwidth / 1e9:.4g}"
    return replace(measurement, outcome=Outcome.IMPOSSIBLE, reason=reason) if reason else measurement


def above_derived(flop_s: float, peak_flop_s: float | None, ceilings: Ceilings) -> str:
    """Why a rate is no fraction of a peak: it passes one that was derived, which is an estimate; empty where it does not.

    A declared peak refuses such a result (see ``judge``); here the assumption is what was wrong, and the rate is kept.  Within
    ``PHYSICAL_MARGIN`` it may be the reading of the clock alone, and such a share is kept, and marked where it is shown.
    """
    spec = ceilings.spec
    if spec is None or not spec.derived or not peak_flop_s or flop_s <= PHYSICAL_MARGIN * peak_flop_s:
        return ""
    clock = spec.clocks.boost_hz.note
    why = f": its clock is {clock.removesuffix(' clock')}" if clock else ", an estimate"
    return f"over {100 * (PHYSICAL_MARGIN - 1):.0f} % above the derived peak{why}"


def bound(
    work: Work, p50_s: float, regime: Regime, ceilings: Ceilings, calibration: Calibration, clock_hz: float | None = None
) -> Bound:
    """The largest of a result's floors; ``launch`` when it takes under three empty-kernel times.

    ``cache`` where memory would be the largest but the data stays in the last-level cache: what limits is then that cache,
    whose bandwidth no sheet gives, so that the result has no declared roof.
    """
    if work.pipe in LINKS:  # however short: its bytes are those that busbw counts, and no memory's
        return Bound.LINK
    empty_s = calibration.empty_s(regime.dispatch)
    if empty_s is not None and p50_s < LAUNCH_MULTIPLE * empty_s:
        return Bound.LAUNCH
    by_data = Bound.CACHE if in_cache(regime.cache, work.compulsory_bytes, ceilings.llc_bytes) else Bound.MEMORY
    if not work.flops:
        return by_data if work.compulsory_bytes else Bound.LAUNCH
    compute_s, memory_s = floors_s(work, regime._replace(cache="cold"), ceilings, calibration, clock_hz)
    if compute_s is None:
        return Bound.UNKNOWN
    return by_data if memory_s is not None and memory_s >= compute_s else Bound.COMPUTE


def floors_s(
    work: Work, regime: Regime, ceilings: Ceilings, calibration: Calibration, clock_hz: float | None = None
) -> tuple[float | None, float | None]:
    """Shortest possible time by arithmetic and by memory, seconds; ``None`` where the ceiling is unknown or does not apply."""
    peak = (ceilings.boost_flop_s(work.pipe, clock_hz) if clock_hz else None) or ceilings.peak_flop_s(work.pipe)
    bandwidth = _memory_ceiling(ceilings, calibration, work, regime)
    return (
        work.flops / peak if peak and work.flops else None,
        work.compulsory_bytes / bandwidth if bandwidth and work.compulsory_bytes else None,
    )


def fraction(
    flop_s: float, bytes_s: float, arithmetic_intensity: float, peak_flop_s: float | None, bandwidth_bytes_s: float | None
) -> float | None:
    """Achieved over attainable rate, 0 to 1; without arithmetic the share of bandwidth.

    ``None`` without a peak; without a bandwidth (it is unknown, or the data sits in cache) the peak alone is the ceiling.
    """
    if not arithmetic_intensity:
        return bytes_s / bandwidth_bytes_s if bandwidth_bytes_s and bytes_s else None
    if not peak_flop_s:
        return None
    return flop_s / roof(peak_flop_s, bandwidth_bytes_s, [arithmetic_intensity])[0]


def empirical_fraction(
    row_flop_s: float,
    row_bytes_s: float,
    arithmetic_intensity: float,
    roofs: EmpiricalRoofs | None,
    in_cache: bool = False,
    memory_bound: bool = False,
) -> float | None:
    """The fraction of what this device has been seen to do; ``in_cache`` leaves its memory roof out.

    Of a result that is ``memory_bound`` the memory roof is the lower one, whatever rate of its format has been seen: the best
    may be its own, which memory held down.
    """
    if roofs is None:
        return None
    bandwidth = None if in_cache else roofs.bandwidth_bytes_s
    if memory_bound and bandwidth and row_bytes_s:
        return row_bytes_s / bandwidth
    return fraction(row_flop_s, row_bytes_s, arithmetic_intensity, roofs.peak_flop_s, bandwidth)


def in_cache(cache: str, compulsory_bytes: int, llc_bytes: int | None) -> bool:
    """Whether a result's data stays in the last-level cache between launches, so that memory is not its ceiling."""
    return cache == "warm" and llc_bytes is not None and compulsory_bytes <= llc_bytes


def roof(peak_flop_s: float, bandwidth_bytes_s: float | None, intensities: Sequence[float]) -> list[float]:
    """Attainable operations per second at each arithmetic intensity (FLOP per byte)."""
    if bandwidth_bytes_s is None:
        return [peak_flop_s for _ in intensities]
    return [min(peak_flop_s, intensity * bandwidth_bytes_s) for intensity in intensities]


def ridge_point(peak_flop_s: float, bandwidth_bytes_s: float) -> float:
    """The arithmetic intensity (FLOP per byte) from which the peak, not the memory, is the ceiling."""
    return peak_flop_s / bandwidth_bytes_s


def launch_times_s(samples: SampleSet) -> list[float]:
    """Seconds of one launch, for each kept sample."""
    return [duration * NS / samples.launches for duration in samples.durations_ns]


def median_s(samples: SampleSet) -> float:
    """Median seconds of one launch over all samples that were taken; over those kept in a set from before it was stored."""
    median_ns = median(samples.durations_ns) if samples.median_ns is None else samples.median_ns
    return median_ns * NS / samples.launches


def median_cycles(samples: SampleSet) -> float | None:
    """Median cycles of one launch; ``None`` where the clock was not counted over every sample."""
    return samples.median_cycles / samples.launches if samples.median_cycles else None


def launch_clock_hz(
    samples: SampleSet, telemetry: Mapping[str, Channel], power_w: float | None, info: DeviceInfo
) -> float | None:
    """Clock in Hz of a launch of median length, as the device counts it; ``None`` where nothing counts.

    Where it was counted over each sample, that is the median of their cycles over the median of their times.

    Else the counter tells the mean clock of all samples.  Where a power limit holds it down it steps to and fro, and a kernel
    takes the same cycles at each of its levels: the mean clock belongs to the mean time, and the median time to a clock of its
    own, which is the cycles of a launch on average over its median time.  On an H200 cycles of 8192^3 products repeat to 0.1 %
    this way, to 1.2 % as median time by mean clock.  Elsewhere the mean is the clock: what else takes samples from the median
    takes cycles.  A few long samples may take the mean far from the median: no clock is above the device's maximum.
    """
    in_cycles = median_cycles(samples)
    if in_cycles is not None:
        return in_cycles / median_s(samples)
    counted_hz = mean(telemetry.get("device_clock"))
    if counted_hz is None or not _is_held_down(mean(telemetry.get("sm_clock")), power_w, info):
        return counted_hz
    mean_s = samples.sum_ns * NS / samples.count / samples.launches
    return min(counted_hz * mean_s / median_s(samples), max(counted_hz, info.max_clock_hz or counted_hz))


def mean(channel: Channel | None) -> float | None:
    """Mean of a telemetry channel; ``None`` where it has no readings."""
    return sum(channel.values) / len(channel.values) if channel is not None and channel.values else None


def throttle(telemetry: Mapping[str, Channel], power_w: float | None, info: DeviceInfo) -> str | None:
    """Reasons that held the clock down and the share of readings that showed each; empty when none did, ``None`` when unread.

    Each reason is a channel ``throttle.<reason>`` of zeros and ones.  The power cap is named only where it took something:
    drivers set that bit at 407 of 700 W too, with the clock at its maximum.
    """
    reasons = {name: channel for name, channel in telemetry.items() if name.startswith(THROTTLE_PREFIX)}
    shares = {name.removeprefix(THROTTLE_PREFIX): mean(channel) for name, channel in reasons.items()}
    if not any(share is not None for share in shares.values()):
        return None
    if not _is_held_down(mean(telemetry.get("sm_clock")), power_w, info):
        shares = {name: share for name, share in shares.items() if name not in POWER_CAPS}
    return ", ".join(f"{name} {share:.0%}" for name, share in sorted(shares.items()) if share)


def _is_held_down(driver_clock_hz: float | None, power_w: float | None, info: DeviceInfo) -> bool:
    """Whether the driver's own clock was under its maximum with power near its limit; where the clock is not known, whether
    power was at it.
    """
    share = power_w / info.power_limit_w if power_w and info.power_limit_w else None
    if driver_clock_hz and info.max_clock_hz:
        return driver_clock_hz < FULL_CLOCK_SHARE * info.max_clock_hz and (share is None or share >= LOCKED_BELOW_SHARE)
    return share is not None and share >= POWER_CAP_SHARE


def _declared_fraction(
    work: Work, p50_s: float, regime: Regime, ceilings: Ceilings, calibration: Calibration, peak_flop_s: float | None
) -> float | None:
    """The fraction of a declared ceiling; ``None`` where memory is the ceiling and no sheet declares its bandwidth.

    A CPU's sheet is derived and has no bandwidth: judging by the measured one would call a measurement a specification.
    """
    intensity, bandwidth = work.arithmetic_intensity, _memory_ceiling(ceilings, calibration, work, regime)
    if bandwidth and not ceilings.bandwidth_bytes_s and intensity * bandwidth < (peak_flop_s or float("inf")):
        return None
    return fraction(work.flops / p50_s, work.compulsory_bytes / p50_s, intensity, peak_flop_s, bandwidth)


def _memory_ceiling(ceilings: Ceilings, calibration: Calibration, work: Work, regime: Regime) -> float | None:
    """The sheet's bandwidth, or the calibrated one where no sheet declares it; ``None`` where the data sits in cache.  Of what
    crosses a link, the link's.
    """
    if work.pipe in LINKS:
        return ceilings.link_bytes_s(work.pipe)
    if in_cache(regime.cache, work.compulsory_bytes, ceilings.llc_bytes):
        return None
    return ceilings.bandwidth_bytes_s or calibration.best_bytes_s


def _sustained_power_w(measurement: Measurement, regime: Regime) -> float | None:
    """Mean power of a sustained window.  A burst's windows are shorter than the sensor takes to follow the load."""
    return mean(measurement.telemetry.get("power")) if regime.load == "sustained" else None


def _quantisation_error(measurement: Measurement) -> float | None:
    """What the kernel says rounding the data costs the product, relative; ``None`` where it says no number of 0 or more."""
    told = measurement.description.get("quantisation_error")
    if not isinstance(told, int | float) or isinstance(told, bool):
        return None
    return float(told) if 0 <= told < float("inf") else None


def _has_untimed_work(samples: SampleSet) -> bool:
    """Whether the device did more in the window than the launches: cache flushes, a kernel that spins, copies of results."""
    return samples.method == "spin" or any(samples.details.get(name) for name in ("flush_bytes", "untimed"))


def _energy_per_launch_j(measurement: Measurement, samples: SampleSet, regime: Regime) -> float | None:
    """From the energy counter over a sustained window long enough to resolve its steps."""
    energy = measurement.telemetry.get("energy")
    if regime.load != "sustained" or energy is None or len(energy.values) < 2 or _has_untimed_work(samples):
        return None
    if energy.times_s[-1] - energy.times_s[0] < ENERGY_WINDOW_S:
        return None
    return (energy.values[-1] - energy.values[0]) / (samples.count * samples.launches)
