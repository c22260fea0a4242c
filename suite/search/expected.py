"""What a run searches for and what that will take, known before anything is looked at."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from suite.errors import UsageError
from suite.jobs.shapes import Shape
from suite.plan import SETUP_S
from suite.planned import DeviceSlot, PlannedCase
from suite.search.hunt import MOST_CANDIDATES, Allowance
from suite.search.model import UNKNOWN_FLOP_S
from suite.search.subject import LONGEST_SHARE, Subject, shape_text, subjects
from suite.settings import RunConfig

Done = Collection[tuple[int, str]]  # slot and key of each case that has a result


class Waiting(NamedTuple):
    """A search that has something left: the stand-ins of what it has yet to measure, and predicted seconds of looking."""

    subject: Subject
    stand_ins: tuple[PlannedCase, ...]
    hunting_s: float


def searches(config: RunConfig, slots: Sequence[DeviceSlot]) -> tuple[Subject, ...]:
    """What a run with a search searches for.

    ``UsageError`` where no shape fits in a device's memory or is short enough for ``max_kernel_s``, and with
    ``oversize=refuse`` for a shape that the job names and that does not fit.
    """
    found = tuple(subjects(config, slots))
    for subject in found:
        label = subject.example.case.workload.format_label
        if not subject.outline.stand_ins:
            raise UsageError(
                f"no shape of search.step={subject.settings.step} fits in the memory of {subject.slot.backend} device "
                f"{subject.slot.slot}; take a smaller step, or drop the format {label}"
            )
        smallest, limit_s = subject.outline.smallest, config.max_kernel_s
        if limit_s is not None and subject.peak_flop_s and subject.least_s(smallest) > limit_s:
            raise UsageError(
                f"no shape of the search is short enough: gemm {label} {shape_text(smallest)} takes about "
                f"{subject.least_s(smallest):.3g} s a launch on {subject.slot.backend} at its peak, above "
                f"max_kernel_s={limit_s}; drop the format, or write max_kernel_s=null for no limit"
            )
    if config.oversize == "refuse":
        _refuse_oversize(found)
    return found


def _refuse_oversize(searched: Sequence[Subject]) -> None:
    for subject in searched:
        for shape in subject.named:
            if not subject.is_too_long(shape) and (reason := subject.no_room(shape)):
                raise UsageError(
                    f"{subject.name} at {shape_text(shape)} on {subject.slot.backend} {reason}; choose smaller shapes, or "
                    "oversize=record to search without it"
                )


def left_out(searched: Sequence[Subject]) -> tuple[str, ...]:
    """The shapes that a job names and that are not looked at, as lines for people: one for each shape and reason."""
    labels: defaultdict[tuple[Shape, str], list[str]] = defaultdict(list)
    least_s: dict[tuple[Shape, str], float] = {}
    for subject in searched:
        taken = 0
        for shape in subject.named:
            is_long = subject.is_too_long(shape)
            why = _too_long(subject) if is_long else subject.no_room(shape)
            taken += not why
            if taken > MOST_CANDIDATES:
                why = why or f"a search looks at {MOST_CANDIDATES} shapes at most, those named first in their order"
            if why:
                labels[shape, why].append(subject.example.case.workload.format_label)
            if is_long:
                least_s[shape, why] = min(least_s.get((shape, why), math.inf), subject.least_s(shape))
    return tuple(
        f"gemm {shape_text(shape)} {', '.join(dict.fromkeys(of))}: "
        + (f"about {least_s[shape, why]:.3g} s or more a launch {why}" if (shape, why) in least_s else why)
        for (shape, why), of in labels.items()
    )


def _too_long(subject: Subject) -> str:
    """``on cpu, above 0.02 s, which is 0.002 of search.budget_s=10``; by which peak where that is not known."""
    budget_s, limit_s = subject.settings.budget_s, subject.config.max_kernel_s
    by_budget = f"{subject.longest_s:.3g} s, which is {LONGEST_SHARE:g} of search.budget_s={budget_s:g}"
    limit = f"max_kernel_s={limit_s}" if subject.longest_s == limit_s else by_budget
    assumed = "" if subject.peak_flop_s else f" at an assumed {UNKNOWN_FLOP_S:.3g} operations/s"
    return f"on {subject.slot.backend}{assumed}, above {limit}"


def hunting_s(subject: Subject) -> float:
    """Predicted seconds of looking."""
    return subject.settings.budget_s + subject.settings.warm_up_s


def allowance(subject: Subject) -> Allowance:
    """What the settings of a run let its hunt take."""
    measure, loads = subject.config.measure, {regime.load for regime in subject.regimes}
    return Allowance(
        seconds=subject.settings.budget_s,
        warm_up_s=subject.settings.warm_up_s,
        window_s=measure.burst_window_s if "burst" in loads else 0.0,
        idle_s=measure.burst_idle_s,
        most_flop_s=subject.most_flop_s,
    )


def too_short(config: RunConfig, left: Sequence[Waiting]) -> str:
    """Why a run that goes on for ``max_time_s`` at a time would never have looked at what it has to; empty where it would."""
    least_s = [allowance(each.subject).sitting_s + SETUP_S for each in left if each.hunting_s]
    if config.max_time_s is None or config.max_time_s >= max(least_s, default=0.0):
        return ""
    warm_up_s, needed_s = left[0].subject.settings.warm_up_s, math.ceil(max(least_s))
    return (
        f"max_time_s={config.max_time_s:g} is too short for a search to come any further: to warm up "
        f"(search.warm_up_s={warm_up_s:g}) and to look once takes it {needed_s} s at a stretch; write "
        f"max_time_s={needed_s} or more"
    )


def sought(searched: Sequence[Subject]) -> list[PlannedCase]:
    """Stand-ins for the cases of every search."""
    return [stand_in for subject in searched for stand_in in subject.outline.stand_ins]


def waiting(searched: Sequence[Subject], cases: Sequence[PlannedCase], done: Done) -> list[Waiting]:
    """The searches that have something left to measure; ``cases`` are those of the run that no search is for.

    One that has measured something has looked.
    """
    whole = ((subject, left, len(left) == len(subject.outline.stand_ins)) for subject, left in _left(searched, cases, done))
    return [Waiting(subject, left, hunting_s(subject) if untouched else 0.0) for subject, left, untouched in whole if left]


def still_sought(searched: Sequence[Subject], cases: Sequence[PlannedCase], done: Done) -> list[PlannedCase]:
    """Stand-ins for what the searches have yet to measure."""
    return [stand_in for each in waiting(searched, cases, done) for stand_in in each.stand_ins]


def still_hunting_s(searched: Sequence[Subject], cases: Sequence[PlannedCase], done: Done) -> dict[int, float]:
    """Predicted seconds of looking by slot, without the searches that have looked."""
    by_slot: defaultdict[int, float] = defaultdict(float)
    for each in waiting(searched, cases, done):
        if each.hunting_s:
            by_slot[each.subject.slot.slot] += each.hunting_s
    return dict(by_slot)


def _left(
    searched: Sequence[Subject], cases: Sequence[PlannedCase], done: Done
) -> Iterator[tuple[Subject, tuple[PlannedCase, ...]]]:
    """What is left of each search: a slot's results of no planned case are those of its searches, in their order."""
    planned = {(each.slot, each.case.key) for each in cases}
    measured = Counter(slot for slot, _ in set(done) - planned)
    for subject in searched:
        slot, stand_ins = subject.slot.slot, subject.outline.stand_ins
        yield subject, stand_ins[measured[slot] :]
        measured[slot] = max(0, measured[slot] - len(stand_ins))
