"""The precision ladder: one shape in several formats, what each of them gives in speed and costs in accuracy."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suite.outcome import Outcome
from suite.report.roofs import drawable
from suite.report.speed import Speed, speed
from suite.report.words import doubtful, flop_per_j, marks, workload_title
from suite.rows import ResultRow

ABOUT = (
    "One shape in several number formats: how fast each is, and what rounding the data to it costs the product. The error is "
    "that of the data alone, whichever unit multiplies them."
)
LEAST_FORMATS = 3  # of one shape: two are a comparison
BASELINE = "bf16"
USUAL_DATA = "normal"


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
    """

    run: str
    shape: str
    regime: str
    rungs: tuple[Rung, ...]
    baseline: ResultRow | None
    distributions: tuple[str, ...]
    untimed: tuple[str, ...]

    @property
    def title(self) -> str:
        labels = {rung.row.format_label for rung in self.rungs}
        return f"{self.shape}, {self.regime}: {len(labels)} formats"

    @property
    def note(self) -> str:
        """On which data, against what, and what is missing."""
        data = ", ".join(dict.fromkeys(rung.row.distribution for rung in self.rungs))
        parts = [f"Rates on {data} data"]
        if self.baseline is not None:
            parts.append(f"the fastest {BASELINE} is by {self.baseline.implementation}")
        missing = f". Without a rate: {', '.join(self.untimed)}" if self.untimed else ""
        return f"{'; '.join(parts)}{missing}."


def ladders(rows: Sequence[ResultRow]) -> tuple[Ladder, ...]:
    """The ladders among ``rows``, all of one device: the largest shape first, of its regimes the one of most formats.

    A small shape tells of launches as much as of formats.
    """
    groups: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in rows:
        groups.setdefault((row.run, row.job, row.evidence, json.dumps(row.params, sort_keys=True), row.regime), []).append(row)
    found = [_ladder(group) for group in groups.values() if _formats(group) >= LEAST_FORMATS]
    return tuple(sorted(found, key=_place))


def _place(ladder: Ladder) -> tuple[int, int]:
    rows = [rung.row for rung in ladder.rungs]
    return -rows[0].flops, -_formats(rows)


def _formats(rows: Sequence[ResultRow]) -> int:
    return len({row.format_label for row in rows if drawable(row)})


def _ladder(rows: Sequence[ResultRow]) -> Ladder:
    timed = [row for row in rows if drawable(row)]
    kinds = tuple(sorted({row.distribution for row in timed}, key=lambda kind: (kind != USUAL_DATA, kind)))
    groups: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in timed:
        switches = json.dumps(row.switches, sort_keys=True)
        groups.setdefault((row.format_label, row.implementation, row.backend, switches), []).append(row)
    several = [key[:3] for key in groups]
    known = tuple(
        kind for kind in kinds if any(kind == row.distribution and row.quantisation_error is not None for row in timed)
    )
    rungs = []
    for number, (key, group) in enumerate(groups.items(), 1):
        row = min(group, key=lambda each: kinds.index(each.distribution))
        errors = {each.distribution: each.quantisation_error for each in group if each.quantisation_error is not None}
        switches = _written(row.switches) if several.count(key[:3]) > 1 else ""
        baseline = _baseline(timed, row.distribution)
        rungs.append(Rung(number, row, errors, None if baseline is None else speed(row, baseline), switches))
    return Ladder(
        run=timed[0].run,
        shape=workload_title(timed[0]),
        regime=timed[0].regime,
        rungs=tuple(rungs),
        baseline=_baseline(timed, kinds[0]),
        distributions=known,
        untimed=tuple(_untimed(rows, timed)),
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


def _baseline(rows: Sequence[ResultRow], distribution: str) -> ResultRow | None:
    """The fastest bf16 on the same data, one in doubt only where there is no other."""
    found = [row for row in rows if row.format_label == BASELINE and row.distribution == distribution]
    return min(found, key=lambda row: (doubtful(row), row.p50_s), default=None)
