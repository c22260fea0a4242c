"""One result with everything that was kept of it."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, Text, cast, select, type_coerce
from sqlalchemy.types import NullType

from suite.backend import Fact
from suite.errors import UsageError
from suite.measurement import Measurement
from suite.store import tables
from suite.store.catalogue import to_facts
from suite.store.damage import converting
from suite.store.listing import is_latest
from suite.store.measured import rebuild_measurement

_ENVIRONMENT = tables.table_of(tables.Environment)
_LOG = tables.table_of(tables.Log)
_RESULT = tables.table_of(tables.Result)
_SAMPLES = tables.table_of(tables.SampleBlob)
_TELEMETRY = tables.table_of(tables.TelemetryBlob)
_MANY = 5


class Kept(NamedTuple):
    """What a result has beside its row: the raw measurement, the system it was taken on, its slot's log."""

    measurement: Measurement
    environment: Mapping[str, Mapping[str, Fact]]
    log: str


def find_result(connection: Connection, run_id: int, run: str, case: str) -> int:
    """The id of a run's result from the beginning of its case key, with ``@slot`` behind it where several slots have it."""
    prefix, _, slot = case.partition("@")
    statement = (
        select(tables.Result.id, tables.Case.key, tables.Result.device_slot)
        .join(tables.Case, tables.Case.id == tables.Result.case_id)
        .where(tables.Result.run_id == run_id, tables.Case.key.startswith(prefix, autoescape=True), is_latest())
    )
    if slot:
        statement = statement.where(cast(tables.Result.device_slot, Text) == _slot_number(slot, case))
    found = connection.execute(statement.order_by(tables.Result.id).limit(_MANY)).all()
    if len(found) == 1:
        return int(found[0].id)
    if not found:
        raise UsageError(f"run {run} has no result for a case '{case}'; `roofbench show {run} --keys` lists them")
    names = ", ".join(f"{each.key}@{each.device_slot}" for each in found)
    raise UsageError(f"case '{case}' of run {run} may be {names}{', ...' if len(found) == _MANY else ''}: name one of them")


def load_kept(connection: Connection, result_id: int) -> Kept:
    """Load what a result has beside its row; ``Damaged`` where it cannot be decoded."""
    with converting(f"result {result_id}"):
        result = _result(connection, result_id)
        measured = load_measurement(connection, result)
        mine = (_LOG.c.run_id == result["run_id"], _LOG.c.slot == result["device_slot"])
        log = "".join(connection.scalars(select(_LOG.c.text).where(*mine).order_by(_LOG.c.id)))
    with converting(f"environment {result['environment_id']}"):
        facts = connection.scalars(select(_ENVIRONMENT.c.facts).where(_ENVIRONMENT.c.id == result["environment_id"])).one()
        return Kept(measured, to_facts(facts), log)


def find_measurement(connection: Connection, result_id: int) -> Measurement:
    """The measurement of one result as what is computed of it needs it, without missing readings; ``Damaged`` as above."""
    with converting(f"result {result_id}"):
        return load_measurement(connection, _result(connection, result_id)).as_read()


def load_measurement(connection: Connection, result: RowMapping) -> Measurement:
    """Put the measurement of a ``result`` row together; ``ValueError`` where its samples cannot be decoded."""
    samples = select(_SAMPLES).where(_SAMPLES.c.result_id == result["id"])
    telemetry = select(type_coerce(_TELEMETRY.c.channels, NullType())).where(_TELEMETRY.c.result_id == result["id"])
    return rebuild_measurement(
        result, connection.execute(samples).mappings().one_or_none(), connection.scalars(telemetry).one_or_none()
    )


def _result(connection: Connection, result_id: int) -> RowMapping:
    return connection.execute(select(_RESULT).where(_RESULT.c.id == result_id)).mappings().one()


def _slot_number(slot: str, case: str) -> str:
    """A slot as SQLite writes it, whose integers end where a person's do not."""
    if not slot.isdecimal():
        raise UsageError(f"case '{case}' ends in no slot number: write it as KEY@SLOT, such as {case.partition('@')[0]}@0")
    return "".join(str(int(digit)) for digit in slot).lstrip("0") or "0"
