"""Faults planted into real backends: a crash, a hang and exhausted memory in one run cost no other case."""

import time
from pathlib import Path
from typing import Any

import pytest

from suite.devices import resolve
from suite.jobs.gemm import GemmSettings
from suite.plan import plan
from suite.probe import probe
from suite.rows import ResultRow
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.backends.cases import WARM, fresh_verdict, gemm_case
from tests.patience import PATIENCE_S
from tests.planted.backend import PlantedCpu
from tests.processes.bench import quick


def planted_run(
    path: Path, name: str, target: str, plant: dict[str, str], sound: list[str], **deadlines: float
) -> list[ResultRow]:
    """Measure faulty and sound shapes in turn."""
    measure = quick(1, **deadlines)
    measure.regimes = ["warm/sustained/device"]
    shapes = [shape for pair in zip(plant, sound, strict=True) for shape in pair]
    config = RunConfig(
        jobs={"gemm": GemmSettings(shapes=shapes, formats=["fp32"])},
        backends={name: BackendSettings(name, target, {"plant": plant})},
        measure=measure,
    )
    resolved = resolve(config)
    config, slots = resolved.config, resolved.slots
    with Store.open(str(path / "store.db")) as store:
        end = sweep(Sweep(config, slots, plan(config, slots, {0})), store, lambda _: None)
    assert end.status == "complete"
    with Reader.open(str(path / "store.db")) as reader:
        return reader.results()


def outcomes(rows: list[ResultRow]) -> dict[str, Any]:
    return {"x".join(str(row.params[axis]) for axis in "mnk"): row.outcome for row in rows}


def test_on_the_cpu(tmp_path: Path) -> None:
    plant = {"64x64x32": "segfault@measure", "64x64x80": "host_memory@verify"}
    rows = planted_run(tmp_path, "cpu", "tests.planted.backend:PlantedCpu", plant, ["32x64x64", "80x64x64"], start_s=PATIENCE_S)
    assert outcomes(rows) == {"64x64x32": "crashed", "64x64x80": "out_of_memory", "32x64x64": "ok", "80x64x64": "ok"}
    assert {row.evidence for row in rows} == {"simulated"}
    assert next(row for row in rows if row.outcome == "ok").p50_s


@pytest.mark.alone
@pytest.mark.gpu
def test_on_a_gpu(tmp_path: Path) -> None:
    if not Path("/dev/nvidiactl").exists() or not probe("backends.cuda:CudaBackend").devices:
        pytest.skip("no CUDA device")
    plant = {
        "512x512x256": "segfault@measure",
        "512x512x384": "lost_context@measure",
        "512x512x640": "device_hang@measure",
        "512x512x768": f"hang_with_children:{tmp_path / 'pids'}",
        "512x512x896": "device_memory",
    }
    sound = [f"{m}x512x512" for m in (256, 384, 640, 768, 896)]
    rows = planted_run(
        tmp_path, "cuda", "tests.planted.backend:PlantedCuda", plant, sound, compile_s=30.0, measure_s=10.0, start_s=120.0
    )
    found = outcomes(rows)
    assert [found[shape] for shape in plant] == ["crashed", "crashed", "timeout", "timeout", "out_of_memory"]
    assert [found[shape] for shape in sound] == ["ok"] * 5


def test_a_kernel_that_is_to_be_slower_is_so_by_that_much_and_computes_the_same() -> None:
    backend = PlantedCpu({"plant": {"96x64x64": "slower:3000000"}})
    backend.select(0)
    case = gemm_case("fp32", 96, 64, 64, regime=WARM)
    kernel = backend.prepare(case, 1, 3)
    assert fresh_verdict(kernel, case, seed=4).passed
    began_s = time.perf_counter()
    kernel.enqueue(0)
    assert time.perf_counter() - began_s >= 3e-3
    assert backend.prepare(gemm_case("fp32", 64, 96, 64, regime=WARM), 1, 3).fault.kind == ""
