"""What of a comparison a gate can be told to fail on."""

from collections.abc import Collection
from enum import StrEnum

from suite.compare.comparison import Comparison
from suite.compare.verdict import Verdict
from suite.report.words import counted


class FailOn(StrEnum):
    """``lost`` is a case that A has verified and timed, and B has not."""

    SLOWER = "slower"
    FASTER = "faster"
    DIFFERENT = "different"
    UNDECIDED = "undecided"
    LOST = "lost"


_VERDICTS = {
    FailOn.SLOWER: (Verdict.SLOWER,),
    FailOn.FASTER: (Verdict.FASTER,),
    FailOn.DIFFERENT: (Verdict.SLOWER, Verdict.FASTER),
    FailOn.UNDECIDED: (Verdict.UNDECIDED,),
    FailOn.LOST: (),
}


def failures(comparison: Comparison, fail_on: Collection[FailOn]) -> list[str]:
    """What the gate fails on, ``2 cases SLOWER``; empty where it passes."""
    wanted = {verdict for each in fail_on for verdict in _VERDICTS[each]}
    found = [f"{counted(count, 'case')} {verdict.value}" for verdict, count in comparison.counts().items()
             if count and verdict in wanted]  # fmt: skip
    if FailOn.LOST in fail_on and comparison.lost:
        found.append(f"{counted(len(comparison.lost), 'case')} lost")
    return found
