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
    """``; of 3 it is not known``, of those that were asked; empty where it is of all."""
    missing = len(asked) - len(told)
    return f"; of {missing} it is not known" if missing else ""


def left_out(contended: int, unknown: int, whole: str = "") -> str:
    """``3 were measured beside other work, and of 2 that is not known``; empty where none was left out.

    ``whole`` is the ``of 20 cases`` that follows the first number.
    """
    of = f" {whole}" if whole else ""
    if not contended:
        return f"of {unknown}{of} it is not known whether other work was there" if unknown else ""
    unsure = f", and of {unknown} that is not known" if unknown else ""
    return f"{contended}{of} {'was' if contended == 1 else 'were'} measured beside other work{unsure}"


def company(those: Sequence[Taken]) -> str:
    """``; 3 of them were measured beside other work``; empty where none was."""
    contended = sum(bool(each.row.contended) for each in those)
    return f"; {contended} of them were measured beside other work" if contended else ""
