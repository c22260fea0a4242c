"""Batch size as a lever: one weight matrix multiplied by more and more rows, which each B read from memory is used for.

With few rows a product is bound by reading the weights, whatever multiplies them; with many by arithmetic.  Where one becomes
the other differs from format to format, for narrow weights are read sooner.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from suite.case import unusual_data
from suite.outcome import Bound, Evidence
from suite.report.roofs import drawable
from suite.report.words import counted, doubtful, rate_unit, si
from suite.rows import ResultRow

ABOUT = (
    "One weight matrix and more and more rows beside it: how the rate climbs the roofline as each byte of weights is used for "
    "more operations, and from which batch size on arithmetic is the limit in place of memory."
)
LEAST_SIZES = 4  # of one line: fewer are no curve
JOB = "gemm"
SIZES = ("m", "n", "k")
USUAL = {"layout": "nt"}  # what is not worth a word
READING = (Bound.MEMORY, Bound.CACHE)  # weights that are warm come from the cache, where it holds them
MOST_STRETCHES = 4  # that are told one by one


class Point(NamedTuple):
    """One result, and the rows of A that it had."""

    m: int
    row: ResultRow


class Crossing(NamedTuple):
    """The last result that reading bounds, from memory or cache, and the first that arithmetic does, as every later one."""

    before: Point
    after: Point

    @property
    def source(self) -> str:
        """What was read from before: ``memory`` or ``cache``."""
        return str(self.before.row.bound)


@dataclass(frozen=True, slots=True)
class Line:
    """One format label by one implementation, by batch size; ``switches`` are those that tell it from another line."""

    number: int
    points: tuple[Point, ...]
    switches: str = ""

    @property
    def first(self) -> ResultRow:
        return self.points[0].row

    @property
    def name(self) -> str:
        return f"{self.first.format_label} {self.switches}".rstrip() + f", {self.by}"

    @property
    def by(self) -> str:
        return f"{self.first.implementation}, {self.first.backend}"

    @property
    def crossing(self) -> Crossing | None:
        """From reading to arithmetic, by the bounds that results have; ``None`` where the line does not hold both sides of it.

        Results between the two may have another bound: one that only a launch limits says nothing of either.
        """
        later = len(self.points)
        while later and self.points[later - 1].row.bound == Bound.COMPUTE:
            later -= 1
        before = next((point for point in reversed(self.points[:later]) if point.row.bound in READING), None)
        if before is None or later == len(self.points):
            return None
        return Crossing(before, self.points[later])

    @property
    def told(self) -> str:
        """Where arithmetic becomes the limit, in words."""
        crossing, bounds = self.crossing, {point.row.bound for point in self.points}
        if crossing is not None:
            return f"{crossing.source} bound up to M = {crossing.before.m}, compute bound from M = {crossing.after.m}"
        if len(bounds) == 1:
            return f"{bounds.pop() or Bound.UNKNOWN} bound throughout"
        stretches = list(self._stretches())
        if len(stretches) > MOST_STRETCHES:
            return f"bound by {' and '.join(sorted(str(bound or Bound.UNKNOWN) for bound in bounds))} in turns"
        return ", ".join(stretches)

    def _stretches(self) -> Iterator[str]:
        """Neighbours of one bound each: ``compute bound from M = 1 to 16``."""
        for bound, group in groupby(self.points, key=lambda point: str(point.row.bound or Bound.UNKNOWN)):
            sizes = [point.m for point in group]
            yield f"{bound} bound " + (f"at M = {sizes[0]}" if len(sizes) == 1 else f"from M = {sizes[0]} to {sizes[-1]}")


@dataclass(frozen=True, slots=True)
class Lever:
    """One weight matrix under one regime; ``sizes`` are all batch sizes that any line has.

    ``left_out`` counts the results of its run that have a size which is none: which lever they belong to nobody can tell.
    """

    run: str
    n: int
    k: int
    regime: str
    lines: tuple[Line, ...]
    sizes: tuple[int, ...]
    also: str = ""
    left_out: int = 0

    @property
    def title(self) -> str:
        """``N 8192, K 8192, cold/sustained/device: M 1 to 8192``."""
        return f"N {self.n}, K {self.k}{self.also}, {self.regime}: M {self.sizes[0]} to {self.sizes[-1]}"

    def cells(self, m: int) -> tuple[str, ...]:
        """Of one batch size what each line has: ``312 TFLOP/s, memory``; a dash where it has none."""
        found = [next((point.row for point in line.points if point.m == m), None) for line in self.lines]
        return tuple("–" if row is None else _cell(row) for row in found)


def levers(rows: Sequence[ResultRow]) -> tuple[Lever, ...]:
    """The levers among ``rows``, all of one device: the largest weight matrix first, in the order planned where they are equal.

    A weight matrix has one where some implementation multiplied it by ``LEAST_SIZES`` batch sizes.
    """
    groups: dict[tuple[str, ...], list[ResultRow]] = {}
    left_out: Counter[str] = Counter()
    for row in rows:
        if row.job != JOB or not drawable(row) or not row.params.keys() >= set(SIZES):
            continue
        if not all(_is_size(row.params[name]) for name in SIZES):
            left_out[row.run] += 1
            continue
        others = {name: value for name, value in row.params.items() if name != "m"}
        key = (row.run, row.evidence, json.dumps(others, sort_keys=True), row.distribution, row.regime)
        groups.setdefault(key, []).append(row)
    found = [lever for group in groups.values() if (lever := _lever(group, left_out[group[0].run])) is not None]
    return tuple(sorted(found, key=lambda lever: -lever.n * lever.k))


def _is_size(value: object) -> bool:
    """Whether a stored size is one: a store may be damaged, or written by another program."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _lever(rows: Sequence[ResultRow], left_out: int) -> Lever | None:
    groups: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in rows:
        switches = json.dumps(row.switches, sort_keys=True)
        groups.setdefault((row.format_label, row.implementation, row.backend, switches), []).append(row)
    curves = {key: points for key, group in groups.items() if len(points := _points(group)) >= LEAST_SIZES}
    if not curves:
        return None
    several = [key[:3] for key in curves]
    lines = tuple(
        Line(number, points, _written(points[0].row.switches) if several.count(key[:3]) > 1 else "")
        for number, (key, points) in enumerate(curves.items(), 1)
    )
    first = lines[0].first
    sizes = sorted({point.m for line in lines for point in line.points})
    n, k = first.params["n"], first.params["k"]
    return Lever(first.run, n, k, first.regime, lines, tuple(sizes), _also(first), left_out)


def _points(rows: Sequence[ResultRow]) -> tuple[Point, ...]:
    """By batch size, the latest result of each."""
    latest = {row.params["m"]: row for row in sorted(rows, key=lambda row: (row.attempt, row.result_id))}
    return tuple(Point(m, latest[m]) for m in sorted(latest))


def _also(row: ResultRow) -> str:
    """What else sets the products apart, with a comma before each; often nothing."""
    others = {name: value for name, value in row.params.items() if name not in SIZES and USUAL.get(name) != value}
    data = unusual_data(row.distribution)
    kind = [] if row.evidence == Evidence.MEASURED else [row.evidence]
    return "".join(f", {part}" for part in [*(f"{name} {value}" for name, value in sorted(others.items())), *data, *kind])


def _written(switches: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(switches.items()))


def _cell(row: ResultRow) -> str:
    doubt = ", in doubt" if doubtful(row) else ""  # the table of results says why
    return f"{si(row.flop_s, rate_unit(row.multiplied))}, {row.bound or Bound.UNKNOWN}{doubt}"


def notes(lever: Lever) -> Iterator[str]:
    """A line for each line of the figure: its number, whose it is, and where it becomes bound by arithmetic; then what is
    missing from it.
    """
    for line in lever.lines:
        emulated = " (emulated)" if any(point.row.execution == "emulated" for point in line.points) else ""
        yield f"{line.number}: {line.name}{emulated}: {line.told}"
    if lever.left_out:
        yield f"Left out: {counted(lever.left_out, 'result')} of this run whose M, N or K is no size."
