"""The precision ladder: one shape in several formats, what each of them gives in speed and costs in accuracy."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suite.case import USUAL_DATA
from suite.outcome import Outcome
from suite.report.ladder_shape import Shape, shapes_of
from suite.report.roofs import doubts, drawable
from suite.report.speed import Speed, speed
from suite.report.words import doubtful, flop_per_j, marks
from suite.rows import ResultRow

ABOUT = (
    "One shape in several number formats: how fast each is, and what rounding the data to it costs the product. The error is "
    "that of the data alone, whichever unit multiplies them."
)
LEAST_FORMATS = 3  # of one shape: two are a comparison


@dataclass(frozen=True, slots=True)
class Rung:
    """One format label by one implementation.

    ``row`` is its result on the ladder's data, or on others where it has none on those.  ``errors`` has the quantisation
    error by kind of data, where it is known.  ``switches`` are those that tell it from another rung of the same label.
    """

    number: int
    row: ResultRow
    errors: Mapping[str, float]
    speed: Speed | None
    switches: str = ""

    @property
    def name(self) -> str:
        return f"{self.row.format_label} {self.switches}".rstrip()

    @property
    def error(self) -> float | None:
        """The quantisation error on the data that the rate was measured on."""
        return self.errors.get(self.row.distribution)

    @property
    def execution(self) -> str:
        """``native, fp8 pipe`` or ``emulated, bf16 pipe``: the unit that multiplied, by whose peak the result is judged."""
        return f"{self.row.execution}, {self.row.pipe} pipe" if self.row.pipe else self.row.execution

    @property
    def by(self) -> str:
        return f"{self.row.implementation}, {self.row.backend}"

    @property
    def marks(self) -> str:
        """What to know before trusting the number, but for the emulation, which ``execution`` says."""
        return "; ".join(mark for mark in marks(self.row) if mark != "emulated")

    @property
    def flop_per_j(self) -> float | None:
        """Useful operations per joule; energy is known for sustained windows of 2 s and more."""
        return flop_per_j(self.row)


@dataclass(frozen=True, slots=True)
class Ladder:
    """One shape under one regime in three or more format labels, in the order in which they were planned.

    ``distributions`` are the kinds of data for which an error is known; ``untimed`` says of the other cases what they ended as.
    ``base`` is the format that ratios are to, ``baseline`` a result of it: of this run but where only another run of the device
    has one that is clean.  ``bases`` are what the ratios of the rungs are to, one for each kind of data that rates are on.
    """

    run: str
    shape: str
    regime: str
    base: str
    rungs: tuple[Rung, ...]
    baseline: ResultRow | None
    distributions: tuple[str, ...]
    untimed: tuple[str, ...]
    bases: tuple[ResultRow, ...] = ()

    @property
    def title(self) -> str:
        labels = {rung.row.format_label for rung in self.rungs}
        return f"{self.shape}, {self.regime}: {len(labels)} formats"

    @property
    def base_doubt(self) -> str:
        """Why the bases of ratios are in doubt, as ``contended``; empty where they are not."""
        return ", ".join(dict.fromkeys(said for base in self.bases if (said := doubts(base))))

    @property
    def note(self) -> str:
        """On which data, against what, and what is missing."""
        data = ", ".join(dict.fromkeys(rung.row.distribution for rung in self.rungs))
        parts = [f"Rates on {data} data"]
        if self.baseline is not None:
            elsewhere = f" in run {self.baseline.run}" if self.baseline.run != self.run else ""
            parts.append(f"the fastest {self.base} is by {self.baseline.implementation}{elsewhere}")
        if self.base_doubt:
            parts.append(f"that {self.base} is {self.base_doubt}, so that every ratio to it is in doubt")
        missing = f". Without a rate: {', '.join(self.untimed)}" if self.untimed else ""
        return f"{'; '.join(parts)}{missing}."


def ladders(rows: Sequence[ResultRow]) -> tuple[Ladder, ...]:
    """The ladders among ``rows``, all of one device: the largest shape first, of its regimes the one of most formats.

    A small shape tells of launches as much as of formats.
    """
    groups: dict[tuple[str, Shape], list[ResultRow]] = {}
    for row in rows:
        for shape in shapes_of(row):
            groups.setdefault((row.run, shape), []).append(row)
    found = [
        _ladder(shape, group, _bases(run, shape, groups))
        for (run, shape), group in groups.items()
        if _formats(group) >= LEAST_FORMATS
    ]
    return tuple(sorted(found, key=_place))


def _place(ladder: Ladder) -> tuple[int, int]:
    rows = [rung.row for rung in ladder.rungs]
    return -rows[0].flops, -_formats(rows)


def _formats(rows: Sequence[ResultRow]) -> int:
    return len({row.format_label for row in rows if drawable(row)})


def _bases(run: str, shape: Shape, groups: Mapping[tuple[str, Shape], Sequence[ResultRow]]) -> list[ResultRow]:
    """The clean bases of the same shape under the same regime in other runs of the device, the newest first."""
    others = [group for (other, same), group in groups.items() if other != run and same == shape]
    bases = (row for group in others for row in group if drawable(row) and row.format_label == shape.baseline)
    return sorted((row for row in bases if not doubtful(row)), key=lambda row: row.finished_at, reverse=True)


def _ladder(shape: Shape, rows: Sequence[ResultRow], elsewhere: Sequence[ResultRow]) -> Ladder:
    timed = [row for row in rows if drawable(row)]
    run = timed[0].run
    timed += _borrowed(shape, timed, elsewhere)
    kinds = tuple(sorted({row.distribution for row in timed}, key=lambda kind: (kind != USUAL_DATA, kind)))
    groups: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in timed:
        switches = json.dumps(row.switches, sort_keys=True)
        groups.setdefault((row.format_label, row.implementation, row.backend, switches), []).append(row)
    several = [key[:3] for key in groups]
    known = tuple(
        kind for kind in kinds if any(kind == row.distribution and row.quantisation_error is not None for row in timed)
    )
    rungs, bases = [], list[ResultRow]()
    for number, (key, group) in enumerate(groups.items(), 1):
        row = min(group, key=lambda each: kinds.index(each.distribution))
        errors = {each.distribution: each.quantisation_error for each in group if each.quantisation_error is not None}
        switches = _written(row.switches) if several.count(key[:3]) > 1 else ""
        baseline = _baseline(shape, timed, row.distribution)
        if baseline is not None and baseline not in bases:
            bases.append(baseline)
        rungs.append(Rung(number, row, errors, None if baseline is None else speed(row, baseline), switches))
    return Ladder(
        run=run,
        shape=shape.title(timed[0]),
        regime=shape.regime,
        base=shape.baseline,
        rungs=tuple(rungs),
        baseline=_baseline(shape, timed, kinds[0]),
        distributions=known,
        untimed=tuple(_untimed(rows, timed)),
        bases=tuple(bases),
    )


def _written(switches: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(switches.items()))


def _untimed(rows: Sequence[ResultRow], timed: Sequence[ResultRow]) -> Iterator[str]:
    """Labels that have no rate at all, each with how its cases ended."""
    known = {row.format_label for row in timed}
    endings: dict[str, list[str]] = {}
    for row in rows:
        if row.format_label not in known:
            endings.setdefault(row.format_label, []).append("no arithmetic" if row.outcome == Outcome.OK else row.outcome)
    for label, ended in endings.items():
        yield f"{label} ({', '.join(dict.fromkeys(each.replace('_', ' ') for each in ended))})"


def _borrowed(shape: Shape, timed: Sequence[ResultRow], elsewhere: Sequence[ResultRow]) -> list[ResultRow]:
    """The newest clean base of another run for each kind of data on which this run has none: a new rung beside its own."""
    found = []
    for kind in dict.fromkeys(row.distribution for row in timed):
        own = _baseline(shape, timed, kind)
        if own is None or doubtful(own):
            found += [row for row in elsewhere if row.distribution == kind][:1]
    return found


def _baseline(shape: Shape, rows: Sequence[ResultRow], distribution: str) -> ResultRow | None:
    """The fastest base on the same data, one in doubt only where there is no other."""
    found = [row for row in rows if row.format_label == shape.baseline and row.distribution == distribution]
    return min(found, key=lambda row: (doubtful(row), row.p50_s), default=None)
