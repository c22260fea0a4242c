"""Of how many measurements a finding speaks, and of which: counted one way everywhere, so that counts and lists agree.

A measurement is one case in one pass.  The same case in another pass is another one with the same name.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from suite.report.words import counted
from suite.selftest.taken import Taken

NAMED_AT_MOST = 3


def among(those: Sequence[Taken], asked: Sequence[Taken], kind: str = "") -> str:
    """``19 of 57 sustained measurements``, ``all 57 sustained measurements``; ``kind`` is the ``sustained``."""
    what = counted(len(asked), f"{kind} measurement".lstrip())
    return f"all {what}" if len(those) == len(asked) > 1 else f"{len(those)} of {what}"


def named(those: Sequence[Taken]) -> str:
    """The first few names, each with how often it was measured, and how many measurements more there are."""
    times = Counter(each.name for each in those)
    first = dict(islice(times.items(), NAMED_AT_MOST))
    names = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in first.items())
    more = len(those) - sum(first.values())
    return f"{names} and {more} more" if more else names


def untold(asked: Sequence[Taken], told: Sequence[Taken]) -> str:
    """``; 3 told nothing``, of those that were asked; empty where all of them did."""
    missing = len(asked) - len(told)
    return f"; {missing} told nothing" if missing else ""


def company(those: Sequence[Taken]) -> str:
    """``; 3 of them were measured beside other work``; empty where none was."""
    contended = sum(bool(each.row.contended) for each in those)
    return f"; {contended} of them were measured beside other work" if contended else ""
