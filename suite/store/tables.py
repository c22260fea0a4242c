"""Every table of a store.  Nothing here is particular to one database.

run ─┬─ environment ─┐
     ├─ device ──────┼─ result ─┬─ summary         derived numbers, a cache that can be rebuilt
     ├─ log          │          ├─ sample_blob     raw samples
     └─ artifact     │          └─ telemetry_blob  clock, power, temperature over the window
workload ── case ────┘
selftest    what was found of a device; it names the runs that it rests on by their uid, and belongs to none of them
compiled    what a program became on a target that need not be there; no measurement, and no run's
"""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, LargeBinary, MetaData, Table, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from suite.store.columns import Count, Finite, SafeText, UtcTime

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

Json = dict[str, Any]


class Base(DeclarativeBase):
    """Common column types; constraints are named so that a migration can change them on any database."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: SafeText(),
        float: Finite(),
        datetime: UtcTime(),
        Json: JSON(none_as_null=True),
        list[str]: JSON(),
        list[int]: JSON(),
        list[list[float]]: JSON(),
        list[list[str]]: JSON(),
        list[Json]: JSON(),
    }


def _owned_by(owner: str, **options: Any) -> Any:
    """A reference to the row that this one goes with when it is deleted."""
    return mapped_column(ForeignKey(owner, ondelete="CASCADE"), **options)


class Run(Base):
    """One run.  ``uid`` tells two runs apart that were given the same name on different machines."""

    __tablename__ = "run"

    id: Mapped[int] = mapped_column(primary_key=True)
    uid: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str] = mapped_column(unique=True)
    experiment: Mapped[str]
    status: Mapped[str]
    reason: Mapped[str]
    note: Mapped[str]
    version: Mapped[str]
    commit: Mapped[str | None]
    dirty: Mapped[bool | None]
    planned: Mapped[int]
    started_at: Mapped[datetime] = mapped_column(index=True)
    finished_at: Mapped[datetime | None]
    argv: Mapped[list[str]]
    overrides: Mapped[list[str]]
    config: Mapped[Json]


class Environment(Base):
    """The system a result was taken on: ``facts[section][name]`` is [value, status, reason].  ``digest`` is their hash."""

    __tablename__ = "environment"
    __table_args__ = (UniqueConstraint("run_id", "digest"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = _owned_by("run.id")
    digest: Mapped[str]
    recorded_at: Mapped[datetime]
    facts: Mapped[Json]


class Device(Base):
    """A device slot of a run; a run that was resumed on another chip has two for one slot."""

    __tablename__ = "device"
    __table_args__ = (UniqueConstraint("run_id", "slot", "digest"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = _owned_by("run.id")
    slot: Mapped[int]
    digest: Mapped[str]
    uid: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]
    backend: Mapped[str]
    hardware: Mapped[str | None]
    match_reason: Mapped[str]
    recorded_at: Mapped[datetime]
    info: Mapped[Json]
    spec: Mapped[Json | None]


class Workload(Base):
    """What two devices or two implementations have in common; ``key`` is its content hash."""

    __tablename__ = "workload"
    __table_args__ = (Index(None, "job", "format"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    job: Mapped[str]
    format: Mapped[str]
    distribution: Mapped[str]
    params: Mapped[Json]
    semantics: Mapped[Json]


class Case(Base):
    """One exact measurement of a workload; ``key`` is its content hash."""

    __tablename__ = "case"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    workload_id: Mapped[int] = mapped_column(ForeignKey("workload.id"), index=True)
    implementation: Mapped[str]
    backend: Mapped[str]
    cache: Mapped[str]
    load: Mapped[str]
    dispatch: Mapped[str]
    method_version: Mapped[int]
    switches: Mapped[Json]


class Result(Base):
    """How one case ended, with what was counted and observed.  The long fields stand last, so that lists skip them."""

    __tablename__ = "result"
    __table_args__ = (UniqueConstraint("run_id", "device_slot", "case_id", "attempt"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = _owned_by("run.id", index=True)
    environment_id: Mapped[int] = _owned_by("environment.id", index=True)
    device_id: Mapped[int] = _owned_by("device.id", index=True)
    case_id: Mapped[int] = mapped_column(ForeignKey("case.id"), index=True)
    device_slot: Mapped[int]
    attempt: Mapped[int]
    evidence: Mapped[str]
    outcome: Mapped[str]
    execution: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime]
    seed: Mapped[int | None] = mapped_column(Count)
    flops: Mapped[int] = mapped_column(Count)
    compulsory_bytes: Mapped[int] = mapped_column(Count)
    traffic_bytes: Mapped[int | None] = mapped_column(Count)
    pipe: Mapped[str | None]
    tolerance: Mapped[float]
    sets: Mapped[int]
    predicted_bytes: Mapped[int] = mapped_column(Count)
    predicted_s: Mapped[float]
    peak_memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    converged: Mapped[bool | None]
    steady: Mapped[bool | None]
    contended: Mapped[bool | None]
    interval_low_s: Mapped[float | None]
    interval_high_s: Mapped[float | None]
    interval_low_cycles: Mapped[float | None]
    interval_high_cycles: Mapped[float | None]
    error_rel: Mapped[float | None]
    method: Mapped[str | None]
    reason: Mapped[str]
    check_before: Mapped[Json | None]
    check_after: Mapped[Json | None]
    phases_s: Mapped[Json]
    description: Mapped[Json]


class Summary(Base):
    """Derived numbers of a timed result under one version of the formulas.

    ``device_id``, ``evidence``, ``verified``, ``pipe`` and ``load`` repeat the result's, so that one index answers the
    empirical roofs of a store of a million results.
    """

    __tablename__ = "summary"
    __table_args__ = (Index("ix_summary_roof", "evidence", "verified", "device_id", "pipe", "load", "flop_s"),)

    result_id: Mapped[int] = _owned_by("result.id", primary_key=True)
    device_id: Mapped[int] = _owned_by("device.id", index=True)
    evidence: Mapped[str]
    verified: Mapped[bool]
    pipe: Mapped[str | None]
    load: Mapped[str]
    formulas_version: Mapped[int]
    bound: Mapped[str]
    count: Mapped[int] = mapped_column(BigInteger)
    p50_s: Mapped[float]
    p05_s: Mapped[float]
    p95_s: Mapped[float]
    min_s: Mapped[float]
    interval_low_s: Mapped[float | None]
    interval_high_s: Mapped[float | None]
    p50_cycles: Mapped[float | None]
    interval_low_cycles: Mapped[float | None]
    interval_high_cycles: Mapped[float | None]
    flop_s: Mapped[float]
    bytes_s: Mapped[float]
    fraction_spec: Mapped[float | None]
    fraction_boost: Mapped[float | None]
    fraction_at_clock: Mapped[float | None]
    clock_hz: Mapped[float | None]
    energy_j: Mapped[float | None]
    power_w: Mapped[float | None]
    throttle: Mapped[str | None]
    quantisation_error: Mapped[float | None]


class SampleBlob(Base):
    """Raw samples of a timed result; ``durations`` are as ``suite.measure.samples.encode`` leaves them.

    ``clocks`` are the kHz of each kept sample, encoded like them, where the device's clock was counted over every sample.
    ``spans`` are [first sample, began, ended], seconds; results from before they were kept have neither spans nor a median.
    """

    __tablename__ = "sample_blob"

    result_id: Mapped[int] = _owned_by("result.id", primary_key=True)
    launches: Mapped[int] = mapped_column(BigInteger)
    resolution_s: Mapped[float]
    count: Mapped[int] = mapped_column(BigInteger)
    sum_ns: Mapped[int] = mapped_column(BigInteger)
    min_ns: Mapped[int] = mapped_column(BigInteger)
    median_ns: Mapped[float | None]
    stride: Mapped[int] = mapped_column(BigInteger)
    boundaries: Mapped[list[int]]
    durations: Mapped[bytes] = mapped_column(LargeBinary)
    details: Mapped[Json]
    spans: Mapped[list[list[float]]] = mapped_column(server_default="[]")
    clocks: Mapped[bytes | None] = mapped_column(LargeBinary)
    median_cycles: Mapped[float | None]


class TelemetryBlob(Base):
    """Telemetry of one result, as ``suite.store.telemetry`` packs it."""

    __tablename__ = "telemetry_blob"

    result_id: Mapped[int] = _owned_by("result.id", primary_key=True)
    channels: Mapped[bytes] = mapped_column(LargeBinary)


class Selftest(Base):
    """What a selftest found of a device; ``digest`` is the hash of its content, by which two stores know it for the same.

    ``runs`` are [uid, name when it was recorded] of the runs that it rests on.  The columns of its repeatability are all
    null where it has none.
    """

    __tablename__ = "selftest"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(unique=True)
    device_uid: Mapped[str] = mapped_column(index=True)
    device: Mapped[str]
    backend: Mapped[str]
    status: Mapped[str]
    finished_at: Mapped[datetime]
    cycles_rel: Mapped[float | None]
    bytes_rel: Mapped[float | None]
    in_cycles: Mapped[bool | None]
    cases: Mapped[int | None]
    findings: Mapped[list[Json]]
    facts: Mapped[Json]
    runs: Mapped[list[list[str]]]


class Compiled(Base):
    """One cell of the matrix of programs and targets; ``key`` is the hash of sources, target and versions of the tools."""

    __tablename__ = "compiled"
    __table_args__ = (Index(None, "target", "program"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    kernel: Mapped[str]
    program: Mapped[str]
    target: Mapped[str]
    outcome: Mapped[str]
    seconds: Mapped[float]
    compiled_at: Mapped[datetime]
    configuration: Mapped[str]
    reason: Mapped[str]
    facts: Mapped[Json]
    versions: Mapped[Json]


class Artifact(Base):
    """A file kept with a run, compressed; ``size_bytes`` and ``sha256`` are of what was given."""

    __tablename__ = "artifact"
    __table_args__ = (UniqueConstraint("run_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = _owned_by("run.id")
    name: Mapped[str]
    created_at: Mapped[datetime]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str]
    content: Mapped[bytes] = mapped_column(LargeBinary)


class Log(Base):
    """A piece of a log; the pieces of one ``name``, in order, are the whole.  ``slot`` is set for a worker's."""

    __tablename__ = "log"

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = _owned_by("run.id", index=True)
    slot: Mapped[int | None]
    name: Mapped[str]
    created_at: Mapped[datetime]
    text: Mapped[str]


def table_of(model: type[Base]) -> Table:
    """The plain table of a model, for statements that need no session."""
    table = model.__table__
    assert isinstance(table, Table)
    return table
