"""Result rows for lists: columns are fetched, never objects, and only those that a list shows."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Double, Integer, Select, Text, and_, cast, exists, select, type_coerce
from sqlalchemy.orm import aliased

from suite.outcome import Bound, Evidence, Outcome
from suite.rows import Fractions, ResultRow
from suite.store.columns import SafeText, load_json, refuse_non_count, refuse_non_number, refuse_non_text
from suite.store.counts import refuse_miscounted
from suite.store.damage import UNREADABLE, Damaged, converting, scalars
from suite.store.plausible import RANGES, Range, refuse_crossed, refuse_implausible, refuse_rates_of_nothing
from suite.store.tables import Case, Device, Result, Run, Summary, Workload
from suite.work import Work

# By the field of ResultRow, or of what it is built from.
COLUMNS: dict[str, Any] = {
    "result_id": Result.id,
    "run": Run.name,
    "case_key": Case.key,
    "workload_key": Workload.key,
    "job": Workload.job,
    "implementation": Case.implementation,
    "backend": Case.backend,
    "device": Device.name,
    "device_uid": Device.uid,
    "device_slot": Result.device_slot,
    "hardware": Device.hardware,
    "format": Workload.format,
    "execution": Result.execution,
    "params": cast(Workload.params, Text),
    "semantics": cast(Workload.semantics, Text),
    "distribution": Workload.distribution,
    "switches": cast(Case.switches, Text),
    "cache": Case.cache,
    "load": Case.load,
    "dispatch": Case.dispatch,
    "evidence": Result.evidence,
    "attempt": Result.attempt,
    "outcome": Result.outcome,
    "reason": Result.reason,
    "finished_at": Result.finished_at,
    "flops": Result.flops,
    "compulsory_bytes": Result.compulsory_bytes,
    "pipe": Result.pipe,
    "converged": Result.converged,
    "steady": Result.steady,
    "contended": Result.contended,
    "method": Result.method,
    "error_rel": Result.error_rel,
    "tolerance": Result.tolerance,
}
SUMMARY_FIELDS = (
    "bound", "count", "p50_s", "p05_s", "p95_s", "min_s", "flop_s", "bytes_s", "clock_hz", "energy_j", "power_w", "throttle",
    "interval_low_s", "interval_high_s", "fraction_spec", "fraction_boost", "fraction_at_clock", "quantisation_error",
    "p50_cycles", "interval_low_cycles", "interval_high_cycles",
)  # fmt: skip
NUMBERS = ("error_rel", "tolerance", *(name for name in SUMMARY_FIELDS if name not in ("bound", "throttle")))
COLUMNS |= {name: getattr(Summary, name) for name in SUMMARY_FIELDS}
TEXTS = tuple(name for name, column in COLUMNS.items() if isinstance(column.type, SafeText))
OWN_TEXTS = ("execution", "reason", "pipe", "bound", "method", "throttle")  # the result's own: the others say which it is
WORK = ("flops", "compulsory_bytes")
# These come as they are and are looked at in ``to_row``, which knows the result and the field that an error must name.
COLUMNS["method_version"] = Case.method_version
COLUMNS |= {name: type_coerce(COLUMNS[name], Double) for name in NUMBERS}
COLUMNS |= {name: type_coerce(COLUMNS[name], Text) for name in (*TEXTS, *WORK)}
# Whether the device is one of the run and in the slot that the result names; ``NULL`` where there is none.
COLUMNS["is_placed"] = type_coerce(and_(Device.run_id == Result.run_id, Device.slot == Result.device_slot), Integer)
_NAMES = tuple(COLUMNS)
_IDENTITY = tuple(name for name in TEXTS if name not in (*OWN_TEXTS, "outcome"))
_PLAIN_SAID = ("params", "semantics", "switches", "finished_at")
_ANY = Range(-sys.float_info.max, sys.float_info.max, 0.0)
_LIMITS = {name: RANGES.get(name, _ANY) for name in NUMBERS}
_PART = 1000  # rows fetched at once: one at a time costs half as much again


def rows_statement(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Select the columns of result rows that meet the conditions: of each case of a run the latest attempt only.

    What a result refers to is joined from outside: one that lost it must be missed, not passed over.
    """
    return (
        select(*(column.label(name) for name, column in COLUMNS.items()))
        .select_from(Result)
        .join(Run, Run.id == Result.run_id)
        .outerjoin(Device, Device.id == Result.device_id)
        .outerjoin(Case, Case.id == Result.case_id)
        .outerjoin(Workload, Workload.id == Case.workload_id)
        .outerjoin(Summary, Summary.result_id == Result.id)
        .where(is_latest(), *conditions)
    )


def is_latest() -> ColumnElement[bool]:
    """No later attempt at the same case on the same slot of the same run is stored."""
    later = aliased(Result)
    return ~exists(
        select(later.id).where(
            later.run_id == Result.run_id,
            later.device_slot == Result.device_slot,
            later.case_id == Result.case_id,
            later.attempt > Result.attempt,
        )
    )


def fetch(connection: Connection, statement: Select[Any]) -> Iterator[dict[str, Any]]:
    """Run a ``rows_statement`` and give each row as the fields that ``to_row`` takes."""
    for part in connection.execute(statement).partitions(_PART):
        for row in part:
            yield dict(zip(_NAMES, row, strict=True))


Empirical = Callable[[Mapping[str, Any]], float | None]


def to_row(fields: dict[str, Any], empirical: Empirical | None = None) -> ResultRow:
    """Build one row; ``Damaged`` where the file holds what no column of a store can hold.

    ``fields`` is used up.  ``empirical`` gives the fraction that only reading can tell.
    """
    with converting(f"result {fields['result_id']}"):
        _refuse_misplaced(fields)
        _refuse_misfits(fields)
        return _row(fields, empirical)


def to_listed_row(fields: dict[str, Any], empirical: Empirical | None = None) -> ResultRow:
    """``to_row`` for a list: a row whose numbers are damaged has none of them, and its reason says why.

    It keeps its place, for cases are named by their number in a list.  ``Damaged`` where the file does not say whose it is, or
    where what it is held against is damaged.
    """
    where = f"result {fields['result_id']}"
    with converting(where):
        _refuse_misplaced(fields)
        try:
            with converting(where):
                _refuse_misfits(fields)
        except Damaged as found:
            return _without_figures(fields, found)
        return _row(fields, empirical)


def _row(fields: dict[str, Any], empirical: Empirical | None) -> ResultRow:
    if _has_uncounted_work(fields):
        fields |= {"bound": Bound.UNKNOWN.value, "flop_s": None, "bytes_s": None}
    fields["arithmetic_intensity"] = Work(fields["flops"], fields["compulsory_bytes"], None).arithmetic_intensity
    seen = empirical(fields) if empirical else None
    fields.pop("method_version", None)
    _say_plainly(fields)
    return ResultRow(
        interval_s=_ends(fields.pop("interval_low_s"), fields.pop("interval_high_s")),
        interval_cycles=_ends(fields.pop("interval_low_cycles"), fields.pop("interval_high_cycles")),
        fractions=Fractions(fields.pop("fraction_spec"), fields.pop("fraction_boost"), fields.pop("fraction_at_clock"), seen),
        **fields,
    )


def _has_uncounted_work(fields: Mapping[str, Any]) -> bool:
    """Whether a timed row of another tool is of a work that nobody knows: its operation or its ranks are not told, or one.

    It is stored with no work, of which rates of 0 follow, and that it was launched and nothing else.
    """
    no_work = not fields["flops"] and not fields["compulsory_bytes"]
    return fields["evidence"] == Evidence.IMPORTED and no_work and fields["p50_s"] is not None


def _without_figures(fields: dict[str, Any], found: Damaged) -> ResultRow:
    _say_plainly(fields)
    work = Work(_known_count(fields["flops"]), _known_count(fields["compulsory_bytes"]), None)
    own = {name: fields[name] if isinstance(fields[name], str) else None for name in ("execution", "pipe")}
    named = {name: fields[name] for name in (*_IDENTITY, "result_id", "device_slot", "attempt", *_PLAIN_SAID)}
    return ResultRow(
        **named,
        outcome=Outcome.ERROR.value,
        reason=f"damaged in the store: {found}; `roofbench store check` lists what is wrong",
        execution=own["execution"] or "unknown",
        pipe=own["pipe"],
        arithmetic_intensity=work.arithmetic_intensity,
        flops=work.flops,
        compulsory_bytes=work.compulsory_bytes,
    )


def _known_count(value: Any) -> int:
    """A work count where it is one, else 0."""
    with suppress(*UNREADABLE):
        return max(0, int(value))
    return 0


def _say_plainly(fields: dict[str, Any]) -> None:
    """What a row says of its case and its time, from how the store keeps it."""
    for name in ("params", "semantics", "switches"):
        fields[name] = _parsed(fields[name], name)
    fields["finished_at"] = utc_text(fields["finished_at"])


def _ends(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _refuse_misfits(fields: dict[str, Any]) -> None:
    """``ValueError`` for what is no number or text where one must be, for a number that none measured, and unknown words."""
    for name, (low, high, least_other) in _LIMITS.items():
        value = fields[name]
        fits = type(value) is float and low <= value <= high and (value <= 0 or value >= least_other)
        if value is not None and not fits:
            with converting(f"result {fields['result_id']}, {name}"):
                refuse_non_number(value)
                if name in RANGES:
                    refuse_implausible(name, value)
    _refuse_non_texts(fields, OWN_TEXTS)
    for name in WORK:
        if type(fields[name]) is not int or fields[name] < 0:
            with converting(f"result {fields['result_id']}, {name}"):
                fields[name] = int(fields[name])
                refuse_implausible(name, fields[name])
    if fields["p50_s"] is not None:
        refuse_rates_of_nothing(fields)
        if "method_version" in fields:  # a row of a file, not one that is being recorded
            refuse_miscounted(fields)
    refuse_crossed(fields)
    Outcome(fields["outcome"])


def _refuse_non_texts(fields: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        value = fields[name]
        if value is not None and type(value) is not str:
            with converting(f"result {fields['result_id']}, {name}"):
                refuse_non_text(value)


def _refuse_misplaced(fields: dict[str, Any]) -> None:
    """``ValueError`` where it is not said which case of which run and device a row is of."""
    _refuse_non_texts(fields, _IDENTITY)
    for name in ("device_uid", "case_key", "workload_key"):
        if fields[name] is None:
            raise ValueError(f"its {name.partition('_')[0]} is missing")
    Evidence(fields["evidence"])
    refuse_non_count(fields["attempt"], "attempt")
    if not fields.pop("is_placed"):
        raise ValueError(f"its device is not in slot {str(fields['device_slot'])[:40]} of its run")


def no_summary() -> dict[str, None]:
    """The derived fields of a result that was not timed."""
    return dict.fromkeys(SUMMARY_FIELDS)


def utc_text(time: datetime) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def summary_fields(summary: Any) -> Mapping[str, Any]:
    """The fields of a row that come from a ``suite.roofline.Summary``."""
    return {name: getattr(summary, name) for name in SUMMARY_FIELDS}


def _parsed(content: str | dict[str, Any], name: str) -> dict[str, Any]:
    return dict(_cached(content, name) if isinstance(content, str) else content)  # a copy: a row's owner may change it


@lru_cache(maxsize=4096)
def _cached(text: str, name: str) -> dict[str, Any]:
    return scalars(load_json(text), name)
