"""A store of a million made-up results over fifty devices: ``python -m tests.dashboard.big_store PATH [RESULTS DEVICES RUNS]``.

Cases, works and keys are those of real jobs; every time is invented, in one run case by case and in the others by scaling that
run inside the database, so that a million take about a minute.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from suite.backend import Channel, DeviceInfo, Fact
from suite.case import Case, Regime, Workload, items
from suite.jobs.attention import AttentionJob
from suite.jobs.collective import CollectiveJob
from suite.jobs.decode import DecodeJob
from suite.jobs.gemm import GemmJob
from suite.measurement import Measurement, SampleSet
from suite.outcome import Evidence, Outcome
from suite.roofline import FORMULAS_VERSION
from suite.rows import DeviceRow
from suite.store import tables
from suite.store.measured import result_columns, sample_columns
from suite.store.telemetry import pack
from suite.store.writer import RunStart, Store
from suite.work import Work
from tests.report.builders import BANDWIDTH, PEAKS, SPEC
from tests.store.big import START, case_rows, insert_rows, workload_rows

RESULTS, DEVICES, RUNS = 1_000_000, 50, 100
COLD, WARM, BURST = (
    Regime(*names) for names in (("cold", "sustained", "device"), ("warm", "sustained", "device"), ("cold", "burst", "device"))
)
CALL = Regime("warm", "sustained", "call")
LINK_BYTES_S, LINK_LATENCY_S = 3.5e11, 6e-6
BLOB_KINDS = 16
OTHER_ENDINGS = {29: Outcome.UNSUPPORTED, 97: Outcome.INCORRECT, 193: Outcome.IMPOSSIBLE, 389: Outcome.OUT_OF_MEMORY}
Planned = tuple[Case, Work]


def build(path: Path, results: int = RESULTS, devices: int = DEVICES, runs: int = RUNS) -> Path:
    """Fill a new store with ``results`` results in equal shares over ``runs`` runs, which take turns on ``devices`` devices."""
    planned = list(islice(_planned(), results // runs))
    assert len(planned) == results // runs, "the jobs have fewer cases than a run is to have"
    with Store.open(str(path)) as store:
        for run in range(runs):
            _start(store, run, devices, len(planned))
        with store.session.transaction() as connection:
            _date(connection, runs)
            insert_rows(connection, tables.Workload, workload_rows([case for case, _ in planned]))
            insert_rows(connection, tables.Case, case_rows([case for case, _ in planned]))
            _first_run(connection, planned)
        for run in range(1, runs):
            with store.session.transaction() as connection:
                _another_run(connection, run, len(planned))
    return path


def _start(store: Store, run: int, devices: int, planned: int) -> None:
    number = run % devices
    name = f"Imagined {'ABCDE'[number // 10 % 5]}{number % 10}"
    info = DeviceInfo("cuda", 0, name, f"imagined{number:04d}", 2**37, max_clock_hz=1.98e9, llc_bytes=50 * 2**20)
    device = DeviceRow(0, info, None, "imagined", SPEC.to_json())
    facts = {"host": {"cpu": Fact.measured("imagined"), "hostname": Fact.measured(f"node{number}")}}
    overrides = ("experiment=standard",)
    start = RunStart("standard", {"seed": run}, ("roofbench", "run"), overrides, "", "0", None, None, planned, (device,), facts)
    with store.start_run(start) as writer:
        writer.finish("complete")


def _planned() -> Iterator[Planned]:
    """Cases of four jobs in turns, as many of each as there are."""
    parts = [_gemms(), _attentions(), _decodes(), _collectives()]
    order = cycle((0, 0, 0, 0, 1, 2, 2, 3))
    while True:
        yield next(parts[next(order)])


def _gemms() -> Iterator[Planned]:
    job, names = GemmJob(), ("bf16", "fp16", "fp8_e4m3", "int8", "tf32", "fp32", "fp64")
    sizes = ((m, n, k) for m in range(64, 64 * 400, 64) for n, k in ((4096, 4096), (m, m), (14336, 4096)))
    for size, name, regime, by in product(sizes, names, (COLD, WARM, BURST), ("library", "triton")):
        workload = Workload("gemm", name, items({**dict(zip("mnk", size, strict=True)), "layout": "nt"}))
        yield Case(workload, by, "cuda", regime), job.work(workload)


def _attentions() -> Iterator[Planned]:
    job, implementations = AttentionJob(), ("library_flash", "triton_tuned", "gluon")
    axes = (range(1, 200), (512, 1024, 2048), ("causal", "full"), ("forward", "backward"), implementations)
    for batch, length, mask, direction, by in product(*axes):
        heads = {"num_q_heads": 32, "num_kv_heads": 8, "head_dim": 128, "v_head_dim": 128}
        lengths = {"direction": direction, "batch": batch, "q_len": length, "kv_len": length, "mask": mask}
        workload = Workload("attention", "bf16", items({**heads, **lengths}))
        yield Case(workload, by, "cuda", COLD), job.work(workload)


def _decodes() -> Iterator[Planned]:
    job, axes = DecodeJob(), (range(1, 200), (1024, 4096, 16384), (1, 16, 64), ("bf16", "int8"), ("triton_tuned", "flashinfer"))
    for batch, kv_len, page, name, by in product(*axes):
        heads = {"num_q_heads": 32, "num_kv_heads": 8, "head_dim": 128, "v_head_dim": 128, "q_len": 1}
        pages = {"batch": batch, "kv_len": kv_len, "page_size": page, "page_order": "random", "lengths": "equal"}
        cached = {"activation": "bf16"} if name == "int8" else {}
        semantics = items({"scaling": "token"}) if name == "int8" else ()
        workload = Workload("decode", name, items({**heads, **pages, **cached}), "normal", semantics)
        yield Case(workload, by, "cuda", COLD), job.work(workload)


def _collectives() -> Iterator[Planned]:
    job = CollectiveJob()
    axes = (
        ("all_reduce", "all_gather", "reduce_scatter"),
        (2, 4, 8),
        range(3, 33),
        ("ring", "tree", "library"),
        ("ll", "simple"),
    )
    for op, ranks, power, algo, proto in product(*axes):
        workload = Workload("collective", "bf16", items({"op": op, "message_bytes": 2**power, "world_size": ranks}))
        switches = items({"algo": algo, "proto": proto, "in_place": True, "transport": "device_link"})
        yield Case(workload, "library", "cuda", CALL, switches), job.work(workload, switches)
    while True:  # the others go on
        yield next(_more_gemms)


_more_gemms = (
    (Case(workload, "compiled", "cuda", COLD), GemmJob().work(workload))
    for size in range(64, 64 * 4000, 64)
    for workload in [Workload("gemm", "bf16", items({"m": size, "n": 8192, "k": 8192, "layout": "nt"}))]
)


def _first_run(connection: Connection, planned: Sequence[Planned]) -> None:
    draw = random.Random(7)
    samples = [sample_columns(_samples(draw)) for _ in range(BLOB_KINDS)]
    telemetry = pack(_telemetry())
    rows: dict[type[tables.Base], list[dict[str, Any]]] = {
        each: [] for each in (tables.Result, tables.Summary, tables.SampleBlob, tables.TelemetryBlob)
    }
    for number, (case, work) in enumerate(planned, 1):
        ending = next((outcome for every, outcome in OTHER_ENDINGS.items() if number % every == 0), Outcome.OK)
        rows[tables.Result].append(_result(number, work, ending))
        if ending is Outcome.OK:
            rows[tables.Summary].append(_summary(number, case, work, draw))
        if ending in (Outcome.OK, Outcome.IMPOSSIBLE):
            rows[tables.SampleBlob].append({"result_id": number, **samples[number % BLOB_KINDS]})
            rows[tables.TelemetryBlob].append({"result_id": number, "channels": telemetry})
    for model, found in rows.items():
        insert_rows(connection, model, found)


def _result(number: int, work: Work, ending: Outcome) -> dict[str, Any]:
    is_timed = ending in (Outcome.OK, Outcome.IMPOSSIBLE)
    measured = Measurement(
        ending,
        "" if ending is Outcome.OK else f"imagined to be {ending.value.replace('_', ' ')}",
        samples=_samples(random.Random(1)) if is_timed else None,
        interval_s=(1.995e-6, 2.005e-6) if is_timed else None,  # a timed result's own lies in its summary
        converged=number % 17 != 0 if is_timed else None,
        steady=number % 41 != 0 if is_timed else None,
        contended=number % 53 == 0 if is_timed else None,
        description={"library": "imagined"},
    )
    moment = START + timedelta(seconds=number)
    return {
        "id": number,
        "run_id": 1,
        "environment_id": 1,
        "device_id": 1,
        "case_id": number,
        "device_slot": 0,
        "attempt": 1,
        "evidence": Evidence.MEASURED.value,
        "started_at": moment,
        "finished_at": moment,
        "seed": 0,
        "flops": work.flops,
        "compulsory_bytes": work.compulsory_bytes,
        "traffic_bytes": None,
        "pipe": work.pipe,
        "tolerance": 0.004,
        "sets": 3,
        "predicted_bytes": work.compulsory_bytes,
        "predicted_s": 1.0,
        **result_columns(measured),
        "error_rel": 0.001 if is_timed else None,
    }


def _summary(number: int, case: Case, work: Work, draw: random.Random) -> dict[str, Any]:
    share = draw.uniform(0.4, 0.93)
    if not work.flops:
        bound, roof_s = "link", LINK_LATENCY_S + work.compulsory_bytes / LINK_BYTES_S
    else:
        compute_s, memory_s = work.flops / PEAKS[work.pipe or "bf16"], work.compulsory_bytes / BANDWIDTH
        bound, roof_s = ("compute", compute_s) if compute_s > memory_s else ("memory", memory_s)
    p50_s = roof_s / share
    fractions = dict.fromkeys(("fraction_boost", "fraction_at_clock"))  # the sheet has no operations a clock
    return {
        "result_id": number,
        "device_id": 1,
        "evidence": Evidence.MEASURED.value,
        "verified": True,
        "pipe": work.pipe,
        "load": case.regime.load,
        "formulas_version": FORMULAS_VERSION,
        "bound": bound,
        "count": 100,
        "p50_s": p50_s,
        "p05_s": p50_s * 0.99,
        "p95_s": p50_s * 1.01,
        "min_s": p50_s * 0.98,
        "interval_low_s": p50_s * 0.999,
        "interval_high_s": p50_s * 1.001,
        "flop_s": work.flops / p50_s,
        "bytes_s": work.compulsory_bytes / p50_s,
        "fraction_spec": None if bound == "link" else share,
        **fractions,
        "clock_hz": 1.6e9,
        "power_w": 600.0,
        "energy_j": 600.0 * p50_s if case.regime.load == "sustained" else None,
        "quantisation_error": 0.026,
        "throttle": "sw_power_cap 60%" if number % 23 == 0 else "",
    }


def _samples(draw: random.Random) -> SampleSet:
    times = tuple(int(draw.gauss(20_000, 120)) for _ in range(40))
    return SampleSet(times, 10, "imagined", 1e-9, 40, sum(times), min(times), 1, tuple(range(0, 40, 5)))


def _telemetry() -> dict[str, Channel]:
    times = tuple(0.02 * reading for reading in range(20))
    return {"sm_clock": Channel("Hz", times, (1.6e9,) * 20), "power": Channel("W", times, (600.0,) * 20)}


def _date(connection: Connection, runs: int) -> None:
    """A run a day, so that the store has a past."""
    run = tables.table_of(tables.Run)
    for number in range(runs):
        began = START + timedelta(days=number)
        values = {"started_at": began, "finished_at": began + timedelta(hours=3)}
        connection.execute(run.update().where(run.c.id == number + 1).values(values))


SCALED = {  # columns that follow from a time: what of ``f``, by which a run is slower than the first
    **dict.fromkeys(("p50_s", "p05_s", "p95_s", "min_s", "interval_low_s", "interval_high_s", "energy_j"), "*"),
    **dict.fromkeys(("flop_s", "bytes_s", "fraction_spec", "fraction_boost", "fraction_at_clock"), "/"),
}


def _another_run(connection: Connection, run: int, size: int) -> None:
    """The first run's results again, each slower by a factor between 1 and 1.6 that its run and number decide."""
    factor = f"(1.0 + 0.05 * ({run} % 7) + 0.0003 * ((result_id * 7919 + {run} * 104729) % 1000))"
    places = {"id": f"id + {run * size}", **dict.fromkeys(("run_id", "device_id", "environment_id"), str(run + 1))}
    moved = {**places, **{n: f"strftime('%Y-%m-%d %H:%M:%f000', {n}, '+{run} days')" for n in ("started_at", "finished_at")}}
    own = {"result_id": f"result_id + {run * size}", "device_id": str(run + 1)}
    _copy(connection, tables.Result, moved, f"id <= {size}")
    _copy(connection, tables.Summary, own | {n: f"{n} {how} {factor}" for n, how in SCALED.items()}, f"result_id <= {size}")
    for model in (tables.SampleBlob, tables.TelemetryBlob):
        _copy(connection, model, {"result_id": own["result_id"]}, f"result_id <= {size}")


def _copy(connection: Connection, model: type[tables.Base], changed: dict[str, str], which: str) -> None:
    table = tables.table_of(model)
    names = [f'"{column.name}"' for column in table.columns]
    values = [changed.get(column.name, f'"{column.name}"') for column in table.columns]
    sql = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {', '.join(values)} FROM {table.name} WHERE {which}"
    connection.exec_driver_sql(sql)


if __name__ == "__main__":
    build(Path(sys.argv[1]), *map(int, sys.argv[2:]))
