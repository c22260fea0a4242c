"""Which results of two runs belong together, and which have nothing to be compared with.

Runs of one device are joined by case, which is one exact measurement; devices, backends and implementations by workload and
regime.
"""

from enum import StrEnum
from typing import NamedTuple

from suite.compare.matching import Key, grouped, match
from suite.compare.refusal import refusal
from suite.compare.side import Entry, Side
from suite.compare.strangers import Partners, Strangers
from suite.jobs.calibration import CalibrationJob
from suite.report.words import counted


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


class _Joined(NamedTuple):
    """What a join by one key came to."""

    pairs: list[Pair]
    refused: list[Uncompared]
    alone_a: list[Entry]
    alone_b: list[Entry]


def pair(a: Side, b: Side, by: By | None = None) -> Pairing:
    """Join the results of two runs; ``by`` is chosen where it is not given."""
    chosen, why = (by, "as asked for") if by else _choose(a, b)
    by_workload = _join(a, b, lambda entry: entry.regime_key)
    joined = by_workload if chosen is By.WORKLOAD else _join(a, b, lambda entry: entry.row.case_key)
    partners = _partners(by_workload) if chosen is By.CASE else {}
    compared = {id(entry) for both in joined.pairs for entry in both}
    of_a = Strangers("A", "B", b.entries, by_workload.alone_b, partners, compared)
    of_b = Strangers("B", "A", a.entries, by_workload.alone_a, partners, compared)
    uncompared = (
        *joined.refused,
        *(Uncompared(entry, None, of_a.why(entry)) for entry in joined.alone_a),
        *(Uncompared(None, entry, of_b.why(entry)) for entry in joined.alone_b),
    )
    return Pairing(chosen, why, tuple(joined.pairs), uncompared)


def _join(a: Side, b: Side, key: Key) -> _Joined:
    found = _Joined([], [], [], [])
    of_a, of_b = grouped(a.entries, [key]), grouped(b.entries, [key])
    for each in dict.fromkeys([*of_a, *of_b]):
        matched = match(of_a.get(each, ()), of_b.get(each, ()))
        found.alone_a.extend(matched.left_a)
        found.alone_b.extend(matched.left_b)
        for one, other in matched.pairs:
            refused = refusal(one, other)
            if refused:
                found.refused.append(Uncompared(one, other, refused))
            else:
                found.pairs.append(Pair(one, other))
    return found


def _partners(joined: _Joined) -> Partners:
    """Of each entry the first that it belongs with, one that it is compared with before any other."""
    found: dict[int, Entry] = {}
    for one, other in (*joined.pairs, *((each.a, each.b) for each in joined.refused)):
        if one is not None and other is not None:
            found.setdefault(id(one), other)
            found.setdefault(id(other), one)
    return found


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
