"""Another tool's log as a run of its own: evidence ``imported``, with what the log says of where it was taken."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from suite import __version__
from suite.backend import DeviceInfo, Fact
from suite.importers.origin import CONFIG
from suite.importers.results import left_out, results
from suite.importers.rows import CollectiveLog
from suite.outcome import Evidence
from suite.roofline import Ceilings, summarize
from suite.rows import Calibration, DeviceRow, RunInfo
from suite.store.recorder import Record
from suite.store.writer import RunStart, Store

EXPERIMENT = "imported"
NOT_SAID = "the log does not say"


class Source(NamedTuple):
    """The file that was read: its name without folders, and the hash of its content."""

    name: str
    sha256: str

    @classmethod
    def of(cls, name: str, content: bytes) -> "Source":
        """Of a file's content."""
        return cls(name, hashlib.sha256(content).hexdigest())


def imported_before(runs: Sequence[RunInfo], source: Source) -> list[str]:
    """The runs that hold this very content already, the oldest first."""
    found = [run.run for run in runs if dict(run.config.get(CONFIG) or {}).get("sha256") == source.sha256]
    return sorted(found)


def store_log(store: Store, log: CollectiveLog, source: Source, argv: Sequence[str], index: int) -> str:
    """Store the ``index``-th log of a file as a run; its id.  A log without a row that moves something is none."""
    found = list(results(log))
    assert found, "refused before"
    device, now = _device(log), datetime.now(UTC)
    start = RunStart(
        experiment=EXPERIMENT,
        config={CONFIG: {"file": source.name, "sha256": source.sha256, "index": index, "tool": log.tool}},
        argv=argv,
        overrides=(),
        note=_note(log, source),
        version=__version__,
        commit=None,
        dirty=None,
        planned=len(found),
        devices=(device,),
        environment={EXPERIMENT: dict(_facts(log, source))},
    )
    ceilings = Ceilings(device.info, None)
    with store.start_run(start) as writer:
        for planned, measurement in found:
            summary = summarize(measurement, planned.work, planned.case.regime, ceilings, Calibration())
            writer.record(Record(planned, measurement, summary, Evidence.IMPORTED, now, now))
        warnings = warnings_of(log)
        if warnings:
            writer.log("import", "".join(f"{line}\n" for line in warnings))
        writer.finish("complete")
        return writer.run


def warnings_of(log: CollectiveLog) -> tuple[str, ...]:
    """What to know of a log before trusting its rows."""
    return (*log.warnings, *left_out(log))


def _note(log: CollectiveLog, source: Source) -> str:
    library = f", library {log.library_version}" if log.library_version else ""
    told = f"{source.name}: {log.tool} {log.tool_version or ''}".rstrip()
    return "; ".join([f"{told}{library}, {log.status}", *warnings_of(log)])


def _device(log: CollectiveLog) -> DeviceRow:
    """Known by its name alone; host, address and process of a log are never kept."""
    name = ", ".join(log.device_names) or "unknown device"
    uid = hashlib.sha256(f"imported\0{log.tool}\0{name}".encode()).hexdigest()[:16]
    details = {"ranks": str(log.ranks)} if log.ranks else {}
    info = DeviceInfo(backend=log.tool, index=0, name=name, uid=uid, memory_bytes=0, details=details)
    return DeviceRow(0, info, None, "imported: nothing here looked at the device", None)


def _facts(log: CollectiveLog, source: Source) -> Iterator[tuple[str, Fact]]:
    told: Mapping[str, Any] = {
        "file": source.name,
        "file_sha256": source.sha256,
        "tool": log.tool,
        "tool_version": log.tool_version,
        "library_version": log.library_version,
        "headers_version": log.headers_version,
        "status": log.status.value,
        "operation": log.op.value if log.op else None,
        "operation_by": log.op_source,
        "ranks": log.ranks,
        "ranks_by": log.ranks_source,
        "hosts": log.hosts,
        "devices": ", ".join(log.device_names) or None,
        "printed_average_busbw_bytes_s": log.average_busbw_bytes_s,
        "out_of_bounds": log.out_of_bounds,
        **{f"option_{name.replace(' ', '_')}": value for name, value in log.parameters.items()},
    }
    for name, value in told.items():
        yield name, Fact(value, "declared") if value is not None else Fact.unavailable(NOT_SAID)
