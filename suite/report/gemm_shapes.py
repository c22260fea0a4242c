"""Products by their shape: rows of A down, the other two sizes across, the best of what is shown in each cell."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from suite.outcome import Outcome
from suite.report.curves import Quantity
from suite.report.heat import FAILED, Cell, HeatMap
from suite.report.roofs import drawable
from suite.report.trust import trust_rank
from suite.report.values import BANDWIDTH, RATE, number_of
from suite.report.words import duration, percent, rate_unit, si
from suite.rows import ResultRow

MOST_CELLS = 40  # across and down: more are no longer read
Size = TypeVar("Size", float, tuple[float, float])


def shape_map(rows: Sequence[ResultRow], value: Quantity) -> tuple[HeatMap, int]:
    """The heat map of ``value`` over shapes, and how many shapes had no place in it.

    Of several results of one shape, of those that are trusted most, the highest value is shown, of times the lowest; sizes
    that fewest results have go first where there are more than ``MOST_CELLS``.
    """
    placed = [(shape, row) for row in rows if (shape := _shape(row)) and _is_told(row, value)]
    downs = _most([shape[0] for shape, _ in placed])
    acrosses = _most([shape[1:] for shape, _ in placed])
    best: dict[tuple[int, int], ResultRow] = {}
    for (m, n, k), row in placed:
        if m in downs and (n, k) in acrosses:
            place = (downs.index(m), acrosses.index((n, k)))
            if place not in best or _better(row, best[place], value):
                best[place] = row
    top = max((value.value(row) or 0.0 for row in best.values()), default=0.0)
    shapes = {shape for shape, _ in placed}
    shown = {shape for shape in shapes if shape[0] in downs and shape[1:] in acrosses}
    cells = {place: Cell(_written(row, value), _level(row, value, top), row) for place, row in best.items()}
    names = [f"{n:g} x {k:g}" for n, k in acrosses]
    scale = (value.title, *(("0 %", "100 %") if value.is_share else ("0", _text(top, value))))
    return HeatMap([f"{m:g}" for m in downs], names, cells, scale, "down: m, across: n x k"), len(shapes - shown)


def _shape(row: ResultRow) -> tuple[float, float, float] | None:
    sizes = [number_of(row, name) for name in ("m", "n", "k")]
    return None if None in sizes else (sizes[0] or 0.0, sizes[1] or 0.0, sizes[2] or 0.0)


def _most(sizes: Sequence[Size]) -> list[Size]:
    """The sizes that most results have, in their order."""
    counts = Counter(sizes)
    return sorted(sorted(counts, key=lambda size: (-counts[size], size))[:MOST_CELLS])


def _is_told(row: ResultRow, value: Quantity) -> bool:
    """A result with the value, or a case that ended without any: a shape that failed keeps its place."""
    return row.outcome != Outcome.OK or (drawable(row) and value.value(row) is not None)


def _better(row: ResultRow, than: ResultRow, value: Quantity) -> bool:
    if row.outcome != Outcome.OK or than.outcome != Outcome.OK:
        return row.outcome == Outcome.OK
    if trust_rank(row) != trust_rank(than):
        return trust_rank(row) > trust_rank(than)
    one, other = value.value(row) or 0.0, value.value(than) or 0.0
    return one < other if value.is_less_better else one > other


def _level(row: ResultRow, value: Quantity, top: float) -> float | None:
    found = value.value(row)
    if found is None:
        return None
    return min(1.0, found if value.is_share else found / top if top else 0.0)


def _written(row: ResultRow, value: Quantity) -> str:
    if row.outcome != Outcome.OK:
        return FAILED
    return _text(value.value(row) or 0.0, value, _unit(row, value))


def _unit(row: ResultRow, value: Quantity) -> str:
    """A map may have floats and integers in it, whose operations are not called the same."""
    if value is BANDWIDTH:
        return "B/s"
    return rate_unit(row.multiplied) if value is RATE else rate_unit(row.multiplied).replace("/s", "/J")


def _text(found: float, value: Quantity, unit: str = "") -> str:
    if value.is_share:
        return percent(found)
    return duration(found) if value.is_less_better else si(found, unit)
