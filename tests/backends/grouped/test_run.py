"""Grouped products through a real worker: measured in turns, checked, stored, and those that are not here say why."""

from dataclasses import replace
from pathlib import Path

from suite.devices import resolve
from suite.jobs.grouped_gemm import GroupedGemmJob, GroupedGemmSettings
from suite.plan import plan
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.processes.bench import quick


def test_implementations_take_turns_and_what_is_not_here_says_so(tmp_path: Path) -> None:
    measure = replace(quick(), regimes=["warm/sustained/device"], interleave=2)
    settings = GroupedGemmSettings(
        groups=[], shapes=[], moe=["8/2x64x32"], tokens=[24], products=["gate_up"], spreads=["skewed"],
        implementations=["library", "loop", "triton"],
    )  # fmt: skip
    config = RunConfig(
        jobs={"grouped_gemm": settings},
        backends={"cpu": BackendSettings("cpu", "backends.cpu:CpuBackend", {"threads": 1})},
        measure=measure,
    )
    resolved = resolve(config)
    planned = plan(resolved.config, resolved.slots, {0})
    assert len({each.cohort for each in planned}) == 1
    with Store.open(str(tmp_path / "store.db")) as store:
        done = sweep(Sweep(resolved.config, resolved.slots, planned), store, lambda _: None)
    assert done.status == "complete"
    with Reader.open(str(tmp_path / "store.db")) as reader:
        rows = {row.implementation: row for row in reader.results()}
        described = dict(reader.measurement(rows["library"].result_id).description)
    assert {name: row.outcome for name, row in rows.items()} == {"library": "ok", "loop": "ok", "triton": "unsupported"}
    assert rows["triton"].reason == "implementation triton runs on GPUs; the device here is a CPU"
    (work,) = (GroupedGemmJob().work(each) for each in GroupedGemmJob().workloads(settings))
    assert (rows["loop"].flops, rows["loop"].compulsory_bytes) == (work.flops, work.compulsory_bytes)
    assert rows["library"].params == {"groups": 8, "m": 48, "n": 64, "k": 64, "spread": "skewed", "top_k": 2}
    assert rows["library"].quantisation_error == rows["loop"].quantisation_error
    assert described["rows_of_groups"] == {"fewest": 0, "most": 17, "groups_without": 1, "filled_up": 0}
