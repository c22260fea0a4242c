"""The columns of a table of nccl-tests or rccl-tests: by its heading, or by the look of a row where the heading is lost.

2018-20   size count type [redop] [root]      time algbw busbw error   twice
2.10-     size count type redop root          time algbw busbw #wrong  twice
2.19 -I   the same with i_min i_max i_p99 i_cv% after #wrong
rccl      one half alone, hipevt after time, algo proto nchannels at the end; either tool: timestamp at the end
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from suite.collectives.number_format import format_of_tests, itemsize_of

VALUES = ("time", "cputime", "hipevt", "algbw", "busbw", "error", "#wrong", "i_min", "i_max", "i_p99", "i_cv%")
_TIMES = ("time", "cputime")
_PLAIN = ("time", "algbw", "busbw", "#wrong")
_PER_ITERATION = (*_PLAIN, "i_min", "i_max", "i_p99", "i_cv%")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)\*?|N/A", re.IGNORECASE)
_START = re.compile(r"^\d{1,18}$")  # a longer one is no size, nor a number that can be computed with
_ROOT = re.compile(r"-?\d{1,9}")
_DESCRIBED, _TOLD = {"size", "count", "type"}, {"algbw", "busbw"}  # what every row is read for
_MARKED = ("error", "#wrong")  # only these are marked with a star, where the tool took them for too large
_TYPE = re.compile(r"^[a-z][a-z0-9_]+$")
_TIME = re.compile(r"\d+\.|\d{5}")  # shorter ones have decimals: an integer there is a root, and the row is cut


class Layout(NamedTuple):
    """``leading`` foreign columns, the describing columns, one or two halves of values, and what follows them.

    ``in_place`` says it of each half.
    """

    leading: int
    describing: tuple[str, ...]
    halves: tuple[tuple[str, ...], ...]
    in_place: tuple[bool, ...]
    trailing: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """How many words a whole row has; a timestamp is two."""
        extra = sum(2 if name == "timestamp" else 1 for name in self.trailing)
        return self.leading + len(self.describing) + sum(map(len, self.halves)) + extra


def of_heading(heading: str, above: str) -> Layout | None:
    """The layout of a line of column names, ``above`` being the line before; ``None`` for any other line."""
    names = heading.replace("#wrong", "\0").replace("#", " ").replace("\0", "#wrong").split()
    if "size" not in names or "count" not in names or not any(name in _TIMES for name in names):
        return None
    leading, first = names.index("size"), min(names.index(name) for name in _TIMES if name in names)
    values = [name for name in names[first:] if name in VALUES]
    starts = [index for index, name in enumerate(values) if name in _TIMES]
    halves = tuple(tuple(values[start:stop]) for start, stop in zip(starts, [*starts[1:], None], strict=True))
    if not _DESCRIBED.issubset(names[leading:first]) or not all(_TOLD.issubset(half) for half in halves):
        return None  # a heading that lost a name
    one_half = ("in-place" in above and "out-of-place" not in above,)
    trailing = tuple(name for name in names[first:] if name not in VALUES)
    return Layout(leading, tuple(names[leading:first]), halves, (False, True) if len(halves) > 1 else one_half, trailing)


def of_row(words: Sequence[str]) -> Layout | None:
    """The layout that a whole row without a heading fits; ``None`` where it fits none."""
    if len(words) < 4 or not (_START.match(words[0]) and _START.match(words[1]) and _TYPE.match(words[2])):
        return None
    redop = bool(_TYPE.match(words[3]))
    for root in (True, False):
        describing = ("size", "count", "type", *("redop",) * redop, *("root",) * root)
        for half in (_PLAIN, _PER_ITERATION):
            if len(words) == len(describing) + 2 * len(half) and _TIME.match(words[len(describing)]):
                # A difference always has an exponent, 0 too; of counts only those of a million or more, which are as bad.
                errors = (words[len(describing) + 3], words[len(describing) + len(half) + 3])
                deltas = any(re.fullmatch(r"\de[-+]\d+\*?", error) for error in errors)
                values = tuple("error" if deltas and name == "#wrong" else name for name in half)
                return Layout(0, describing, (values, values), (False, True), ())
    return None


def begins_row(words: Sequence[str], leading: int = 0) -> bool:
    """Whether words begin as a row does, after ``leading`` foreign ones: size, count and a type."""
    own = words[leading:]
    return len(own) >= 3 and bool(_START.match(own[0]) and _START.match(own[1]) and _TYPE.match(own[2]))


def are_values(words: Sequence[str]) -> bool:
    """Whether words can be the rest of a row: numbers and ``N/A`` only."""
    return bool(words) and all(_NUMBER.fullmatch(word) for word in words)


def cells(layout: Layout, words: Sequence[str]) -> tuple[dict[str, str], list[dict[str, str]]] | None:
    """Describing and trailing cells by name, and each half's; ``None`` where the words are no whole row of this layout."""
    if len(words) != layout.tokens or not begins_row(words, layout.leading):
        return None
    start = layout.leading
    described = dict(zip(layout.describing, words[start : start + len(layout.describing)], strict=True))
    if "root" in described and not _ROOT.fullmatch(described["root"]):
        return None
    if not _is_size_of_count(described):
        return None
    start += len(layout.describing)
    halves: list[dict[str, str]] = []
    for half in layout.halves:
        values = words[start : start + len(half)]
        if not are_values(values):
            return None
        named = dict(zip(half, values, strict=True))
        if any(value.endswith("*") for name, value in named.items() if name not in _MARKED):
            return None
        halves.append(named)
        start += len(half)
    for name in layout.trailing:
        width = 2 if name == "timestamp" else 1
        described[name] = " ".join(words[start : start + width])
        start += width
    return described, halves


def _is_size_of_count(described: Mapping[str, str]) -> bool:
    """Whether a size is its count of elements, or as many for each rank: one that lost its first digits is not."""
    counted = int(described["count"]) * (itemsize_of(format_of_tests(described["type"])) or 0)
    size = int(described["size"])
    return counted == 0 or (size > 0 and size % counted == 0)
