"""Which operation and how many ranks a table must be of, where its heading is lost: from what its columns say of each other."""

from collections.abc import Sequence

from suite.collectives.bandwidth import busbw_factor
from suite.collectives.names import Op
from suite.collectives.number_format import itemsize_of
from suite.importers.rows import CollectiveRow

_BY_RANK = (Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL, Op.GATHER, Op.SCATTER)  # the count is one rank's
_ROOTED = (Op.BROADCAST, Op.REDUCE, Op.GATHER, Op.SCATTER)
_REDUCING = (Op.ALL_REDUCE, Op.REDUCE_SCATTER, Op.REDUCE, Op.SEND_RECV)  # send_recv prints the default of the option
_OUT_OF_PLACE = (Op.ALL_TO_ALL, Op.SEND_RECV)
_LARGEST_WORLD = 16_384  # that is told from bandwidths: beyond it neighbours differ by less than their last digit
_MOST_RANKS = 2**20  # that a device list may name
_GB = 1e9


def is_single_rank(rows: Sequence[CollectiveRow]) -> bool:
    """Whether bus bandwidth is 0 wherever algorithm bandwidth is not: no collective was run."""
    telling = [row for row in rows if row.algbw_bytes_s and row.algbw_bytes_s >= 0.1 * _GB]
    return bool(telling) and all(row.busbw_bytes_s == 0 for row in telling)


def known_world(ranks: int) -> int | None:
    """A number of ranks that a list names; ``None`` for one that no machine has: the list is damaged."""
    return ranks if 0 < ranks <= _MOST_RANKS else None


def ranks_by_factor(op: Op, row: CollectiveRow) -> int | None:
    """The world size by bus over algorithm bandwidth; ``None`` where rounding leaves several, or the factor is always 1."""
    if not row.algbw_bytes_s or not row.busbw_bytes_s or (op not in _BY_RANK and op is not Op.ALL_REDUCE):
        return None
    whole = 2.0 if op is Op.ALL_REDUCE else 1.0
    factor = row.busbw_bytes_s / row.algbw_bytes_s
    rounding = factor * 0.005 * _GB * (1 / row.algbw_bytes_s + 1 / row.busbw_bytes_s)
    if factor + rounding >= whole:
        return None
    # factor = whole (n-1)/n, so n = whole / (whole - factor)
    low, high = (whole / (whole - factor - error) for error in (-rounding, rounding))
    fitting = [ranks for ranks in range(max(2, int(low)), int(high) + 2) if low <= ranks <= high]
    return fitting[0] if len(fitting) == 1 and fitting[0] <= _LARGEST_WORLD else None


def ranks_by_count(row: CollectiveRow) -> int | None:
    """The world size where the count is one rank's share of the size."""
    itemsize = itemsize_of(row.format)
    if not itemsize or not row.count or row.size_bytes % (itemsize * row.count):
        return None
    return row.size_bytes // (itemsize * row.count)


def possible_ops(rows: Sequence[CollectiveRow], ranks: int | None) -> tuple[Op, ...]:
    """The operations that all rows could be of; ``ranks`` where they are known."""
    telling = [row for row in rows if row.size_bytes]
    kinds = _by_checking(telling)
    return tuple(op for op in Op if telling and op in kinds and all(_could_be(op, row, ranks) for row in telling))


def _by_checking(rows: Sequence[CollectiveRow]) -> frozenset[Op]:
    """all_to_all and send_recv have no form in place, and where wrong elements are counted nothing is checked there."""
    counted = [row for row in rows if row.wrong is not None]
    if any(row.in_place for row in counted):
        return frozenset(Op) - frozenset(_OUT_OF_PLACE)
    return frozenset(_OUT_OF_PLACE if counted and any(row.in_place for row in rows) else Op)


def _could_be(op: Op, row: CollectiveRow, ranks: int | None) -> bool:
    if (row.root is not None and row.root >= 0) != (op in _ROOTED):
        return False
    if (row.redop in (None, "none")) == (op in _REDUCING):
        return False
    share = ranks_by_count(row)
    if ranks != 1 and share is not None and (share == 1) == (op in _BY_RANK):
        return False
    return _factor_fits(op, row, ranks or (share if op in _BY_RANK else None))


def _factor_fits(op: Op, row: CollectiveRow, ranks: int | None) -> bool:
    """Whether bus over algorithm bandwidth can be the operation's, within what two decimals leave open."""
    if not row.algbw_bytes_s or not row.busbw_bytes_s:
        return True
    rounding = 0.0051 * _GB * (1 + row.busbw_bytes_s / row.algbw_bytes_s)
    if ranks == 1:
        return True
    if ranks is not None:
        return abs(row.busbw_bytes_s - row.algbw_bytes_s * busbw_factor(op, ranks)) <= rounding + 1e-3 * row.busbw_bytes_s
    highest = 2.0 if op is Op.ALL_REDUCE else 1.0
    lowest = 1.0 if op not in _BY_RANK else 0.5
    return row.algbw_bytes_s * lowest - rounding <= row.busbw_bytes_s <= row.algbw_bytes_s * highest + rounding
