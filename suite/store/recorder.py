"""Writing one run: every call is one commit, so that a kill loses at most the case in flight."""

import hashlib
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.exc import IntegrityError

from suite.errors import RoofbenchError, StoreWriteFailed
from suite.measurement import Measurement
from suite.outcome import Evidence, Outcome
from suite.paths import for_shell
from suite.planned import PlannedCase
from suite.roofline import Summary
from suite.rows import DeviceRow, ResultRow
from suite.store import measured, sqlite, tables
from suite.store.aside import open_aside
from suite.store.catalogue import Catalogue, Facts
from suite.store.files import shown
from suite.store.lease import Lease
from suite.store.listing import no_summary, summary_fields, to_listed_row
from suite.store.prepared import new_id, prepared_insert
from suite.store.session import NO_PATIENCE, Session
from suite.store.standing import Standing, change

_ARTIFACT = tables.table_of(tables.Artifact)
_RUN = tables.table_of(tables.Run)
_RESULT = tables.table_of(tables.Result)
_CASE = tables.table_of(tables.Case)
_ADD_RESULT = prepared_insert(_RESULT)
_ADD_SAMPLES = prepared_insert(tables.table_of(tables.SampleBlob))
_ADD_TELEMETRY = prepared_insert(tables.table_of(tables.TelemetryBlob))
_ADD_SUMMARY = prepared_insert(tables.table_of(tables.Summary))
_ADD_LOG = prepared_insert(tables.table_of(tables.Log))
_ADD_ARTIFACT = prepared_insert(_ARTIFACT)
_SUMMARY_FIELDS = tuple(field.name for field in fields(Summary))
_SHOWN_AS_THEY_ARE = (
    "execution", "evidence", "attempt", "outcome", "reason", "finished_at", "flops", "compulsory_bytes", "pipe", "converged",
    "steady", "contended", "method", "error_rel", "tolerance",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """How one planned case ended.  Times are aware; ``seed`` is the run's unless the case had its own."""

    planned: PlannedCase
    measurement: Measurement
    summary: Summary | None
    evidence: Evidence
    started_at: datetime
    finished_at: datetime
    attempt: int = 1
    seed: int | None = None


class RunWriter:
    """The one writer of a run, made by ``Store.start_run`` and ``Store.resume_run``; usable from several threads.

    ``run`` is the run's id and ``config`` its resolved configuration.  Leaving it as a context without ``finish`` marks the
    run ``interrupted``, or ``failed`` for an exception that is no one's wish and nobody's mistake in using roofbench; where
    the cause is not the run's own, ``stop_for`` says so before.
    """

    def __init__(self, session: Session, lease: Lease, run_id: int, content: Mapping[str, Any], standing: Standing) -> None:
        self._session = session
        self._lease = lease
        self._run_id = run_id
        self._standing = standing
        self._catalogue = Catalogue()
        self._recording = threading.Lock()  # what the catalogue holds as pending belongs to one commit
        self._open = True
        self._why = ""
        self._content = content
        self._aside: Session | None = None
        self.run: str = content["name"]
        self.config: dict[str, Any] = content["config"]

    @property
    def attempts(self) -> Mapping[tuple[int, str], int]:
        """The latest stored attempt at each (slot, case key)."""
        statement = select(_RESULT.c.device_slot, _CASE.c.key, _RESULT.c.attempt).join_from(_RESULT, _CASE)
        with self._session.transaction() as connection:
            rows = connection.execute(statement.where(_RESULT.c.run_id == self._run_id).order_by(_RESULT.c.attempt))
            return {(slot, key): attempt for slot, key, attempt in rows}

    @property
    def outcomes(self) -> Mapping[tuple[int, str], Outcome]:
        """How each (slot, case key) ended, by the latest stored attempt."""
        statement = select(_RESULT.c.device_slot, _CASE.c.key, _RESULT.c.outcome).join_from(_RESULT, _CASE)
        with self._session.transaction() as connection:
            rows = connection.execute(statement.where(_RESULT.c.run_id == self._run_id).order_by(_RESULT.c.attempt))
            return {(slot, key): Outcome(outcome) for slot, key, outcome in rows}

    @property
    def finished(self) -> frozenset[tuple[int, str]]:
        """Every (slot, case key) that has a stored result, however it ended."""
        return frozenset(self.attempts)

    def register(self, devices: Sequence[DeviceRow] = (), environment: Facts | None = None) -> None:
        """Say on what the next results are taken; a device replaces what its slot had, an environment the one before."""
        with self._session.transaction() as connection:
            standing = change(connection, self._run_id, self._standing, devices, environment)
        self._standing = standing

    def record(self, record: Record) -> ResultRow:
        """Commit one result and give it as its row (``fractions.empirical`` is known to readers only).

        ``StoreWriteFailed`` when it cannot be kept; everything before is intact, and it may be recorded again later.  Where the
        store stays locked for longer than there is patience, this result and all that follow are kept in one beside it, and
        the error that says so comes once.
        ``ValueError`` for a NaN or an infinity where a number or JSON is due.
        """
        assert self._open, "the run was finished"
        try:
            return self._recorded(record)
        except StoreWriteFailed as error:
            if self._aside is not None or not sqlite.is_locked(error):
                raise
            locked = error
        store, self._aside = self._session.path, self._go_aside()
        self._recorded(record)
        beside = for_shell(str(self._aside.path))
        raise StoreWriteFailed(
            f"{locked}; what was measured meanwhile is kept in {shown(self._aside.path)}: when the store is free, "
            f"`roofbench store merge {beside} --store {for_shell(str(store))}` brings it in"
        ) from locked

    @property
    def is_locked_out(self) -> bool:
        """Whether patience with a lock has ended: results go into a store beside the one that is locked."""
        return self._aside is not None or self._session.locked_out

    def stop_waiting(self) -> None:
        """Have no more patience with a lock; safe in a signal handler."""
        self._session.patience = NO_PATIENCE

    def _go_aside(self) -> Session:
        aside = open_aside(self._session.path, self._content, self._standing)
        self._session, self._run_id, self._standing = aside
        self._catalogue = Catalogue()
        return aside.session

    def _recorded(self, record: Record) -> ResultRow:
        key = record.planned.case.key
        columns = self._columns(record)
        try:
            return self._commit(record, key, columns)
        except IntegrityError:
            self._catalogue.forget()  # a prune may have taken cases that no result used any more
        try:
            return self._commit(record, key, columns)
        except IntegrityError as error:
            where = f"attempt {record.attempt} at case {key} on slot {record.planned.slot}"
            if "unique" in str(error.orig).lower():
                raise StoreWriteFailed(f"run {self.run} takes no second result for {where} ({error.orig})") from error
            raise StoreWriteFailed(f"the store refuses {where} of run {self.run}: {error.orig}") from error

    def log(self, name: str, text: str, slot: int | None = None) -> None:
        """Add to the log ``name``; ``slot`` ties it to the results of one device slot."""
        values = {"run_id": self._run_id, "name": name, "slot": slot, "created_at": datetime.now(UTC), "text": text}
        with self._session.transaction() as connection:
            _ADD_LOG.run(connection, values)

    def artifact(self, name: str, content: bytes) -> None:
        """Keep a file with the run, in place of one of the same name."""
        values = {
            "run_id": self._run_id,
            "name": name,
            "created_at": datetime.now(UTC),
            "size_bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "content": zlib.compress(content),
        }
        with self._session.transaction() as connection:
            connection.execute(delete(_ARTIFACT).where(_ARTIFACT.c.run_id == self._run_id, _ARTIFACT.c.name == name))
            _ADD_ARTIFACT.run(connection, values)

    def kept_artifact(self, name: str) -> bytes | None:
        """The content of an artifact of this run; ``None`` where there is none of the name, or it is damaged."""
        statement = select(_ARTIFACT.c.content).where(_ARTIFACT.c.run_id == self._run_id, _ARTIFACT.c.name == name)
        with self._session.transaction() as connection:
            content = connection.scalar(statement)
        try:
            return None if content is None else zlib.decompress(content)
        except zlib.error:
            return None

    def stop_for(self, reason: str) -> None:
        """The exception that is about to end the run interrupts it for this reason."""
        self._why = reason

    def finish(self, status: str, reason: str = "", planned: int | None = None) -> None:
        """End the run as ``complete``, ``interrupted`` or ``failed`` and give up the right to write it.

        ``planned`` replaces the number of cases that it was started with, where only measuring could tell how many they are.
        """
        values: dict[str, Any] = {"status": status, "reason": reason, "finished_at": datetime.now(UTC)}
        if planned is not None:
            values["planned"] = planned
        try:
            with self._session.transaction() as connection:
                connection.execute(update(_RUN).where(_RUN.c.id == self._run_id).values(values))
            self._session.checkpoint()
        finally:
            self._open = False
            self._lease.release()
            if self._aside is not None:
                self._aside.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._open:
            return
        stopped = kind is None or bool(self._why) or issubclass(kind, KeyboardInterrupt | RoofbenchError)
        if isinstance(error, StoreWriteFailed) and not self._session.replaced:
            error.run = self.run
        with suppress(StoreWriteFailed):  # what went wrong first is what the user must read
            self.finish(
                "interrupted" if stopped else "failed",
                self._why or (f"{kind.__name__}: {error}" if kind else "ended before all cases were measured"),
            )

    def _commit(self, record: Record, key: str, columns: dict[str, Any]) -> ResultRow:
        with self._committing() as connection:
            columns["case_id"] = self._catalogue.case_id(connection, key, record.planned.case)
            result_id = new_id(_ADD_RESULT.run(connection, columns))
            self._insert_rest(connection, result_id, record, columns)
        return self._row(record, key, result_id, columns)

    @contextmanager
    def _committing(self) -> Iterator[Connection]:
        with self._recording:
            try:
                with self._session.transaction() as connection:
                    yield connection
            except OverflowError as error:  # the driver's, for an integer beyond 64 bits
                self._catalogue.rolled_back()
                raise StoreWriteFailed(f"the store cannot hold a value of this result: {error}") from error
            except BaseException:
                self._catalogue.rolled_back()
                raise
            self._catalogue.committed()

    def _columns(self, record: Record) -> dict[str, Any]:
        planned, work = record.planned, record.planned.work
        place = self._standing.places.get(planned.slot)
        if place is None:
            raise ValueError(f"slot {planned.slot} of run {self.run} has no registered device")
        return {
            "run_id": self._run_id,
            "environment_id": self._standing.environment_id,
            "device_id": place.device_id,
            "device_slot": planned.slot,
            "attempt": record.attempt,
            "evidence": record.evidence.value,
            "started_at": record.started_at,
            "finished_at": record.finished_at,
            "seed": self.config.get("seed") if record.seed is None else record.seed,
            "tolerance": planned.tolerance,
            "sets": planned.sets,
            "predicted_bytes": planned.memory_bytes,
            "predicted_s": planned.predicted_s,
            **work.to_json(),
            **measured.result_columns(record.measurement),
        }

    def _insert_rest(self, connection: Connection, result_id: int, record: Record, columns: Mapping[str, Any]) -> None:
        samples = record.measurement.samples
        if samples is not None:
            _ADD_SAMPLES.run(connection, {"result_id": result_id, **measured.sample_columns(samples)})
        channels = measured.telemetry_blob(record.measurement)
        if channels is not None:
            _ADD_TELEMETRY.run(connection, {"result_id": result_id, "channels": channels})
        if record.summary is not None:
            verified = record.measurement.outcome is Outcome.OK
            load = record.planned.case.regime.load
            same = {"device_id": columns["device_id"], "evidence": columns["evidence"], "pipe": columns["pipe"]}
            values = {"result_id": result_id, **same, "load": load, "verified": verified}
            _ADD_SUMMARY.run(connection, values | {name: getattr(record.summary, name) for name in _SUMMARY_FIELDS})

    def _row(self, record: Record, key: str, result_id: int, columns: Mapping[str, Any]) -> ResultRow:
        case, device = record.planned.case, self._standing.places[record.planned.slot].device
        return to_listed_row(
            {
                **(summary_fields(record.summary) if record.summary else no_summary()),
                **{name: columns[name] for name in _SHOWN_AS_THEY_ARE},
                **case.regime._asdict(),
                "result_id": result_id,
                "run": self.run,
                "case_key": key,
                "workload_key": case.workload.key,
                "job": case.workload.job,
                "implementation": case.implementation,
                "backend": case.backend,
                "device": device.info.name,
                "device_uid": device.info.uid,
                "device_slot": device.slot,
                "is_placed": True,
                "hardware": device.hardware,
                "format": case.workload.format,
                "params": dict(case.workload.params),
                "semantics": dict(case.workload.semantics),
                "distribution": case.workload.distribution,
                "switches": dict(case.switches),
            }
        )
