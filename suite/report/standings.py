"""Devices side by side: of each job and format the best result of a device, chosen as headlines are, from groups alone."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from suite.case import format_label
from suite.outcome import Bound, Outcome
from suite.report.curves import Quantity
from suite.report.headlines import SUSTAINED, bound_tier
from suite.report.heat import FAILED, Cell, HeatMap
from suite.report.trust import trust_rank
from suite.report.words import bytes_rate, doubtful, percent, rate_unit, si
from suite.rows import ResultRow
from suite.store.columns import load_json

if TYPE_CHECKING:  # the store's room imports SQLAlchemy
    from suite.store.scopes import Group

Device = TypeVar("Device")
_ORDER = ("gemm", "attention", "decode", "decode_step", "collective")  # jobs, as pages stand; others follow by name
UNRANKED = ("calibration",)  # what other results are held against


class Column(NamedTuple):
    """A job with one format (its label)."""

    job: str
    format: str


def is_clean(row: ResultRow) -> bool:
    """Whether a result is verified and its number not in doubt.

    A throttled one may be: under sustained load a power cap is what the load is, and to pass it over would show the fastest.
    """
    return row.outcome == Outcome.OK and row.p50_s is not None and not doubtful(row)


def preferred(rows: Sequence[ResultRow]) -> ResultRow:
    """Which result of one case is shown: a clean one before one in doubt before one that failed, then the newest.

    One that was contended or is not resolved comes after whatever else is in doubt, for its number may be of anything: a second
    run that others disturbed hides no good one.
    """
    return max(rows, key=lambda row: (row.outcome == Outcome.OK, trust_rank(row), is_clean(row), row.result_id))


SHOWN = (
    "Of each case the newest clean result is shown; one in doubt (contended, not steady, not converged or not resolved) "
    "only where the case has no clean one."
)


def label_of(group: "Group") -> str:
    """The format's label."""
    return _label(group.format, group.semantics)


@lru_cache(maxsize=4096)  # a store of a million results has tens of thousands of groups, and a dozen labels
def _label(format: str, text: str) -> str:
    """A file may hold anything where JSON should be."""
    try:
        semantics = load_json(text)
    except (ValueError, RecursionError):
        semantics = {}
    return format_label(format, semantics if isinstance(semantics, dict) else {})


def best_groups(groups: Iterable[tuple[Device, "Group"]]) -> dict[tuple[Device, str, Column], "Group"]:
    """By device, kind of evidence, job and format, the group with the best result: its ``best`` is that result's id.

    Of one load, sustained where any was; trusted before resolved before others, then by what bounds it as headlines rank that,
    then by standing.  A rate whose share is not told because it passed a derived peak is the best nonetheless.  Where nothing
    was timed it is a group of how most cases ended.
    """
    found: dict[tuple[Device, str, str, str], Group] = {}
    for device, group in groups:
        if group.job not in UNRANKED:
            place = (device, group.evidence, group.job, label_of(group))
            best = found.setdefault(place, group)
            if best is not group and _rank(group) > _rank(best):
                found[place] = group
    return {(device, kind, Column(job, name)): group for (device, kind, job, name), group in found.items()}


def standings_map(
    devices: Sequence[str], columns: Sequence[Column], rows: Mapping[tuple[int, int], ResultRow], share: Quantity
) -> HeatMap:
    """The heat map of shares, devices down and jobs with formats across; without a share a cell says ``best_rate``.

    Every cell has its unit: a share, operations and bytes stand in one row.
    """
    cells = {place: Cell(_written(row, share), share.value(row), row) for place, row in rows.items()}
    names = [f"{column.job} {column.format}" for column in columns]
    is_rate = any(row.outcome == Outcome.OK and share.value(row) is None for row in rows.values())
    note = "without a colour: no share known, the rate: in B/s where memory or a link bounds it" if is_rate else ""
    return HeatMap(devices, names, cells, (share.title, "0 %", "100 %"), note=note)


def in_order(columns: Iterable[Column]) -> list[Column]:
    """GEMM first, formats by name."""
    known = {job: place for place, job in enumerate(_ORDER)}
    return sorted(set(columns), key=lambda column: (known.get(column.job, len(known)), column))


def _rank(group: "Group") -> tuple[bool, bool, int, int, bool, float]:
    if group.outcome != Outcome.OK:
        return (False, False, 0, 0, False, float(group.results))
    passed = group.bound == Bound.COMPUTE and not group.has_share  # above a derived peak, or on a device without one
    tier = bound_tier(group.bound)
    return (True, group.load == SUSTAINED, group_trust(group), tier, passed and group.standing > 0, group.standing)


def group_trust(group: "Group") -> int:
    """What ``trust_rank`` is of each of its results."""
    return int(group.is_trusted) + int(group.is_resolved)


def _written(row: ResultRow, share: Quantity) -> str:
    if row.outcome != Outcome.OK:
        return FAILED
    found = share.value(row)
    return best_rate(row) if found is None else percent(found)


def best_rate(row: ResultRow) -> str:
    """What a result does in a second: operations, or bytes where it does none or they are what bounds it."""
    return bytes_rate(row) if _moves(row) else si(row.flop_s, rate_unit(row.multiplied))


def _moves(row: ResultRow) -> bool:
    return not row.flops or row.bound == Bound.MEMORY
