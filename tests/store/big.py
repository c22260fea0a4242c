"""A store of any number of made-up results, written in bulk: ``python -m tests.store.big PATH RESULTS DEVICES RUNS``.

Every number is invented, and every result says so: its evidence is ``simulated`` unless asked otherwise.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Table, insert

from suite.backend import DeviceInfo, Fact
from suite.case import Case, Regime, Workload, items
from suite.measurement import Measurement, SampleSet
from suite.outcome import Evidence, Outcome
from suite.roofline import FORMULAS_VERSION
from suite.rows import DeviceRow
from suite.store import tables
from suite.store.measured import result_columns, sample_columns
from suite.store.telemetry import pack
from suite.store.writer import RunStart, Store
from tests.store.material import telemetry

CHUNK = 5_000
FORMATS = {"fp64": 6.7e13, "fp32": 6.7e13, "tf32": 4.9e14, "fp16": 9.9e14, "bf16": 9.9e14, "fp8_e4m3": 1.98e15, "int8": 1.98e15}
REGIMES = (Regime("cold", "sustained", "device"), Regime("warm", "sustained", "device"), Regime("cold", "burst", "device"))
IMPLEMENTATIONS = ("library", "triton", "compiled")
START = datetime(2026, 1, 1, tzinfo=UTC)


def build(path: Path, results: int, devices: int = 10, runs: int = 10, evidence: Evidence = Evidence.SIMULATED) -> Path:
    """Fill a new store with ``results`` results in equal shares over ``runs`` runs, which take turns on ``devices`` devices."""
    draw = random.Random(7)
    with Store.open(str(path)) as store:
        names = [_start(store, devices, index) for index in range(runs)]
        with store.session.transaction() as connection:
            connection.execute(tables.Run.__table__.update().values(started_at=START))  # type: ignore[attr-defined]
        cases = _cases(-(-results // runs))
        with store.session.transaction() as connection:
            insert_rows(connection, tables.Workload, workload_rows(cases))
            insert_rows(connection, tables.Case, case_rows(cases))
        blobs = _Blobs(draw)
        for first in range(0, results, CHUNK):
            numbers = range(first, min(first + CHUNK, results))
            _write_chunk(store, numbers, runs, cases, blobs, evidence, draw)
    assert len(names) == runs
    return path


def _start(store: Store, devices: int, index: int) -> str:
    number = index % devices
    info = DeviceInfo("cuda", 0, f"Imagined {number:02d}", f"uid{number:04d}", 2**37, llc_bytes=50 * 2**20)
    device = DeviceRow(0, info, None, "imagined", None)
    facts = {"host": {"cpu": Fact.measured("imagined")}}
    start = RunStart("big", {"seed": index}, ("roofbench",), (), "", "0", None, None, 1, (device,), facts)
    with store.start_run(start) as run:
        run.finish("complete")
    return run.run


def _cases(count: int) -> list[Case]:
    made = []
    for number in range(count):
        size, rest = 64 * (number // 63 + 1), number % 63
        workload = Workload("gemm", list(FORMATS)[rest % 7], items({"m": size, "n": 4096, "k": 4096, "layout": "nt"}))
        made.append(Case(workload, IMPLEMENTATIONS[rest // 7 % 3], "cuda", REGIMES[rest // 21]))
    return made


def workload_rows(cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    for workload in dict.fromkeys(case.workload for case in cases):
        yield {"key": workload.key, **workload.to_json()}


def case_rows(cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    workloads = {workload: index + 1 for index, workload in enumerate(dict.fromkeys(case.workload for case in cases))}
    for case in cases:
        yield {
            "key": case.key,
            "workload_id": workloads[case.workload],
            "implementation": case.implementation,
            "backend": case.backend,
            **case.regime._asdict(),
            "method_version": case.method_version,
            "switches": dict(case.switches),
        }


class _Blobs:
    """A few dozen sample sets and telemetries, used again and again."""

    def __init__(self, draw: random.Random) -> None:
        self.samples = [self._sample_columns(draw) for _ in range(32)]
        self.telemetry = pack(telemetry(50))
        measured = Measurement(Outcome.OK, samples=_samples(draw), converged=True, description={"library": "imagined"})
        self.result = result_columns(measured)

    def _sample_columns(self, draw: random.Random) -> dict[str, Any]:
        return sample_columns(_samples(draw))


def _samples(draw: random.Random) -> SampleSet:
    times = tuple(int(draw.gauss(20_000, 120)) for _ in range(100))
    return SampleSet(times, 10, "imagined", 1e-9, 100, sum(times), min(times), 1, tuple(range(0, 100, 5)))


def _write_chunk(
    store: Store, numbers: range, runs: int, cases: Sequence[Case], blobs: _Blobs, evidence: Evidence, draw: random.Random
) -> None:
    results, summaries, samples, channels = [], [], [], []
    for number in numbers:
        run, case = number // len(cases), cases[number % len(cases)]
        m, peak = case.workload.param("m"), FORMATS[case.workload.format]
        place = {"run_id": run + 1, "device_id": run + 1, "environment_id": run + 1, "case_id": number % len(cases) + 1}
        flops, size = 2 * m * 4096 * 4096, 2 * (2 * m * 4096 + 4096 * 4096)
        rate = min(peak, flops / size * 3.3e12) * draw.uniform(0.5, 0.95)
        time = flops / rate
        result_id = number + 1
        pipe = {"pipe": case.workload.format, "evidence": evidence.value}
        finished = START + timedelta(seconds=number)
        results.append(
            {"id": result_id, **place, **pipe, "device_slot": 0, "attempt": 1, "started_at": finished, "finished_at": finished,
             "seed": 0, "flops": flops, "compulsory_bytes": size, "traffic_bytes": None, "tolerance": 0.004, "sets": 3,
             "predicted_bytes": size, "predicted_s": 1.0, **blobs.result, "error_rel": 0.001}
        )  # fmt: skip
        summaries.append(
            {"result_id": result_id, "device_id": run + 1, **pipe, "verified": True, "load": case.regime.load,
             "formulas_version": FORMULAS_VERSION, "bound": "compute", "count": 100, "p50_s": time, "p05_s": time * 0.99,
             "p95_s": time * 1.01, "min_s": time * 0.98, "interval_low_s": time * 0.999, "interval_high_s": time * 1.001,
             "flop_s": rate, "bytes_s": size / time, "fraction_spec": rate / peak, "fraction_boost": None,
             "fraction_at_clock": None, "clock_hz": 1.6e9, "energy_j": None, "power_w": 600.0, "throttle": "",
             "quantisation_error": 0.026}
        )  # fmt: skip
        samples.append({"result_id": result_id, **blobs.samples[number % 32]})
        channels.append({"result_id": result_id, "channels": blobs.telemetry})
    with store.session.transaction() as connection:
        insert_rows(connection, tables.Result, results)
        insert_rows(connection, tables.Summary, summaries)
        insert_rows(connection, tables.SampleBlob, samples)
        insert_rows(connection, tables.TelemetryBlob, channels)


def insert_rows(connection: Any, model: type[tables.Base], rows: Any) -> None:
    table: Table = tables.table_of(model)
    connection.execute(insert(table), list(rows))


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
