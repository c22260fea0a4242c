"""Whether the work of a result is what its job counts for its workload."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, cast, select

from suite.case import Workload, items
from suite.errors import UsageError
from suite.jobs.registry import find
from suite.outcome import Evidence
from suite.store import tables
from suite.store.columns import load_json
from suite.store.damage import UNREADABLE, scalars

COUNTED = (Evidence.MEASURED.value, Evidence.SIMULATED.value)  # another tool counts its own

_CASE = tables.table_of(tables.Case)
_RESULT = tables.table_of(tables.Result)
_WORKLOAD = tables.table_of(tables.Workload)


_TOLD = ("job", "format", "distribution", "method_version", "params", "semantics", "switches")  # of ``_work``, in its order


class Miscounted(NamedTuple):
    """A result whose ``name``, a work count, is not the job's."""

    result_id: int
    name: str
    stored: Any
    counted: int


def miscounted(connection: Connection) -> Iterator[Miscounted]:
    """Every result by the present method of a job that is here whose operations or bytes are others than the job's."""
    told = (cast(column, Text).label(column.name) for column in (_WORKLOAD.c.params, _WORKLOAD.c.semantics, _CASE.c.switches))
    named = (_WORKLOAD.c.job, _WORKLOAD.c.format, _WORKLOAD.c.distribution, _CASE.c.method_version)
    work = (cast(_RESULT.c.flops, Text).label("flops"), cast(_RESULT.c.compulsory_bytes, Text).label("compulsory_bytes"))
    chosen = (
        select(_RESULT.c.id, *work, *named, *told)
        .join(_CASE, _CASE.c.id == _RESULT.c.case_id)
        .join(_WORKLOAD, _WORKLOAD.c.id == _CASE.c.workload_id)
        .where(_RESULT.c.evidence.in_(COUNTED))
    )
    for row in connection.execute(chosen):
        known = _work(*row[3:])
        for name, counted in known._asdict().items() if known else ():
            if getattr(row, name) != str(counted):
                yield Miscounted(row.id, name, getattr(row, name), counted)


def refuse_miscounted(fields: Mapping[str, Any]) -> None:
    """``ValueError`` for the fields of a row, params and their like as texts, whose work is not what its job counts."""
    if fields["evidence"] not in COUNTED:
        return
    known = _work(*(fields[name] for name in _TOLD))
    for name, counted in known._asdict().items() if known else ():
        if fields[name] != counted:
            raise ValueError(f"{name} {fields[name]} is not {counted}, which its job counts for its workload")


class _Counts(NamedTuple):
    flops: int
    compulsory_bytes: int


@lru_cache(maxsize=4096)
def _work(
    job_name: str, format: str, distribution: str, method_version: int, params: str, semantics: str, switches: str
) -> _Counts | None:
    """``None`` where the job is not here, counts by another method, or the case is one that it cannot count."""
    try:
        job = find(job_name)
        if job.method_version != method_version:
            return None
        read = [scalars(load_json(text), "it") for text in (params, semantics, switches)]
        workload = Workload(job_name, format, items(read[0]), distribution, items(read[1]))
        work = job.work(workload, items(read[2]))
    except (UsageError, *UNREADABLE):
        return None  # what is wrong with the case is found where cases are read
    return _Counts(work.flops, work.compulsory_bytes)
