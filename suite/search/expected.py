"""What a run searches for and what that will take, known before anything is looked at."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from suite.errors import UsageError
from suite.planned import DeviceSlot, PlannedCase
from suite.search.subject import Subject, subjects
from suite.settings import RunConfig

Done = Collection[tuple[int, str]]  # slot and key of each case that has a result


def searches(config: RunConfig, slots: Sequence[DeviceSlot]) -> tuple[Subject, ...]:
    """What a run with a search searches for.  ``UsageError`` where no shape fits in a device's memory."""
    found = tuple(subjects(config, slots))
    for subject in found:
        if not subject.outline.stand_ins:
            raise UsageError(
                f"no shape of search.step={subject.settings.step} fits in the memory of {subject.slot.backend} device "
                f"{subject.slot.slot}; take a smaller step, or drop the format {subject.example.case.workload.format_label}"
            )
    return found


def hunting_s(subject: Subject) -> float:
    """Predicted seconds of looking."""
    return subject.settings.budget_s + subject.settings.warm_up_s


def sought(searched: Sequence[Subject]) -> list[PlannedCase]:
    """Stand-ins for the cases of every search."""
    return [stand_in for subject in searched for stand_in in subject.outline.stand_ins]


def still_sought(searched: Sequence[Subject], cases: Sequence[PlannedCase], done: Done) -> list[PlannedCase]:
    """Stand-ins for what the searches have yet to measure; ``cases`` are those of the run that no search is for."""
    return [stand_in for _, stand_ins in _left(searched, cases, done) for stand_in in stand_ins]


def still_hunting_s(searched: Sequence[Subject], cases: Sequence[PlannedCase], done: Done) -> dict[int, float]:
    """Predicted seconds of looking by slot, without the searches that have measured something: those have looked."""
    by_slot: defaultdict[int, float] = defaultdict(float)
    for subject, stand_ins in _left(searched, cases, done):
        if len(stand_ins) == len(subject.outline.stand_ins):
            by_slot[subject.slot.slot] += hunting_s(subject)
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
