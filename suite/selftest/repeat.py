"""Repeatability: how far two measurements of one case on this device differ, with work of the selftest's own in between.

What was measured beside the work of others is left out: how far that differs is theirs, and not the device's.
"""

from collections.abc import Sequence
from typing import NamedTuple

from suite.measure.statistics import quantile
from suite.outcome import Bound
from suite.report.words import counted
from suite.selftest.record import REPEATABILITY, Finding, Repeatability, Status
from suite.selftest.taken import Passes, Taken, change, in_cycles, kinds, paired
from suite.selftest.words import per_cent

NAME = REPEATABILITY
CLOSE = 0.01
CLOSE_SHARE = 0.95
USELESS = 0.10  # from here on the differences that people compare devices for drown
PERCENTILE = 0.95
# What must be left where other work was, before it is taken for all: of each kind, for the kinds repeat differently.
LEAST_CASES = 5
LEAST_SHARE = 0.5


class Pair(NamedTuple):
    """One case measured twice; ``change`` is of cycles or of time."""

    first: Taken
    second: Taken
    kind: Bound
    in_cycles: bool
    change: float

    @property
    def rel(self) -> float:
        return abs(self.change)

    @property
    def contended(self) -> bool:
        return bool(self.first.row.contended or self.second.row.contended)


def pairs(passes: Passes) -> list[Pair]:
    """Every product that both passes timed, but for those that launching bounds: neither unit is theirs.

    Where one compute-bound case was not counted, all of them are compared in time.
    """
    kind_of = kinds(passes.first)
    both = [(kind_of[first.row.case_key], first, second) for first, second in paired(passes.first, passes.again)]
    counts = all(in_cycles(first) and in_cycles(second) for kind, first, second in both if kind is Bound.COMPUTE)
    found = []
    for kind, first, second in both:
        cycles = counts and kind is Bound.COMPUTE
        if kind is not Bound.LAUNCH:
            found.append(Pair(first, second, kind, cycles, change(first, second, cycles)))
    return found


def repeatability(found: Sequence[Pair]) -> Repeatability | None:
    """Over what was measured beside no other work; ``None`` where that is nothing, or too little."""
    return undisturbed(found) if _is_enough(found) else None


def undisturbed(found: Sequence[Pair]) -> Repeatability | None:
    """The same however little it is: the noise of just those cases.  ``None`` where there are none."""
    quiet = _quiet(found)
    if not quiet:
        return None
    compute, memory = (_percentile([pair.rel for pair in kind]) for kind in _by_kind(quiet))
    return Repeatability(compute, memory, any(pair.in_cycles for pair in quiet), len(quiet))


def _quiet(found: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in found if not pair.contended]


def _by_kind(found: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """What arithmetic bounds, and the rest."""
    compute = [pair for pair in found if pair.kind is Bound.COMPUTE]
    return compute, [pair for pair in found if pair.kind is not Bound.COMPUTE]


def _is_enough(found: Sequence[Pair]) -> bool:
    """Whether what other work left alone may stand for all of it; where there was none, that is all."""
    quiet = _quiet(found)
    if len(quiet) == len(found):
        return True
    halves = all(len(_quiet(kind)) >= LEAST_SHARE * len(kind) for kind in _by_kind(found))
    return len(quiet) >= LEAST_CASES and halves


def _percentile(rels: Sequence[float]) -> float | None:
    return quantile(rels, PERCENTILE) if rels else None


def finding(passes: Passes) -> Finding:
    """Warns where fewer than 95 % of cases agree within 1 %; fails where differences under 10 % mean nothing."""
    every = pairs(passes)
    found, known = _quiet(every), repeatability(every)
    left_out = {"contended_left_out": len(every) - len(found)}
    if not every:
        return Finding(NAME, Status.UNAVAILABLE, "no case was measured twice that launching does not bound")
    if known is None or known.worst_rel is None:
        return Finding(NAME, Status.UNAVAILABLE, _too_few(every), {"cases": len(found), **left_out})
    close = sum(pair.rel <= CLOSE for pair in found)
    worst = max(found, key=lambda pair: pair.rel)
    status = Status.OK if close >= CLOSE_SHARE * len(found) else Status.WARN
    if known.worst_rel > USELESS:
        status = Status.FAIL
    says = (
        f"{close} of {counted(len(found), 'case')} repeat within 1 %; worst {worst.first.name}, {_apart(worst.rel)}"
        f"{_advice(status, known.worst_rel)}{_left_out(every)}"
    )
    figures: dict[str, float | str | None] = {
        "cycles_rel": known.cycles_rel,
        "bytes_rel": known.bytes_rel,
        "cases": len(found),
        "within_1_percent_share": close / len(found),
        "worst_rel": worst.rel,
        "worst_case": worst.first.name,
        "compute_bound_in": "cycles" if known.in_cycles else "time",
        **left_out,
    }
    return Finding(NAME, status, says, figures)


def _apart(rel: float) -> str:
    """``4 % off``; a case that took more than twice as long is so many times apart."""
    return f"{per_cent(rel)} off" if rel < 1 else f"{1 + rel:.3g} times apart"


def _too_few(every: Sequence[Pair]) -> str:
    return (
        f"{_contended(every)} of {counted(len(every), 'case')} were measured beside other work: the rest is too little to "
        f"tell, which takes {LEAST_CASES} cases and half of each kind, bound by arithmetic and by memory; stop that work, or "
        "repeat the selftest when the device is idle"
    )


def _left_out(every: Sequence[Pair]) -> str:
    contended = _contended(every)
    return f"; {contended} more, measured beside other work, left out" if contended else ""


def _contended(every: Sequence[Pair]) -> int:
    return sum(pair.contended for pair in every)


def _advice(status: Status, rel: float) -> str:
    if status is Status.OK:
        return f"; differences above {per_cent(rel)} between two runs mean something"
    if status is Status.FAIL:
        return f"; {_apart(rel)} at the 95th percentile, two runs cannot be compared here"
    return f"; differences under {per_cent(rel)} between two runs mean nothing here"
