"""Decode steps through a real worker: planned, measured in both dispatches, checked, stored, and by the command line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from suite.devices import resolve
from suite.jobs.decode_step import DecodeStepJob, DecodeStepSettings
from suite.plan import plan
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.backends.decode_step.cases import SIZES
from tests.backends.small_cache import TARGET
from tests.cli.command import roofbench
from tests.processes.bench import quick

SMALL = (
    "job=decode_step",
    "experiment=null",
    "backend=cpu",
    f"backends.cpu.target={TARGET}",
    "+backends.cpu.options.threads=1",
    "measure=fast",
    "measure.regimes=[warm/sustained/call]",
    "measure.max_time_s=0.1",
    "measure.min_time_s=0.01",
    "measure.steady_timeout_s=0.1",
    "measure.steady_window_s=0.02",
    "measure.verify_tiles=1",
    "jobs.decode_step.layers=2",
    "jobs.decode_step.hidden_sizes=64",
    "jobs.decode_step.heads=4/2x16",
    "jobs.decode_step.intermediate_sizes=96",
    "jobs.decode_step.vocabularies=300",
    "jobs.decode_step.kv_lens=[37]",
    "jobs.decode_step.batches=[2]",
)


@pytest.mark.thorough
def test_both_parts_are_measured_in_a_graph_and_as_a_caller_waits_and_what_is_not_here_says_so(tmp_path: Path) -> None:
    measure = replace(quick(), regimes=["standard"], interleave=2, verify_tiles=1)
    settings = DecodeStepSettings(parts=["weights", "step"], implementations=["library", "triton"], **{**SIZES, "layers": 2})
    config = RunConfig(
        jobs={"decode_step": settings}, backends={"cpu": BackendSettings("cpu", "backends.cpu:CpuBackend", {})}, measure=measure
    )
    resolved = resolve(config)
    planned = plan(resolved.config, resolved.slots, {0})
    with Store.open(str(tmp_path / "store.db")) as store:
        done = sweep(Sweep(resolved.config, resolved.slots, planned), store, lambda _: None)
    assert done.status == "complete"
    with Reader.open(str(tmp_path / "store.db")) as reader:
        rows = list(reader.results())
    ended = {(row.params["part"], row.implementation, row.dispatch): row for row in rows}
    assert len(ended) == len(rows) == 8
    for (part, implementation, _), row in ended.items():
        if implementation == "triton":
            assert row.outcome == "unsupported"
            assert row.reason == "implementation triton runs on GPUs; the device here is a CPU"
            continue
        assert row.outcome == "ok", row.reason
        (workload,) = (each for each in DecodeStepJob().workloads(settings) if each.param("part") == part)
        assert row.compulsory_bytes == DecodeStepJob().work(workload).compulsory_bytes
        assert row.p50_s is not None
        assert row.tokens_s == (3 / row.p50_s if part == "step" else None)


def test_the_command_line_runs_and_shows_it_with_tokens_per_second(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "run", *SMALL)
    assert said.status in (0, 3), said.err  # 3: some cases were not measured, and say why
    found = [row for row in json.loads(roofbench(tmp_path, "show", "--json").out) if row["job"] == "decode_step"]
    outcomes = {row["implementation"]: row["outcome"] for row in found}
    assert outcomes == {"library": "ok", "triton": "unsupported"}
    timed = next(row for row in found if row["outcome"] == "ok")
    assert timed["tokens_s"] == 2 / timed["p50_s"]
    case = roofbench(tmp_path, "show", "latest", timed["case_key"])
    assert "each stage from what the one before it left" in case.out
    assert "x the compulsory bytes" in case.out


def test_a_model_that_has_no_room_is_refused_before_it_runs(tmp_path: Path) -> None:
    given = ("job=decode_step", "experiment=null", "backend=cpu", "jobs.decode_step.models=[llama-3.1-405b]")
    said = roofbench(tmp_path, "run", *given)
    assert said.status == 2
    assert "decode_step" in said.err
    assert "predicted" in said.err
