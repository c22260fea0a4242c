"""A case over time for a terminal: its samples, and beneath them clock, power, temperature and throttle reasons."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from suite.report.printable import printable
from suite.report.timeaxis import TimeAxis
from suite.report.timeline import LAGGING, Bin, Timeline, Track, binned, cells_in_order, share_set, uncounted
from suite.report.words import counted, duration, percent, si
from suite.show.screen import Screen
from suite.show.tracks import (
    Scale,
    axis_rows,
    band_rows,
    band_scale,
    by_column,
    line_rows,
    samples_by_column,
    strip_row,
)

SAMPLE_ROWS = 7
LINE_ROWS = 3
LEAST_COLUMNS = 20
LONGEST_NAME = 20  # of a throttle reason, beside its strip
SI_UNITS = ("Hz", "W")


class Limits(NamedTuple):
    """The device's power limit, and the throttling that a result is said to have had (see ``suite.roofline.throttle``).

    ``burst``: the samples were over before the sensor of power had followed them.
    """

    power_w: float | None
    throttle: str | None
    burst: bool = False


class Panel(NamedTuple):
    """A part of the figure before its width is known: a title, the labels of its rows, and what draws them."""

    title: str
    labels: Sequence[str]
    draw: Callable[[int], list[str]]


def timeline_lines(found: Timeline, limits: Limits, screen: Screen) -> Iterator[str]:
    """The figure; where it is not known when samples were taken they come in their order, on an axis of their own."""
    if not found.timed:
        yield from _figure([_ordered(found.launches, screen)], None, screen)
    if found.axis is not None:
        yield from [] if found.timed else [""]
        yield from _windows(found.axis)
        samples = [_samples(found.launches, found.axis, screen)] if found.timed else []
        beside = [*_lines(found, found.axis, limits, screen), *_strips(found, found.axis, limits, screen)]
        yield from _figure([*samples, *beside], found.axis, screen)
    yield from _never_set(found.throttle, screen)
    if found.about_clocks:
        yield from (f"  {screen.paint(line, 'dim')}" for line in _wrapped(found.about_clocks, screen))


def _figure(panels: Sequence[Panel], axis: TimeAxis | None, screen: Screen) -> Iterator[str]:
    """Panels one under another, their rows aligned, the seconds beneath the last."""
    edge = max((len(label) for panel in panels for label in panel.labels), default=0)
    columns = max(LEAST_COLUMNS, screen.columns - edge - 4)
    for panel in panels:
        yield from (f"  {screen.paint(line, 'dim')}" for line in _wrapped(panel.title, screen))
        for label, row in zip(panel.labels, panel.draw(columns), strict=True):
            yield f"  {label:>{edge}} |{row}".rstrip()
    if axis is not None:
        line, labels = axis_rows(axis, columns)
        yield f"  {'':>{edge}} |{line}"
        yield f"  {'s':>{edge}}  {labels}"


def _windows(axis: TimeAxis) -> Iterator[str]:
    if axis.gaps:
        yield f"  {counted(len(axis.stretches), 'window')}; the idle time between them is cut short (//)"


def _samples(track: Track, axis: TimeAxis, screen: Screen) -> Panel:
    scale = band_scale(samples_by_column(track, axis, screen.columns))

    def draw(columns: int) -> list[str]:
        return band_rows(samples_by_column(track, axis, columns), scale, columns, SAMPLE_ROWS, screen.blocks)

    return Panel(_band_title(track, scale), _ends(scale, duration, SAMPLE_ROWS), draw)


def _ordered(track: Track, screen: Screen) -> Panel:
    """Samples one after another: a store from before their times were kept."""

    def bins(columns: int) -> dict[int, Bin]:
        return binned(track.values, cells_in_order(len(track.values), min(columns, len(track.values))))

    def draw(columns: int) -> list[str]:
        return band_rows(bins(columns), scale, columns, SAMPLE_ROWS, screen.blocks)

    scale = band_scale(bins(screen.columns))

    title = f"{_band_title(track, scale)}; in the order they were taken, this store does not say when"
    return Panel(title, _ends(scale, duration, SAMPLE_ROWS), draw)


def _band_title(track: Track, scale: Scale) -> str:
    slowest = max(track.values)
    beyond = f"; ^ above the scale, slowest {duration(slowest)}" if slowest > scale.high else ""
    return f"{track.name}: median of each column, p05 to p95{beyond}"


def _lines(found: Timeline, axis: TimeAxis, limits: Limits, screen: Screen) -> Iterator[Panel]:
    yield from _clock(found.clocks, axis, screen)
    if found.power is not None:
        limit = f" of {si(limits.power_w, 'W')} allowed" if limits.power_w else "; its limit is not known"
        limit += f"; {LAGGING}" if limits.burst else ""
        yield _line(found.power, axis, screen, limit, Scale(0.0, limits.power_w) if limits.power_w else None)
    if found.temperature is not None:
        yield _line(found.temperature, axis, screen)


def _clock(clocks: Sequence[Track], axis: TimeAxis, screen: Screen) -> Iterator[Panel]:
    """The device's own clock; a single reading of it has no course, which the driver's then shows."""
    for clock in clocks:
        counted_how = "counted by the device over each sample" if clock.of_samples else "counted by the device"
        how = f" ({counted_how})" if clock.is_counted else " (as the driver reports it)"
        yield _line(clock, axis, screen, how)
        if len(clock.values) > 1:
            return


def _line(track: Track, axis: TimeAxis, screen: Screen, remark: str = "", scale: Scale | None = None) -> Panel:
    """One reading a column; what did not change is its title alone."""

    def write(value: float) -> str:
        return si(value, track.unit) if track.unit in SI_UNITS else f"{value:.4g} {printable(track.unit)}"

    low, high = min(track.values), max(track.values)
    readings = counted(len(track.values), "reading")
    if low == high:
        return Panel(f"{track.name}: {write(low)} in {readings}{remark}", (), lambda columns: [])
    shown = Scale(low, high) if scale is None else Scale(min(scale.low, low), max(scale.high, high))

    def draw(columns: int) -> list[str]:
        return line_rows(by_column(track, axis, columns), shown, columns, LINE_ROWS, screen.blocks)

    return Panel(f"{track.name}: {write(low)} to {write(high)}{remark}", _ends(shown, write, LINE_ROWS), draw)


def _strips(found: Timeline, axis: TimeAxis, limits: Limits, screen: Screen) -> Iterator[Panel]:
    reasons = [reason for reason in found.throttle if any(reason.values)]
    if not reasons:
        return
    shares = ", ".join(f"{printable(reason.name)} {percent(share_set(reason))}" for reason in reasons)
    rows = [(printable(reason.name)[:LONGEST_NAME], reason) for reason in reasons]

    def draw(columns: int) -> list[str]:
        return [strip_row(by_column(reason, axis, columns, max), columns, screen.blocks) for _, reason in rows]

    remark = uncounted(reasons, limits.throttle)
    title = f"throttle reasons that were set, by share of readings: {shares}"
    yield Panel(f"{title}; {remark}" if remark else title, [name for name, _ in rows], draw)


def _never_set(reasons: Iterable[Track], screen: Screen) -> Iterator[str]:
    names = [printable(reason.name) for reason in reasons if not any(reason.values)]
    if names:
        yield from (f"  {line}" for line in _wrapped(f"throttle reasons never set: {', '.join(names)}", screen))


def _wrapped(text: str, screen: Screen) -> list[str]:
    return textwrap.wrap(text, max(LEAST_COLUMNS, screen.columns - 2))


def _ends(scale: Scale, write: Callable[[float], str], height: int) -> list[str]:
    """Labels of the highest and the lowest row."""
    return [write(scale.high), *[""] * (height - 2), write(scale.low)]
