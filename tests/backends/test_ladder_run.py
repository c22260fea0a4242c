"""The ladder through a real worker: planned, measured, checked, stored, and found incorrect where operands are misread."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.host import cpuinfo
from backends.torch.target import cpu_target
from suite.devices import resolve
from suite.jobs.gemm import FORMATS, GemmJob, GemmSettings
from suite.plan import plan
from suite.rows import ResultRow
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.backends.ladder import EVERYTHING, PLAIN
from tests.processes.bench import quick

QUANTISED = [name for name in FORMATS if name not in PLAIN]


def run(path: Path, target: str, options: dict[str, Any], **settings: Any) -> list[tuple[ResultRow, dict[str, Any]]]:
    """Results with the descriptions that are stored beside them."""
    measure = replace(quick(), regimes=["warm/sustained/device"])
    jobs = {"gemm": GemmSettings(**{"shapes": ["32x48x256"], **settings})}
    config = RunConfig(jobs=jobs, backends={"cpu": BackendSettings("cpu", target, options)}, measure=measure)
    resolved = resolve(config)
    config, slots = resolved.config, resolved.slots
    with Store.open(str(path / "store.db")) as store:
        end = sweep(Sweep(config, slots, plan(config, slots, {0})), store, lambda _: None)
    assert end.status == "complete"
    with Reader.open(str(path / "store.db")) as reader:
        return [(row, dict(reader.measurement(row.result_id).description)) for row in reader.results()]


def test_every_format_is_measured_verified_and_stored_with_its_error(tmp_path: Path) -> None:
    found = run(tmp_path, "backends.cpu:CpuBackend", {"threads": 1}, formats=["bf16", *QUANTISED], **EVERYTHING)
    assert len(found) == 22
    assert {(row.outcome, row.reason) for row, _ in found} == {("ok", "")}
    told = {row.case_key: described.get("quantisation_error") for row, described in found}
    raw = {row.case_key for row, described in found if described["output_dtype"] == "int32"}
    assert len(raw) == 1
    assert all(0 < error < 0.3 for key, error in told.items() if key not in raw)


def test_what_is_converted_is_judged_by_the_unit_that_multiplies(tmp_path: Path) -> None:
    """By bf16's, or by fp32's on a CPU without bf16."""
    found = run(
        tmp_path, "backends.cpu:CpuBackend", {"threads": 1}, formats=["mxfp4", "fp8_e4m3", "w4a16", "int8"], scaling=["row"]
    )
    wide = "fp32" if "bf16" in cpu_target(cpuinfo.processors().isa).emulated else "bf16"
    stored = {row.format: (row.pipe, row.execution, row.compulsory_bytes) for row, _ in found}
    assert {name: pipe for name, (pipe, *_) in stored.items()} == {
        "mxfp4": wide,
        "fp8_e4m3": wide,
        "w4a16": "fp32",
        "int8": "int8",
    }
    assert {stored[name][1] for name in ("mxfp4", "fp8_e4m3", "w4a16")} == {"emulated"}
    planned = {
        w.format: GemmJob().work(w)
        for w in GemmJob().workloads(GemmSettings(formats=list(stored), shapes=["32x48x256"], scaling=["row"]))
    }
    assert {name: each[2] for name, each in stored.items()} == {name: work.compulsory_bytes for name, work in planned.items()}


@pytest.mark.parametrize(
    ("way", "settings", "outcomes"),
    [
        pytest.param("as_it_is", {"formats": ["mxfp4", "w4a16"]}, {"ok"}, marks=pytest.mark.thorough),
        ("twice_the_scale", {"formats": ["fp8_e5m2", "mxfp8_e4m3", "mxfp6_e3m2", "nvfp4", "w8a16"]}, {"incorrect"}),
        pytest.param(
            "swapped_nibbles", {"formats": ["mxfp4", "nvfp4", "w4a16", "mxfp4a16"]}, {"incorrect"}, marks=pytest.mark.thorough
        ),
        ("without_zero_points", {"formats": ["int8", "w4a16"], "scaling": ["row"], "zero_point": True}, {"incorrect"}),
    ],
)
def test_a_worker_finds_misread_operands(tmp_path: Path, way: str, settings: dict[str, Any], outcomes: set[str]) -> None:
    found = run(tmp_path, "tests.backends.misreading:MisreadingCpu", {"way": way, "threads": 1}, **settings)
    assert len(found) == len(settings["formats"])
    assert {row.outcome for row, _ in found} == outcomes
    assert all(row.evidence == "simulated" for row, _ in found)
    if outcomes == {"incorrect"}:
        assert all("above the tolerance" in row.reason or "projection" in row.reason for row, _ in found)
