"""Repeatability: how far two measurements of one case on this device differ, with other work in between."""

from collections.abc import Sequence
from typing import NamedTuple

from suite.measure.statistics import quantile
from suite.outcome import Bound
from suite.report.words import counted
from suite.selftest.record import Finding, Repeatability, Status
from suite.selftest.taken import Passes, Taken, change, in_cycles, kinds, paired
from suite.selftest.words import per_cent

NAME = "repeatability"
CLOSE = 0.01
CLOSE_SHARE = 0.95
USELESS = 0.10  # from here on the differences that people compare devices for drown
PERCENTILE = 0.95


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
    """``None`` where nothing was measured twice."""
    compute = [pair.rel for pair in found if pair.kind is Bound.COMPUTE]
    memory = [pair.rel for pair in found if pair.kind is not Bound.COMPUTE]
    if not found:
        return None
    return Repeatability(_percentile(compute), _percentile(memory), any(pair.in_cycles for pair in found), len(found))


def _percentile(rels: Sequence[float]) -> float | None:
    return quantile(rels, PERCENTILE) if rels else None


def finding(passes: Passes) -> Finding:
    """Warns where fewer than 95 % of cases agree within 1 %; fails where differences under 10 % mean nothing."""
    found = pairs(passes)
    known = repeatability(found)
    if known is None or known.worst_rel is None:
        return Finding(NAME, Status.UNAVAILABLE, "no case was measured twice that launching does not bound")
    close = sum(pair.rel <= CLOSE for pair in found)
    worst = max(found, key=lambda pair: pair.rel)
    status = Status.OK if close >= CLOSE_SHARE * len(found) else Status.WARN
    if known.worst_rel > USELESS:
        status = Status.FAIL
    says = (
        f"{close} of {counted(len(found), 'case')} repeat within 1 %; worst {worst.first.name}, {_apart(worst.rel)}"
        f"{_advice(status, known.worst_rel, found)}"
    )
    figures = {
        "cycles_rel": known.cycles_rel,
        "bytes_rel": known.bytes_rel,
        "cases": len(found),
        "within_1_percent_share": close / len(found),
        "worst_rel": worst.rel,
        "worst_case": worst.first.name,
        "compute_bound_in": "cycles" if known.in_cycles else "time",
        "contended_cases": sum(pair.contended for pair in found),
    }
    return Finding(NAME, status, says, figures)


def _apart(rel: float) -> str:
    """``4 % off``; a case that took more than twice as long is so many times apart."""
    return f"{per_cent(rel)} off" if rel < 1 else f"{1 + rel:.3g} times apart"


def _advice(status: Status, rel: float, found: Sequence[Pair]) -> str:
    if status is Status.OK:
        return f"; differences above {per_cent(rel)} between two runs mean something"
    contended = sum(pair.contended for pair in found)
    cause = f"; {contended} of them were measured beside other work" if contended else ""
    if status is Status.FAIL:
        return f"; {_apart(rel)} at the 95th percentile, two runs cannot be compared here{cause}"
    return f"; differences under {per_cent(rel)} between two runs mean nothing here{cause}"
