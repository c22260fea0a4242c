"""Which results of one computation go together: of several those that have the most in common.

The same implementation with the same switches goes together however it ended, as that is one case on both sides.  Others are
held against each other only where both can be: what was not timed is nobody's partner.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from suite.compare.refusal import can_be_compared, is_of_one_kind
from suite.compare.side import Entry

Key = Callable[[Entry], Hashable]


class Matched(NamedTuple):
    """Pairs of results, and what is left of either side."""

    pairs: list[tuple[Entry, Entry]]
    left_a: list[Entry]
    left_b: list[Entry]


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
_SAME: tuple[tuple[Key, ...], ...] = ((_of_chip, _of_backend), (_of_slot, _of_backend), (_of_backend,), (_of_switches,))
_OTHERS: tuple[tuple[Key, ...], ...] = ((_of_implementation,), (_of_chip,), (_of_slot,))
_ALIKE: tuple[tuple[Key, ...], ...] = ((_of_backend,), (_of_switches,), (_of_implementation,), ())


def match(a: Sequence[Entry], b: Sequence[Entry]) -> Matched:
    """Join results with one key.

    A single result that is left is compared with each of the other side that is most like it; several with several are not.
    """
    found, left_a, left_b = _stepwise(a, b, _SAME)
    for first in _each_kind(left_a):
        one, other = ([each for each in left if is_of_one_kind(first, each)] for left in (left_a, left_b))
        found += _others(one, other)
    return Matched(found, _without(a, (one for one, _ in found)), _without(b, (other for _, other in found)))


def grouped(entries: Iterable[Entry], keys: Iterable[Key]) -> dict[Hashable, list[Entry]]:
    """Entries by what all of ``keys`` say of them."""
    groups: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[tuple(key(entry) for key in keys)].append(entry)
    return dict(groups)


def _stepwise(a: Sequence[Entry], b: Sequence[Entry], levels: Sequence[tuple[Key, ...]]) -> Matched:
    """At each level those that nothing else has its keys in common with."""
    found: list[tuple[Entry, Entry]] = []
    left_a, left_b = list(a), list(b)
    for keys in levels:
        if _of_slot in keys and 1 in (len(left_a), len(left_b)):
            continue  # a number that only tells several devices of one run apart
        pairs = list(_unique(grouped(left_a, keys), grouped(left_b, keys)))
        found += pairs
        left_a, left_b = _without(left_a, (one for one, _ in pairs)), _without(left_b, (other for _, other in pairs))
    return Matched(found, left_a, left_b)


def _each_kind(entries: Iterable[Entry]) -> list[Entry]:
    """One of each kind that is compared among itself."""
    found: list[Entry] = []
    for entry in entries:
        if can_be_compared(entry) and not any(is_of_one_kind(entry, each) for each in found):
            found.append(entry)
    return found


def _others(a: Sequence[Entry], b: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    found, left_a, left_b = _stepwise(a, b, _OTHERS)
    if len(left_a) == 1:
        return [*found, *((left_a[0], other) for other in _most_alike(left_a[0], left_b))]
    if len(left_b) == 1:
        return [*found, *((one, left_b[0]) for one in _most_alike(left_b[0], left_a))]
    return found


def _most_alike(entry: Entry, others: Sequence[Entry]) -> list[Entry]:
    for keys in _ALIKE:
        alike = [each for each in others if all(key(each) == key(entry) for key in keys)]
        if alike:
            return alike
    return []


def _without(entries: Iterable[Entry], taken: Iterable[Entry]) -> list[Entry]:
    gone = {id(entry) for entry in taken}
    return [entry for entry in entries if id(entry) not in gone]


def _unique(a: Mapping[Hashable, list[Entry]], b: Mapping[Hashable, list[Entry]]) -> Iterator[tuple[Entry, Entry]]:
    for key, ones in a.items():
        others = b.get(key, [])
        if len(ones) == len(others) == 1:
            yield ones[0], others[0]
