"""One case over time for the HTML page, small enough to be there for every case: the page draws it when it is opened.

Series are cut to at most ``POINTS`` values, and each value to 4,096 steps of its series' range, two characters each.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from suite.measurement import Measurement, SampleSet
from suite.report.floors import Ground, floors, missed_by, times_over, verdict
from suite.report.printable import clipped, printable
from suite.report.timeaxis import TimeAxis
from suite.report.timeline import (
    COUNTED,
    LAGGING,
    Timeline,
    Track,
    binned,
    cells_in_order,
    cells_of,
    share_set,
    timeline,
    uncounted,
)
from suite.report.words import counted, cycles, duration, energy, percent, timing
from suite.rows import ResultRow

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
STEPS = len(DIGITS) ** 2 - 1
POINTS = 200  # of one reading over time
SAMPLE_POINTS = 120  # of the samples, which have three values each: p05, median and p95


def case_data(row: ResultRow, measured: Measurement, ground: Ground) -> dict[str, Any] | None:
    """JSON values of one case; ``None`` where it has no time, or no samples to show.

    ``axis`` holds stretches as (from, to) in seconds and (left, right) on the axis of 0 to 1, or is ``None`` where nothing
    says when anything was taken.  ``samples`` are in their order where ``ordered``.
    """
    samples, found = measured.samples, timeline(measured)
    if row.p50_s is None or samples is None or found is None:
        return None
    below = floors(row, ground)
    return {
        "verdict": verdict(row, below),
        "floors": [[f.name, duration(f.time_s), times_over(missed_by(row, f)), f.basis, int(f.applies)] for f in below],
        "taken": _taken(samples, row),
        "ordered": not found.timed,
        "samples": _samples(found),
        **(_beside(found, found.axis, ground.ceilings.info.power_limit_w) if found.axis is not None else {}),
        "about_clocks": found.about_clocks,
        "remark": "; ".join(_remarks(row, found)),
        "missing": _missing(measured, found),
    }


def packed(values: Iterable[float], low: float, high: float) -> str:
    """Each value as a step of the range, in two characters of ``DIGITS``."""
    width = (high - low) or 1.0
    steps = (round(min(1.0, max(0.0, (value - low) / width)) * STEPS) for value in values)
    return "".join(DIGITS[step // len(DIGITS)] + DIGITS[step % len(DIGITS)] for step in steps)


def _taken(samples: SampleSet, row: ResultRow) -> str:
    each = f" of {counted(samples.launches, 'launch', 'launches')} each" if samples.launches > 1 else ""
    said = [f"{counted(samples.count, 'sample')}{each}, by {samples.method}: median {timing(row)}"]
    if row.interval_s is not None:
        said.append(f"its 95 % interval {duration(row.interval_s[0])} to {duration(row.interval_s[1])}")
    if row.p05_s is not None and row.p95_s is not None:
        said.append(f"p05 {duration(row.p05_s)}, p95 {duration(row.p95_s)}")
    if row.p50_cycles:
        said.append(f"{cycles(row)} cycles")
    if row.energy_j is not None:
        said.append(f"{energy(row)} a launch")
    return ", ".join(said)


def _remarks(row: ResultRow, found: Timeline) -> Iterator[str]:
    if said := uncounted((reason for reason in found.throttle if any(reason.values)), row.throttle):
        yield said
    if found.power is not None and row.load == "burst":
        yield f"of power: {LAGGING}"


def _missing(measured: Measurement, found: Timeline) -> str:
    """Why neither clock nor power stands beneath the samples; empty where one does."""
    if found.clocks or found.power:
        return ""
    silent = ((name, measured.telemetry.get(name)) for name in (COUNTED, "sm_clock", "power"))
    reasons = (
        f"{name.replace('_', ' ')}: {clipped(printable(each.unavailable))}"
        for name, each in silent
        if each and each.unavailable
    )
    return "; ".join(reasons) or "clock and power were not read on this device"


def _samples(found: Timeline) -> dict[str, Any]:
    """Median, p05 and p95 of at most ``SAMPLE_POINTS`` groups of samples that follow each other."""
    track, count = found.launches, min(SAMPLE_POINTS, len(found.launches.values))
    if found.timed and found.axis is not None:
        cells = cells_of(track, found.axis, SAMPLE_POINTS)
    else:
        cells = cells_in_order(len(track.values), count)
    bins = binned(track.values, cells)
    parts = SAMPLE_POINTS if found.timed else count
    low, high = min(each.p05 for each in bins.values()), max(each.p95 for each in bins.values())
    band = {name: packed((getattr(each, name) for each in bins.values()), low, high) for name in ("p05", "p95")}
    alone = all(each.p05 == each.p95 for each in bins.values())
    return {
        "x": packed(((cell + 0.5) / parts for cell in bins), 0, 1),
        "range": [_short(low), _short(high)],
        "y": packed((each.median for each in bins.values()), low, high),
        **({} if alone else band),
    }


def _beside(found: Timeline, axis: TimeAxis, power_limit_w: float | None) -> dict[str, Any]:
    times: list[str] = []
    stretches = [[*map(_short, (s.began_s, s.ended_s)), round(s.left, 4), round(s.right, 4)] for s in axis.stretches]
    return {
        "axis": stretches,
        "ticks": [[round(tick.at, 4), tick.label, int(tick.first)] for tick in axis.ticks()],
        "clocks": [_track(clock, axis, times) for clock in found.clocks],
        "power": _track(found.power, axis, times) if found.power else None,
        "limit": power_limit_w,
        "temperature": _track(found.temperature, axis, times) if found.temperature else None,
        "throttle": [_runs(reason, axis) for reason in found.throttle if any(reason.values)],
        "times": times,
    }


def _track(track: Track, axis: TimeAxis, times: list[str]) -> dict[str, Any]:
    """Every reading, or where there are more than ``POINTS`` the median of each part of the axis.

    Their places go to ``times``, once for all channels that were read together.
    """
    at: Sequence[float] = [axis.at(time_s) for time_s in track.times_s]
    values: Sequence[float] = track.values
    if len(values) > POINTS:
        bins = binned(values, cells_of(track, axis, POINTS))
        at, values = [(cell + 0.5) / POINTS for cell in bins], [each.median for each in bins.values()]
    low, high, places = min(values), max(values), packed(at, 0, 1)
    if places not in times:
        times.append(places)
    return {
        "name": track.name,
        "at": times.index(places),
        "range": [_short(low), _short(high)],
        "y": packed(values, low, high),
        **({"backward": 1} if track.backward else {}),
    }


def _runs(reason: Track, axis: TimeAxis) -> list[Any]:
    """A reason's name, the share of readings that named it, and the parts of the axis in which one did."""
    found: dict[tuple[int, int], bool] = {}
    for time_s, cell, value in zip(reason.times_s, cells_of(reason, axis, POINTS), reason.values, strict=True):
        place = (axis.stretch_of(time_s), cell)
        found[place] = found.get(place, False) or bool(value)
    runs = []
    for (_, is_set), group in groupby(found.items(), key=lambda each: (each[0][0], each[1])):
        cells = [cell for (_, cell), _ in group]
        if is_set:
            runs.append([cells[0] / POINTS, (cells[-1] + 1) / POINTS])
    return [reason.name, percent(share_set(reason)), runs]


def _short(value: float) -> float:
    return float(f"{value:.6g}")
