"""What a case did over time: its samples, and clock, power, temperature and throttle reasons beside them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from suite.backend import Channel
from suite.measure.statistics import median, quantile
from suite.measure.timeline import sample_times_s
from suite.measurement import Measurement, SampleSet
from suite.report.timeaxis import TimeAxis, time_axis
from suite.roofline import POWER_CAPS, launch_times_s
from suite.telemetry import THROTTLE_PREFIX

COUNTED = "device_clock"
BOTH_CLOCKS = (
    "the device clock is counted on the device, the sm clock is what the driver reports: they may differ, and fractions use "
    "the counted one"
)
OF_SAMPLES = "the device clock is counted over each sample, idle time between them left out, and fractions use it"
LAGGING = "a burst is over before the sensor of power follows it: this is of before"
REPORTED_CLOCK = "the sm clock is what the driver reports; none was counted on the device, so that no fraction is at the clock"


class Track(NamedTuple):
    """One quantity over time.  ``channel`` is its name in telemetry, without ``throttle.``, and ``name`` the same for people.

    ``backward``: each value covers the time that ends with it, not the time that begins.  ``of_samples``: each value covers a
    sample, not a stretch of the time in which samples were taken.
    """

    channel: str
    unit: str
    times_s: tuple[float, ...]
    values: tuple[float, ...]
    backward: bool = False
    of_samples: bool = False

    @property
    def is_counted(self) -> bool:
        """Whether it is a clock that the device counted itself."""
        return self.channel == COUNTED

    @property
    def name(self) -> str:
        return self.channel.replace("_", " ")


class Bin(NamedTuple):
    """The values that share one part of an axis."""

    p05: float
    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything of one case on one axis of seconds since its first telemetry window opened.

    ``launches`` are the seconds of one launch at each kept sample, empty times where the store does not say when they were
    taken.  ``clocks`` are the device's own first.  A channel without readings is left out.
    """

    axis: TimeAxis | None
    launches: Track
    clocks: tuple[Track, ...]
    power: Track | None
    temperature: Track | None
    throttle: tuple[Track, ...]

    @property
    def timed(self) -> bool:
        """Whether it is known when the samples were taken."""
        return bool(self.launches.times_s)

    @property
    def about_clocks(self) -> str:
        """Which clock is which, and which of them fractions use; empty where no driver reports one."""
        reported = [clock for clock in self.clocks if not clock.is_counted]
        if any(clock.of_samples for clock in self.clocks):
            return f"{OF_SAMPLES}; the sm clock is what the driver reports" if reported else OF_SAMPLES
        if not reported:
            return ""
        return BOTH_CLOCKS if len(self.clocks) > 1 else REPORTED_CLOCK


def timeline(measured: Measurement) -> Timeline | None:
    """Put one measurement in order; ``None`` unless it has samples."""
    samples = measured.samples
    if samples is None or not samples.durations_ns:
        return None
    channels = measured.telemetry
    launches = Track("time of one launch", "s", tuple(sample_times_s(samples)), tuple(launch_times_s(samples)))
    clocks = [_of_samples(samples, launches.times_s) or _track(channels, COUNTED), _track(channels, "sm_clock")]
    beside = [*clocks, _track(channels, "power"), _track(channels, "temperature"), *_throttle(channels)]
    readings = (time_s for track in beside if track for time_s in track.times_s)
    return Timeline(
        axis=time_axis(((span.began_s, span.ended_s) for span in samples.spans), readings),
        launches=launches,
        clocks=tuple(clock for clock in clocks if clock),
        power=_track(channels, "power"),
        temperature=_track(channels, "temperature"),
        throttle=tuple(_throttle(channels)),
    )


def binned(values: Sequence[float], cells: Sequence[int]) -> dict[int, Bin]:
    """Values by the part of an axis that each falls into, in the order of the parts; empty parts are left out."""
    groups: dict[int, list[float]] = {}
    for cell, value in zip(cells, values, strict=True):
        groups.setdefault(cell, []).append(value)
    return {cell: Bin(quantile(group, 0.05), median(group), quantile(group, 0.95)) for cell, group in sorted(groups.items())}


def cells_of(track: Track, axis: TimeAxis, count: int) -> list[int]:
    """Which of ``count`` equal parts of the axis each reading falls into."""
    return [axis.cell(time_s, count) for time_s in track.times_s]


def cells_in_order(values: int, count: int) -> list[int]:
    """The same for ``values`` one after another, where their times are not known."""
    return [index * count // values for index in range(values)]


def share_set(reason: Track) -> float:
    """The share of readings that named a throttle reason."""
    return sum(map(bool, reason.values)) / len(reason.values)


def uncounted(reasons: Iterable[Track], throttle: str | None) -> str:
    """What to know of a reason that drivers set at the maximum clock too, where the result is not called throttled by it.

    ``throttle`` is the result's (see ``suite.roofline.throttle``).  Empty where there is no such reason.
    """
    set_too = [each.name for each in reasons if each.channel in POWER_CAPS and each.channel not in (throttle or "")]
    return f"{set_too[0]} counts as throttling only where the driver's clock is under its maximum" if set_too else ""


def _of_samples(samples: SampleSet, times_s: Sequence[float]) -> Track | None:
    """The clock that was counted over each kept sample, where it was over every one and it is known when."""
    if not times_s or len(samples.clocks_khz) != len(times_s):
        return None
    return Track(COUNTED, "Hz", tuple(times_s), tuple(clock * 1e3 for clock in samples.clocks_khz), of_samples=True)


def _track(channels: Mapping[str, Channel], name: str) -> Track | None:
    channel = channels.get(name)
    if channel is None:
        return None
    pairs = [(t, v) for t, v in zip(channel.times_s, channel.values, strict=False) if isfinite(t) and isfinite(v)]
    if not pairs:
        return None
    times_s, values = zip(*pairs, strict=True)
    return Track(name.removeprefix(THROTTLE_PREFIX), channel.unit, times_s, values, backward=name == COUNTED)


def _throttle(channels: Mapping[str, Channel]) -> Iterator[Track]:
    for name in channels:
        if name.startswith(THROTTLE_PREFIX) and (found := _track(channels, name)):
            yield found
