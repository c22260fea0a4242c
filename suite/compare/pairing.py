"""Which results of two runs belong together, and which have nothing to be compared with.

Runs of one device are joined by case, which is one exact measurement; devices, backends and implementations by workload and
regime.  Of several results with the same key those go together that have the most in common: the chip, the slot, who computes.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from suite.compare.refusal import Strangers, refusal
from suite.compare.side import Entry, Side
from suite.jobs.calibration import CalibrationJob
from suite.report.words import counted

Key = Callable[[Entry], Hashable]


class By(StrEnum):
    """What two results must have in common to be compared."""

    CASE = "case"
    WORKLOAD = "workload"


class Pair(NamedTuple):
    """Two results that are compared."""

    a: Entry
    b: Entry


class Uncompared(NamedTuple):
    """A result, or two that belong together, without a comparison, and why."""

    a: Entry | None
    b: Entry | None
    why: str

    @property
    def entry(self) -> Entry:
        """The one that names the case."""
        entry = self.a or self.b
        assert entry is not None, "something was not compared"
        return entry

    @property
    def is_lost(self) -> bool:
        """Whether the first run has a verified time that the second has no counterpart for.

        A calibration that is in the first alone was taken as it is by the second.
        """
        if self.a is None or self.a.row.outcome != "ok":
            return False
        return self.a.row.job != CalibrationJob.name if self.b is None else self.b.row.outcome != "ok"


class Pairing(NamedTuple):
    """How results were joined, why so, and what came of it; every result of both runs is in one of the two lists."""

    by: By
    why: str
    pairs: tuple[Pair, ...]
    uncompared: tuple[Uncompared, ...]


def pair(a: Side, b: Side, by: By | None = None) -> Pairing:
    """Join the results of two runs; ``by`` is chosen where it is not given."""
    chosen, why = (by, "as asked for") if by else _choose(a, b)
    key: Key = (lambda entry: entry.row.case_key) if chosen is By.CASE else (lambda entry: entry.regime_key)
    pairs, uncompared = [], []
    left_a, left_b = _grouped(a.entries, [key]), _grouped(b.entries, [key])
    alone_a, alone_b = [], []
    for each in dict.fromkeys([*left_a, *left_b]):
        matched, only_a, only_b = match(left_a.get(each, ()), left_b.get(each, ()))
        alone_a += only_a
        alone_b += only_b
        for one, other in matched:
            refused = refusal(one, other)
            if refused:
                uncompared.append(Uncompared(one, other, refused))
            else:
                pairs.append(Pair(one, other))
    in_a, in_b = Strangers("A", alone_a, a.entries), Strangers("B", alone_b, b.entries)
    uncompared += [Uncompared(entry, None, in_b.why(entry)) for entry in alone_a]
    uncompared += [Uncompared(None, entry, in_a.why(entry)) for entry in alone_b]
    return Pairing(chosen, why, tuple(pairs), tuple(uncompared))


def _of_chip(entry: Entry) -> Hashable:
    return entry.row.device_uid


def _of_slot(entry: Entry) -> Hashable:
    return entry.row.device_slot


def _of_implementation(entry: Entry) -> Hashable:
    return entry.row.implementation


def _of_switches(entry: Entry) -> Hashable:
    return entry.row.implementation, str(sorted(entry.row.switches.items()))


def _of_backend(entry: Entry) -> Hashable:
    return entry.row.backend, _of_switches(entry)


# From having everything in common to nothing but what they were grouped by.
_LEVELS: tuple[tuple[Key, ...], ...] = (
    (_of_chip, _of_backend),
    (_of_slot, _of_backend),
    (_of_backend,),
    (_of_switches,),
    (_of_implementation,),
    (_of_chip,),
    (_of_slot,),
)
_ALIKE: tuple[tuple[Key, ...], ...] = ((_of_backend,), (_of_switches,), (_of_implementation,), ())


def match(a: Sequence[Entry], b: Sequence[Entry]) -> tuple[list[tuple[Entry, Entry]], list[Entry], list[Entry]]:
    """Pairs of results with one key, and what is left of either side.

    A single result that is left is compared with each of the other side that is most like it; several with several are not.
    """
    found: list[tuple[Entry, Entry]] = []
    left_a, left_b = list(a), list(b)
    for keys in _LEVELS:
        if _of_slot in keys and 1 in (len(left_a), len(left_b)):
            continue  # a number that only tells several devices of one run apart
        pairs = list(_unique(_grouped(left_a, keys), _grouped(left_b, keys)))
        found += pairs
        left_a, left_b = _without(left_a, (one for one, _ in pairs)), _without(left_b, (other for _, other in pairs))
    if len(left_a) == 1 and left_b:
        alike = _most_alike(left_a[0], left_b)
        return [*found, *((left_a[0], other) for other in alike)], [], _without(left_b, alike)
    if len(left_b) == 1 and left_a:
        alike = _most_alike(left_b[0], left_a)
        return [*found, *((one, left_b[0]) for one in alike)], _without(left_a, alike), []
    return found, left_a, left_b


def _most_alike(entry: Entry, others: Sequence[Entry]) -> list[Entry]:
    for keys in _ALIKE:
        alike = [each for each in others if all(key(each) == key(entry) for key in keys)]
        if alike:
            return alike
    return []


def _without(entries: Iterable[Entry], taken: Iterable[Entry]) -> list[Entry]:
    gone = {id(entry) for entry in taken}
    return [entry for entry in entries if id(entry) not in gone]


def _choose(a: Side, b: Side) -> tuple[By, str]:
    empty = " and ".join(name for name, side in (("A", a), ("B", b)) if not side.entries)
    if empty:
        return By.CASE, f"{empty} {'have' if ' and ' in empty else 'has'} no results"
    if a.chips != b.chips:
        return By.WORKLOAD, "not the same devices on both sides"
    if _asked_for(a).isdisjoint(_asked_for(b)):
        shared = {entry.row.case_key for entry in a.entries} & {entry.row.case_key for entry in b.entries}
        only = f"the runs share {counted(len(shared), 'case')} of calibration and no other"
        return By.WORKLOAD, only if shared else "no case is in both runs"
    return By.CASE, "two runs of one device" if len(a.chips) == 1 else "two runs of the same devices"


def _asked_for(side: Side) -> set[str]:
    """Cases of a run without those that every first run of a device begins with, unless it has no others."""
    calibrating = {entry.row.case_key for entry in side.entries if entry.row.job == CalibrationJob.name}
    return {entry.row.case_key for entry in side.entries} - calibrating or calibrating


def _unique(a: Mapping[Hashable, list[Entry]], b: Mapping[Hashable, list[Entry]]) -> Iterator[tuple[Entry, Entry]]:
    for key, ones in a.items():
        others = b.get(key, [])
        if len(ones) == len(others) == 1:
            yield ones[0], others[0]


def _grouped(entries: Iterable[Entry], keys: Iterable[Key]) -> dict[Hashable, list[Entry]]:
    groups: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[tuple(key(entry) for key in keys)].append(entry)
    return dict(groups)
