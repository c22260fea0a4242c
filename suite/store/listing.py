"""Result rows for lists: columns are fetched, never objects, and only those that a list shows."""

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Double, Integer, Select, Text, and_, cast, exists, select, type_coerce
from sqlalchemy.orm import aliased

from suite.outcome import Evidence, Outcome
from suite.rows import Fractions, ResultRow
from suite.store.columns import SafeText, load_json, refuse_non_count, refuse_non_number, refuse_non_text
from suite.store.damage import converting, scalars
from suite.store.plausible import RANGES, Range, refuse_crossed, refuse_implausible
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
# These come as they are and are looked at in ``to_row``, which knows the result and the field that an error must name.
COLUMNS |= {name: type_coerce(COLUMNS[name], Double) for name in NUMBERS}
COLUMNS |= {name: type_coerce(COLUMNS[name], Text) for name in TEXTS}
# Whether the device is one of the run and in the slot that the result names; ``NULL`` where there is none.
COLUMNS["is_placed"] = type_coerce(and_(Device.run_id == Result.run_id, Device.slot == Result.device_slot), Integer)
_NAMES = tuple(COLUMNS)
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
        _refuse_misfits(fields)
        fields["arithmetic_intensity"] = Work(fields["flops"], fields["compulsory_bytes"], None).arithmetic_intensity
        seen = empirical(fields) if empirical else None
        for name in ("params", "semantics", "switches"):
            fields[name] = _parsed(fields[name], name)
        fields["finished_at"] = utc_text(fields["finished_at"])
        return ResultRow(
            interval_s=_ends(fields.pop("interval_low_s"), fields.pop("interval_high_s")),
            interval_cycles=_ends(fields.pop("interval_low_cycles"), fields.pop("interval_high_cycles")),
            fractions=Fractions(
                fields.pop("fraction_spec"), fields.pop("fraction_boost"), fields.pop("fraction_at_clock"), seen
            ),
            **fields,
        )


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
    for name in TEXTS:
        value = fields[name]
        if value is not None and type(value) is not str:
            with converting(f"result {fields['result_id']}, {name}"):
                refuse_non_text(value)
    refuse_crossed(fields)
    for name in ("device_uid", "case_key", "workload_key"):
        if fields[name] is None:
            raise ValueError(f"its {name.partition('_')[0]} is missing")
    _refuse_misplaced(fields)
    Outcome(fields["outcome"])
    Evidence(fields["evidence"])


def _refuse_misplaced(fields: dict[str, Any]) -> None:
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
