"""A real store file that holds rows made by ``builders``."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from suite.case import Case, Regime, Workload, items
from suite.measurement import Check, Measurement, SampleSet
from suite.outcome import Evidence, Outcome
from suite.planned import PlannedCase
from suite.roofline import FORMULAS_VERSION, Summary
from suite.rows import DeviceRow, ResultRow, RunInfo
from suite.store.writer import Record, RunStart, Store
from suite.work import Work
from tests.report.builders import BANDWIDTH, ENVIRONMENT, device, result, run_info

START = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def write_store(
    path: Path,
    rows: Sequence[ResultRow],
    devices: Sequence[DeviceRow] = (),
    info: RunInfo | None = None,
    measured: Callable[[ResultRow], Measurement] | None = None,
) -> str:
    """Add one complete run with ``rows`` and a calibration to the store at ``path``; its id.

    ``measured`` gives the measurement behind a timed row, where more than a few equal samples are wanted.
    """
    described = info or run_info()
    with Store.open(str(path)) as store, store.start_run(_start(described, devices or (device(),))) as run:
        for row in [*_calibration(), *rows]:
            run.record(_record(row, measured(row) if measured and row.p50_s is not None else _measurement(row)))
        run.finish("complete")
        return run.run


def _start(info: RunInfo, devices: Sequence[DeviceRow]) -> RunStart:
    return RunStart(
        experiment=info.experiment,
        config=info.config,
        argv=info.argv,
        overrides=info.overrides,
        note=info.note,
        version=info.version,
        commit=info.commit,
        dirty=info.dirty,
        planned=info.planned,
        devices=devices,
        environment=ENVIRONMENT,
    )


def _calibration() -> list[ResultRow]:
    """Read at nine tenths of the test machine's bandwidth."""
    size = 2**32
    read_s = size / (0.9 * BANDWIDTH)
    params = {"op": "read", "bytes": size}
    nothing: dict[str, Any] = {"flops": 0, "pipe": None, "flop_s": 0.0, "arithmetic_intensity": 0.0, "bound": "memory"}
    nothing["interval_s"] = (read_s * 0.998, read_s * 1.002)
    return [result(job="calibration", params=params, compulsory_bytes=size, p50_s=read_s, bytes_s=size / read_s, **nothing)]


def _record(row: ResultRow, measurement: Measurement) -> Record:
    regime: Any = (row.cache, row.load, row.dispatch)
    workload = Workload(row.job, row.format, items(row.params), row.distribution, items(row.semantics))
    case = Case(workload, row.implementation, row.backend, Regime(*regime), items(row.switches))
    work = Work(row.flops, row.compulsory_bytes, row.pipe)
    planned = PlannedCase(row.device_slot, 0, case, work, row.tolerance or 0.0, 3, 2**30, 1.0)
    return Record(planned, measurement, _summary(row), Evidence(row.evidence), START, START + timedelta(seconds=2))


def _measurement(row: ResultRow) -> Measurement:
    if row.p50_s is None:
        return Measurement(Outcome(row.outcome), row.reason)
    durations = (round(row.p50_s * 1e9),) * 40
    check = Check(True, row.error_rel, row.tolerance or 0.0, row.error_rel, 0, 0)
    return Measurement(
        Outcome(row.outcome),
        row.reason,
        row.execution,
        SampleSet(durations, 1, "graph", 1e-9, 40, sum(durations), min(durations)),
        interval_s=row.interval_s,
        converged=row.converged,
        steady=row.steady,
        contended=row.contended,
        check_before=check,
        check_after=check,
    )


def _summary(row: ResultRow) -> Summary | None:
    if row.p50_s is None:
        return None
    low, high = row.interval_s or (None, None)
    shares = {f"fraction_{name}": getattr(row.fractions, name) for name in ("spec", "boost", "at_clock")}
    kept = (
        "bound", "count", "p50_s", "p05_s", "p95_s", "min_s", "flop_s", "bytes_s", "clock_hz", "energy_j", "power_w",
        "quantisation_error",
    )  # fmt: skip
    same = {name: getattr(row, name) for name in kept}
    return Summary(FORMULAS_VERSION, interval_low_s=low, interval_high_s=high, throttle=row.throttle, **shares, **same)
