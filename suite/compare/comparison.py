"""A comparison of two runs as data: a verdict for each pair of results, what was not compared and why, what else differed."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from suite.compare.differing import Differing, differing, encoded, executed
from suite.compare.pairing import Pair, Pairing, Uncompared
from suite.compare.quantity import in_cycles, log_clock, log_ratio, log_time
from suite.compare.repeats import Known, Refused
from suite.compare.side import NOTHING, Looked, Side
from suite.compare.spread import Chip, Repeats, spread_of
from suite.compare.verdict import LEVEL, Gap, Judgement, Verdict, judge
from suite.rows import ResultRow, RunInfo
from suite.selftest.usable import Standing

Raw = Mapping[int, Looked]  # by result id


class Compared(NamedTuple):
    """Two results and what is said of them.  ``kernel`` is what was executed differently, where the same was asked for."""

    pair: Pair
    in_cycles: bool
    gap: Gap
    judgement: Judgement
    kernel: tuple[Differing, ...]

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def ratio(self) -> float:
        """B over A, in cycles or in time: above 1 is slower."""
        return math.exp(self.gap.change)

    @property
    def time_ratio(self) -> float:
        return math.exp(log_time(self.pair.a.row, self.pair.b.row))

    @property
    def clock_ratio(self) -> float | None:
        """Of the clocks that the devices counted."""
        change = log_clock(self.pair.a.row, self.pair.b.row)
        return None if change is None else math.exp(change)

    @property
    def is_known(self) -> bool:
        """Whether both medians have an interval."""
        return all(math.isfinite(noise.below) and math.isfinite(noise.above) for noise in self.gap.noise)

    def to_json(self) -> dict[str, Any]:
        a, b = self.pair.a.row, self.pair.b.row
        return {
            "verdict": self.verdict.value,
            "why": self.judgement.why,
            "quantity": "cycles" if self.in_cycles else "time",
            "ratio": self.ratio,
            "interval": [_finite(end) for end in self.judgement.interval] if self.is_known else None,
            "time_ratio": self.time_ratio,
            "clock_ratio": self.clock_ratio,
            "delta": self.gap.delta,
            "repeatability_rel": self.gap.spread.rel,
            "p_differs": self.judgement.p_differs,
            "p_same": self.judgement.p_same,
            "kernel": [each._asdict() for each in self.kernel],
            "a": a.to_json(),
            "b": b.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is shown of a comparison.  ``cases`` are the worst first.

    ``repeats`` are the stored repeatabilities of devices that were compared, ``untested`` the devices without one: of those
    nothing is known beyond the two runs.  ``refused`` are the devices whose latest selftest is not used.
    """

    a: RunInfo
    b: RunInfo
    pairing: Pairing
    min_effect: float
    cases: tuple[Compared, ...]
    differing: tuple[Differing, ...]
    repeats: Repeats
    untested: tuple[Chip, ...]
    refused: Refused

    @property
    def uncompared(self) -> tuple[Uncompared, ...]:
        return self.pairing.uncompared

    @property
    def lost(self) -> tuple[Uncompared, ...]:
        """What A has a verified time of, and B has not."""
        return tuple(each for each in self.uncompared if each.is_lost)

    def rows(self, side: Literal["a", "b"]) -> Iterator[ResultRow]:
        """Every result of one run, compared or not, its devices in their order."""
        entries = {id(entry): entry for each in (*self.pairing.pairs, *self.uncompared) if (entry := getattr(each, side))}
        yield from sorted((entry.row for entry in entries.values()), key=lambda row: row.device_slot)

    @property
    def has_several_backends(self) -> bool:
        """Whether a case has to say by which backend it is: those of either run count."""
        return len({row.backend for row in (*self.rows("a"), *self.rows("b"))}) > 1

    @property
    def empty(self) -> tuple[str, ...]:
        """Which of A and B has no result at all."""
        present = {name for each in (*self.pairing.pairs, *self.uncompared) for name in ("a", "b") if getattr(each, name)}
        return tuple(name.upper() for name in ("a", "b") if name not in present)

    @property
    def is_simulated(self) -> bool:
        """Whether no device was measured for some of it."""
        return any(case.pair.a.row.evidence == "simulated" for case in self.cases)

    @property
    def tested(self) -> tuple[Compared, ...]:
        """Without those that other work was beside, whose verdict is no result of a test."""
        return tuple(case for case in self.cases if not case.judgement.why)

    def counts(self) -> dict[Verdict, int]:
        """How many cases have each verdict, the worst first."""
        found = Counter(case.verdict for case in self.cases)
        return {verdict: found[verdict] for verdict in Verdict}

    def to_json(self) -> dict[str, Any]:
        """JSON values; a ratio is B over A, above 1 is slower."""
        return {
            "a": _run(self.a),
            "b": _run(self.b),
            "by": self.pairing.by.value,
            "by_why": self.pairing.why,
            "min_effect": self.min_effect,
            "level": LEVEL,
            "counts": {verdict.value: count for verdict, count in self.counts().items()},
            "beside_other_work": len(self.cases) - len(self.tested),
            "cases": [case.to_json() for case in self.cases],
            "not_compared": [_uncompared(each) for each in self.uncompared],
            "differing": [each._asdict() for each in self.differing],
            "repeatability": [
                {"device_uid": uid, "backend": backend, **repeats._asdict()} for (uid, backend), repeats in self.repeats.items()
            ],
            "without_repeatability": [{"device_uid": uid, "backend": backend} for uid, backend in self.untested],
            "selftests_not_used": [_not_used(*chip, standing) for chip, standing in self.refused.items()],
        }


def compare(a: Side, b: Side, pairing: Pairing, raw: tuple[Raw, Raw], known: Known, min_effect: float) -> Comparison:
    """Judge the pairs.  ``raw`` is what the measurements of each side say; a result that it lacks is without an interval."""
    gaps = [_gap(pair, raw, known.repeats, min_effect) for pair in pairing.pairs]
    cases = [
        Compared(pair, in_cycles(pair.a.row, pair.b.row), gap, judgement, _kernel(pair, raw))
        for pair, gap, judgement in zip(pairing.pairs, gaps, judge(gaps), strict=True)
    ]
    order = list(Verdict)
    chips = dict.fromkeys((entry.row.device_uid, entry.row.backend) for pair in pairing.pairs for entry in pair)
    return Comparison(
        a=a.info,
        b=b.info,
        pairing=pairing,
        min_effect=min_effect,
        cases=tuple(sorted(cases, key=lambda case: (order.index(case.verdict), -case.gap.change))),
        differing=differing(a, b, pairing.pairs),
        repeats={chip: known.repeats[chip] for chip in chips if chip in known.repeats},
        untested=tuple(chip for chip in chips if chip not in known.repeats),
        refused={chip: known.refused[chip] for chip in chips if chip in known.refused},
    )


def _gap(pair: Pair, raw: tuple[Raw, Raw], repeats: Repeats, min_effect: float) -> Gap:
    a, b = pair.a.row, pair.b.row
    one, other = (each.get(row.result_id, NOTHING) for each, row in zip(raw, (a, b), strict=True))
    counted = in_cycles(a, b)
    noise = (one.noise, other.noise)
    if counted and one.noise_cycles is not None and other.noise_cycles is not None:
        noise = (one.noise_cycles, other.noise_cycles)
    return Gap(log_ratio(a, b), noise, spread_of(a, b, counted, repeats), min_effect, _beside_other_work(a, b))


def _beside_other_work(a: ResultRow, b: ResultRow) -> str:
    """Why two times say nothing of the code where other processes used the device in one of the runs; empty elsewhere."""
    sides = [name for name, row in (("A", a), ("B", b)) if row.contended]
    return f"beside other work in {' and '.join(sides)}: not tested" if sides else ""


def _kernel(pair: Pair, raw: tuple[Raw, Raw]) -> tuple[Differing, ...]:
    a, b = pair.a.row, pair.b.row
    one, other = (each.get(row.result_id, NOTHING).description for each, row in zip(raw, (a, b), strict=True))
    if (a.implementation, a.backend) != (b.implementation, b.backend):
        return encoded(one, other)
    return (*encoded(one, other), *executed(one, other))


def _run(info: RunInfo) -> dict[str, Any]:
    names = ("run", "experiment", "status", "started_at", "finished_at", "version", "commit", "dirty", "note")
    return {name: getattr(info, name) for name in names}


def _not_used(uid: str, backend: str, standing: Standing) -> dict[str, Any]:
    latest, used = (each.finished_at.isoformat() if each else None for each in (standing.refused, standing.used))
    return {"device_uid": uid, "backend": backend, "finished_at": latest, "why": standing.why, "used_instead": used}


def _uncompared(each: Uncompared) -> dict[str, Any]:
    sides = {name: entry.row.to_json() if entry else None for name, entry in (("a", each.a), ("b", each.b))}
    return {"why": each.why, "lost": each.is_lost, **sides}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
