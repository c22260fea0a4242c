"""A comparison in the words that terminal, comment and page share."""

import math
from collections.abc import Iterator
from itertools import accumulate, groupby
from typing import NamedTuple

from suite.compare.comparison import Compared, Comparison
from suite.compare.differing import UNRECORDED, Differing
from suite.compare.pairing import By, Uncompared
from suite.compare.side import Entry
from suite.compare.spread import Chip
from suite.compare.verdict import Verdict
from suite.measure.statistics import Interval, median
from suite.report.derived import ABOVE_DERIVED
from suite.report.printable import clipped, printable
from suite.report.words import CONTENDED, case_detail, marks, moment
from suite.rows import ResultRow
from suite.selftest.record import Repeatability
from suite.selftest.usable import Standing

NOT_KNOWN = "not known"
_TOLD_ALONE = ("device", "roofbench", "settings", "variables", "cases")
_ENOUGH = 5  # cases, whose median says something of the others
_MANY = 4  # things that one side alone has a record of: as many lines, with nothing to compare, are one
_TIMES_FROM = 2.0  # so many times as long, or the inverse, is a factor; less is a percentage
# Ratios have four decimals, a hundredth of a per cent, as far as that is four digits and more: beside each other they align.
_DECIMALS_FROM, _DECIMALS = 0.001, ((9.99995, 4), (99.995, 2), (999.95, 1))
_ARROW = " -> "
_KERNEL = 80  # characters of names of kernels, of which there may be dozens; none is cut in two


def ratio(value: float) -> str:
    """B over A as every row of a table has it: ``1.0030``, ``0.4683``, ``2.7012``, ``12.35``, ``1,234``."""
    if value < _DECIMALS_FROM:
        return f"{value:.2g}"
    return f"{value:,.{next((decimals for below, decimals in _DECIMALS if value < below), 0)}f}"


def ratios(case: Compared) -> str:
    """The interval of the ratio on the same scale, ``1.0280 to 1.0340``; of medians without one it is not known."""
    found = case.judgement.interval
    return f"{ratio(found.low)} to {ratio(found.high)}" if _has_interval(case) else NOT_KNOWN


def change(ratio: float) -> str:
    """One ratio in a sentence, as ``+3.1 %``, ``-0.12 %``; from twice on as ``2.35x``."""
    if not 1 / _TIMES_FROM < ratio < _TIMES_FROM:
        return f"{_digits(ratio)}x"
    return f"{_percent(ratio)} %"


def interval(found: Interval) -> str:
    """``+2.8 to +3.4 %``; as factors where one end is one: ``0.743 to 4.01x``."""
    low, high = change(found.low), change(found.high)
    if low.endswith("%") and high.endswith("%"):
        return f"{low.removesuffix(' %')} to {high}"
    return f"{_digits(found.low)} to {_digits(found.high)}x"


def interval_of(case: Compared) -> str:
    """The interval of the ratio; of medians without one it is not known."""
    return interval(case.judgement.interval) if _has_interval(case) else NOT_KNOWN


def _has_interval(case: Compared) -> bool:
    found = case.judgement.interval
    return case.is_known and math.isfinite(found.high) and found.low > 0


def within(delta: float) -> str:
    """The margin of a verdict: ``1 %``, ``0.25 %``, ``6.4 %``."""
    return f"{100 * delta:.2g} %" if delta < 0.1 else f"{100 * delta:.0f} %"


def title(case: Compared, with_backend: bool = False) -> str:
    """Everything that names the pair, what differs as ``library -> triton``; the device by its slot where that is not 0.

    Backends that differ are named, and ``with_backend`` those that do not, as where a comparison has several.
    """
    a, b = case.pair.a.row, case.pair.b.row
    parts = [_either(one, other) for one, other in zip(_parts(a), _parts(b), strict=True)]
    backend = [_either(a.backend, b.backend)] if with_backend or a.backend != b.backend else []
    slot = [f"device {_either(str(a.device_slot), str(b.device_slot))}"] if a.device_slot or b.device_slot else []
    return " ".join([*parts, *backend, *slot])


def entry_title(entry: Entry, with_backend: bool = False) -> str:
    """The same of one result."""
    row = entry.row
    slot = [f"device {row.device_slot}"] if row.device_slot else []
    return " ".join([*_parts(row), *([row.backend] if with_backend else []), *slot])


def marks_of(entry: Entry) -> list[str]:
    """The marks of one result that bear on a verdict, which is of no peak."""
    return [mark for mark in marks(entry.row) if mark != ABOVE_DERIVED]


def doubts(case: Compared) -> tuple[str, ...]:
    """The marks of both results, each with whose it is: what to know before trusting the verdict."""
    of_a, of_b = map(marks_of, case.pair)
    both = [mark for mark in of_a if mark in of_b]
    return (
        *(f"both {mark}" for mark in both),
        *(f"A {mark}" for mark in of_a if mark not in both),
        *(f"B {mark}" for mark in of_b if mark not in both),
    )


def remarks(case: Compared) -> tuple[str, ...]:
    """Why it was not tested, the marks, a clock that explains why time says something else, and what was executed instead."""
    kernel = (f"{each.name}: {_first_names(each.a)}{_ARROW}{_first_names(each.b)}" for each in case.kernel)
    why = case.judgement.why
    marked = [mark for mark in doubts(case) if not (why and mark.endswith(CONTENDED))]  # ``why`` says it, and what of it
    return (*([why] if why else []), *marked, *_clock(case), *kernel)


def summary(comparison: Comparison) -> str:
    """``1 SLOWER, 0 UNDECIDED, 40 SAME, 2 FASTER; 3 not compared, 1 of them lost``: what is ok in A alone."""
    verdicts = ", ".join(f"{count} {verdict.value}{_untested_of(comparison, verdict)}"
                         for verdict, count in comparison.counts().items())  # fmt: skip
    left = f"; {len(comparison.uncompared)} not compared" if comparison.uncompared else ""
    lost = f", {len(comparison.lost)} of them lost" if comparison.lost else ""
    return f"{verdicts}{left}{lost}"


def _untested_of(comparison: Comparison, verdict: Verdict) -> str:
    beside = len(comparison.cases) - len(comparison.tested)
    return f", {beside} of them beside other work" if beside and verdict is Verdict.UNDECIDED else ""


def joined_by(comparison: Comparison) -> str:
    """How results were paired, and why so."""
    how = "case" if comparison.pairing.by is By.CASE else "workload and regime"
    return f"paired by {how}: {comparison.pairing.why}{_devices(comparison)}"


def meaning(comparison: Comparison) -> Iterator[str]:
    """What the verdicts rest on, a sentence each."""
    yield (
        f"B differs from A by more than delta: SLOWER, FASTER; by less: SAME. Delta is {within(comparison.min_effect)}, "
        "or what two runs of the device differ by anyway where that is more."
    )
    if len(comparison.tested) < len(comparison.cases):
        yield (
            "A case that was measured beside other processes on the device, in A or in B, is UNDECIDED whatever its ratio, and "
            "not among the cases that p-values are corrected over: measure it again on a quiet device."
        )
    if comparison.is_simulated:
        yield "Simulated: no device was measured."
    refused = (_refused(comparison, chip, standing) for chip, standing in comparison.refused.items())
    tested = (_repeats(comparison, chip, repeats) for chip, repeats in comparison.repeats.items())
    yield from dict.fromkeys((*refused, *tested, *(_untested(comparison, chip) for chip in comparison.untested)))


def _refused(comparison: Comparison, chip: Chip, standing: Standing) -> str:
    latest, used = (moment(each.finished_at.isoformat()) if each else "" for each in (standing.refused, standing.used))
    instead = f"that of {used} is, instead" if used else "no earlier one can be"
    return f"The latest selftest of {_device(comparison, chip)}, of {latest}, is not used: {clipped(standing.why)}; {instead}."


def _repeats(comparison: Comparison, chip: Chip, repeats: Repeatability) -> str:
    kinds = "cycles" if repeats.in_cycles else "time where arithmetic bounds it", "time where memory bounds it"
    rels = zip(kinds, (repeats.cycles_rel, repeats.bytes_rel), strict=True)
    told = ", ".join(f"{within(rel)} in {kind}" for kind, rel in rels if rel is not None)
    return f"Two runs of {_device(comparison, chip)} differ by up to {told} where nothing changed (selftest)."


def _untested(comparison: Comparison, chip: Chip) -> str:
    return (
        f"How far two runs of {_device(comparison, chip)} differ where nothing changed is not known: `roofbench selftest` "
        f"measures it, and until then a verdict holds for these two runs alone.{_among_themselves(comparison)}"
    )


def _among_themselves(comparison: Comparison) -> str:
    """How far cases of one device lie apart, where half of them do: on a quiet machine that is one change to all of them."""
    if comparison.pairing.by is not By.CASE or len(comparison.tested) < _ENOUGH:
        return ""
    middle = math.expm1(median(abs(case.gap.change) for case in comparison.tested))
    return f" Half of these cases differ by {within(middle)} or more." if middle > comparison.min_effect else ""


def uncompared(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Why results were not compared, with the titles of those it is true of; what is ok in A alone first."""
    ordered = sorted(comparison.uncompared, key=lambda each: (not each.is_lost, _why(each)))
    with_backend = comparison.has_several_backends
    for why, group in groupby(ordered, key=_why):
        yield why, [entry_title(each.entry, with_backend) for each in group]


class Differences(NamedTuple):
    """What differed, one by one, and the names of what one side alone has a record of, where those are many."""

    each: list[Differing]
    recorded: dict[str, list[str]]


def differences(comparison: Comparison) -> Differences:
    """Two backends report other things of a device: line after line of them would hide what differs in value."""
    only = {"A": [each for each in comparison.differing if each.b == UNRECORDED],
            "B": [each for each in comparison.differing if each.a == UNRECORDED]}  # fmt: skip
    many = {side: found for side, found in only.items() if len(found) >= _MANY}
    grouped = {id(each) for found in many.values() for each in found}
    left = [each for each in comparison.differing if id(each) not in grouped]
    return Differences(left, {f"recorded in {side} alone": [name(each) for each in found] for side, found in many.items()})


def name(each: Differing) -> str:
    """What differed, with its group where the name alone does not tell."""
    return each.name if each.group in _TOLD_ALONE else f"{each.group} {each.name}"


def values(each: Differing) -> str:
    """``A -> B``, and in how many cases."""
    return f"{each.a}{_ARROW}{each.b}{f' ({each.where})' if each.where else ''}"


def _why(each: Uncompared) -> str:
    reason = "; ".join(dict.fromkeys(_reasons(each)))
    whose = "lost, as it is ok in A alone: " if each.is_lost else ""
    return f"{whose}{each.why}{f' ({reason})' if reason else ''}"


def _reasons(each: Uncompared) -> Iterator[str]:
    for entry in (each.a, each.b):
        if entry and entry.row.outcome != "ok" and entry.row.reason:
            yield clipped(printable(entry.row.reason))


def _clock(case: Compared) -> Iterator[str]:
    """Where cycles and time disagree by more than matters, the clock did it."""
    clock = case.clock_ratio
    if case.in_cycles and clock is not None and abs(math.log(clock)) > math.log1p(case.gap.delta):
        yield f"time {change(case.time_ratio)}, as the clock was {change(clock)}"


def _devices(comparison: Comparison) -> str:
    """``, cuda NVIDIA H200``, or those of either side where they differ: all that have results, compared or not."""
    a, b = (
        " and ".join(dict.fromkeys(f"{row.backend} {row.device}" for row in rows))
        for rows in (comparison.rows("a"), comparison.rows("b"))
    )
    return "" if not (a and b) else f", {a}" if a == b else f", {a} against {b}"


def _device(comparison: Comparison, chip: Chip) -> str:
    rows = (entry.row for case in comparison.cases for entry in case.pair)
    return next(f"{row.backend} {row.device}" for row in rows if (row.device_uid, row.backend) == chip)


def _parts(row: ResultRow) -> tuple[str, ...]:
    return case_detail(row), row.format_label, row.implementation, row.regime


def _first_names(joined: str) -> str:
    """As many whole names as there is room for, one at least, and how many more there are."""
    names = joined.split(", ")
    ends = accumulate(len(name) + 2 for name in names)
    fitting = max(1, sum(end - 2 <= _KERNEL for end in ends))
    more = f" and {len(names) - fitting} more" if len(names) > fitting else ""
    return f"{', '.join(clipped(name) for name in names[:fitting])}{more}"


def _either(a: str, b: str) -> str:
    return a if a == b else f"{a}{_ARROW}{b}"


def _percent(ratio: float) -> str:
    value = 100 * (ratio - 1)
    text = f"{value:+.1f}" if abs(value) >= 0.995 else f"{value:+.2f}"
    return text.replace("+0.00", "0.00").replace("-0.00", "0.00")


def _digits(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:.3g}"
