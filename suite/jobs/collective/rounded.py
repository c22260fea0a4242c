"""Which message sizes are measured as others, as ranks have whole elements, and which of them become one case.

Every result says the size that it is of; what was asked for and is not measured is said before the first.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from suite.collectives.message import message, shares_of
from suite.collectives.names import Op
from suite.collectives.number_format import number_format
from suite.jobs.collective.sizes import parse_size, size_text

SAID_AT_MOST = 3  # groups, and sizes of a group, that are named before the rest is only counted


class _Group(NamedTuple):
    """Operations, formats and worlds whose messages are multiples of the same ``unit`` of bytes, and so round alike."""

    unit: int
    ranks: int  # 1 where the operation does not cut its message by ranks
    itemsize: int


def lines(settings: Any) -> Iterator[str]:
    """Lines for people, without an end: a group of operations, formats and ranks each; none where every size is as asked."""
    asked = sorted(set(map(parse_size, settings.sizes)))
    found = {group: told for group, members in _groups(settings).items() if (told := _told(group, members, asked))}
    for told in list(found.values())[:SAID_AT_MOST]:
        yield f"rounded {told}"
    if (more := len(found) - SAID_AT_MOST) > 0:
        yield f"rounded likewise in {more} more combination{'s' if more > 1 else ''} of operation, format and ranks"


def _groups(settings: Any) -> dict[_Group, tuple[dict[str, None], dict[str, None]]]:
    """Operations and formats by group, smaller units first."""
    found: dict[_Group, tuple[dict[str, None], dict[str, None]]] = {}
    for ranks in settings.world_sizes:
        for fmt in settings.formats:
            for op in settings.ops:
                shares, itemsize = shares_of(Op(op), ranks), number_format(fmt).itemsize
                ops, formats = found.setdefault(_Group(shares * itemsize, shares, itemsize), ({}, {}))
                ops[op] = formats[fmt] = None
    return dict(sorted(found.items()))


def _told(group: _Group, members: tuple[dict[str, None], dict[str, None]], asked: Sequence[int]) -> str:
    """``to whole elements of 4 B on each of 3 ranks (all_gather; fp32): 8 B becomes 12 B``; empty where all are as asked."""
    ops, formats = members
    op, fmt, ranks = Op(next(iter(ops))), next(iter(formats)), max(2, group.ranks)  # of the group any will do
    became: dict[int, list[int]] = {}
    for size in asked:
        became.setdefault(message(op, fmt, ranks, size).message_bytes, []).append(size)
    changes = [_change(sizes, size) for size, sizes in became.items() if sizes != [size]]
    if not changes:
        return ""
    more = [f"{len(changes) - SAID_AT_MOST} more"] if len(changes) > SAID_AT_MOST else []
    on = f" on each of {group.ranks} ranks" if group.ranks > 1 else ""
    of = f"({', '.join(ops)}; {', '.join(formats)})"
    return f"to whole elements of {group.itemsize} B{on} {of}: {'; '.join([*changes[:SAID_AT_MOST], *more])}"


def _change(sizes: Sequence[int], became: int) -> str:
    """``8 B becomes 12 B``, ``4 B and 7 B become 4 B, one case``, ``4 B to 7 B (4 sizes) become 4 B, one case``."""
    first, last = size_text(sizes[0]), size_text(sizes[-1])
    if len(sizes) == 1:
        return f"{first} becomes {size_text(became)}"
    named = f"{first} and {last}" if len(sizes) == 2 else f"{first} to {last} ({len(sizes)} sizes)"
    return f"{named} become {size_text(became)}, one case"
