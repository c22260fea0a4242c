"""Differences against limits."""

from typing import NamedTuple

from tests.peers.record import Verdict


class Judged(NamedTuple):
    """A difference and what it means; ``None`` and absent where a side has no figure."""

    difference: float | None
    verdict: Verdict


def relative(ours: float | None, theirs: float | None, limit: float) -> Judged:
    """``ours / theirs - 1``, which must lie within ``limit`` of 0."""
    if ours is None or not theirs:
        return Judged(None, Verdict.ABSENT)
    return Judged(ours / theirs - 1, within(ours / theirs - 1, limit))


def absolute(ours: float | None, theirs: float | None, limit: float) -> Judged:
    """``ours - theirs``, which must lie within ``limit`` of 0, in the unit of both."""
    if ours is None or theirs is None:
        return Judged(None, Verdict.ABSENT)
    return Judged(ours - theirs, within(ours - theirs, limit))


def at_most(value: float | None, limit: float) -> Verdict:
    """Whether a figure that should be small is."""
    if value is None:
        return Verdict.ABSENT
    return Verdict.PASS if value <= limit else Verdict.FAIL


def within(difference: float, limit: float) -> Verdict:
    return Verdict.PASS if abs(difference) <= limit else Verdict.FAIL


def spread(values: list[float]) -> float | None:
    """Largest over smallest, less one; ``None`` of fewer than two."""
    return max(values) / min(values) - 1 if len(values) > 1 and min(values) > 0 else None
