"""Repeatability: how far two measurements of one case on this device differ, with work of the selftest's own in between.

What was measured beside the work of others is left out: how far that differs is theirs, and not the device's.  So is what may
have been, for all that is known: turns of a scheduler can be as even as a device of one's own.
"""

from collections.abc import Sequence
from typing import NamedTuple

from suite.measure.statistics import quantile
from suite.outcome import Bound
from suite.report.words import counted
from suite.selftest.record import CONTENTION, REPEATABILITY, UNKNOWN_LEFT_OUT, Finding, Repeatability, Status
from suite.selftest.taken import Passes, Taken, change, in_cycles, kinds, paired
from suite.selftest.tally import left_out
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
    def time_rel(self) -> float:
        return abs(change(self.first, self.second, cycles=False))

    @property
    def contended(self) -> bool:
        return bool(self.first.row.contended or self.second.row.contended)

    @property
    def is_quiet(self) -> bool:
        """Whether it is known that neither measurement was beside other work."""
        return self.first.is_quiet and self.second.is_quiet


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
    """Over what is known to have been measured beside no other work; ``None`` where that is nothing, or too little."""
    return undisturbed(found) if _is_enough(found) else None


def undisturbed(found: Sequence[Pair]) -> Repeatability | None:
    """The same however little it is: the noise of just those cases.  ``None`` where there are none."""
    quiet = _quiet(found)
    if not quiet:
        return None
    compute, memory = (_percentile([pair.rel for pair in kind]) for kind in _by_kind(quiet))
    return Repeatability(compute, memory, any(pair.in_cycles for pair in quiet), len(quiet))


def _quiet(found: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in found if pair.is_quiet]


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
    lacking = {"contended_left_out": _contended(every), UNKNOWN_LEFT_OUT: len(every) - len(found) - _contended(every)}
    if not every:
        return Finding(NAME, Status.UNAVAILABLE, "no case was measured twice that launching does not bound")
    if known is None or known.worst_rel is None:
        return Finding(NAME, Status.UNAVAILABLE, _too_few(every), {"cases": len(found), **lacking})
    close = sum(pair.rel <= CLOSE for pair in found)
    worst = max(found, key=lambda pair: pair.rel)
    status = Status.OK if close >= CLOSE_SHARE * len(found) else Status.WARN
    if known.worst_rel > USELESS:
        status = Status.FAIL
    says = (
        f"{close} of {counted(len(found), 'case')} repeat within 1 %; worst {worst.first.name}, {_apart(worst.rel)}"
        f"; 95 in 100 within {_within(known, found)}{_advice(status, known.worst_rel)}{_left_out(every)}"
    )
    figures: dict[str, float | str | None] = {
        "worst_time_rel": max(pair.time_rel for pair in found),
        "cycles_rel": known.cycles_rel,
        "bytes_rel": known.bytes_rel,
        "cases": len(found),
        "within_1_percent_share": close / len(found),
        "worst_rel": worst.rel,
        "worst_case": worst.first.name,
        "compute_bound_in": "cycles" if known.in_cycles else "time",
        **lacking,
    }
    return Finding(NAME, status, says, figures)


def _apart(rel: float) -> str:
    """``4 % off``; a case that took more than twice as long is so many times apart."""
    return f"{per_cent(rel)} off" if rel < 1 else f"{1 + rel:.3g} times apart"


def _within(known: Repeatability, found: Sequence[Pair]) -> str:
    """The repeatability of each kind in its unit; where that is cycles, how far apart the times are too."""
    unit = "cycles" if known.in_cycles else "time"
    compute = "" if known.cycles_rel is None else f"{per_cent(known.cycles_rel)} in {unit}"
    memory = "" if known.bytes_rel is None else f"{per_cent(known.bytes_rel)} in time"
    if not (compute and known.in_cycles):
        return f"{compute} where arithmetic bounds them, and {memory} elsewhere" if compute and memory else compute or memory
    times = max(pair.time_rel for pair in found if pair.in_cycles)
    beside = f"{compute} where arithmetic bounds them, whose times differ by up to {per_cent(times)} as the clock moves"
    return f"{beside}, and {memory} elsewhere" if memory else beside


def _too_few(every: Sequence[Pair]) -> str:
    contended = _contended(every)
    unsure, whole = len(every) - len(_quiet(every)) - contended, f"of {counted(len(every), 'case')}"
    return (
        f"{left_out(contended, unsure, whole)}: the rest is too little to "
        f"tell, which takes {LEAST_CASES} cases and half of each kind, bound by arithmetic and by memory; {_remedy(contended)}"
    )


def _remedy(contended: int) -> str:
    if not contended:
        return f"what is said of {CONTENTION} has why, and what to do"
    return "stop that work, or repeat the selftest when the device is idle"


def _left_out(every: Sequence[Pair]) -> str:
    contended = _contended(every)
    words = left_out(contended, len(every) - len(_quiet(every)) - contended)
    why = next((pair.first.assumed_alone for pair in every if pair.first.assumed_alone), "")
    alone = f"; that nobody else was there is assumed: {why}" if why else ""
    return f"; left out: {words}{alone}" if words else alone


def _contended(every: Sequence[Pair]) -> int:
    return sum(pair.contended for pair in every)


def _advice(status: Status, rel: float) -> str:
    """Where two runs cannot be compared at all.  What a difference means else, the closing sentence alone says."""
    if status is Status.FAIL:
        return f"; {_apart(rel)} at the 95th percentile, two runs cannot be compared here"
    return ""
