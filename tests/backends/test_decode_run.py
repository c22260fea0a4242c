"""Decoding through a real worker: planned in a cohort, measured in turns, checked, stored, and by the command line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from suite.devices import resolve
from suite.jobs.decode import DecodeJob, DecodeSettings
from suite.plan import plan
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.backends.small_cache import TARGET
from tests.cli.command import roofbench
from tests.processes.bench import quick

WAYS = ["naive", "library_flash", "library_cudnn", "flashinfer", "triton"]
SMALL = (
    "job=decode",
    "experiment=null",
    "backend=cpu",
    f"backends.cpu.target={TARGET}",
    "+backends.cpu.options.threads=1",
    "measure=fast",
    "measure.regimes=[warm/sustained/device]",
    "measure.max_time_s=0.1",
    "measure.min_time_s=0.01",
    "measure.steady_timeout_s=0.1",
    "measure.steady_window_s=0.02",
    "jobs.decode.heads=[4/2x32]",
    "jobs.decode.batches=[3]",
    "jobs.decode.kv_lens=[100]",
)


@pytest.mark.thorough
def test_implementations_take_turns_in_one_cohort_and_those_that_are_not_here_say_so(tmp_path: Path) -> None:
    measure = replace(quick(), regimes=["warm/sustained/device"], interleave=2)
    settings = DecodeSettings(
        formats=["bf16", "int8"], heads=["4/2x32"], batches=[3], kv_lens=[100], scaling="token", implementations=WAYS
    )
    config = RunConfig(
        jobs={"decode": settings},
        backends={"cpu": BackendSettings("cpu", "backends.cpu:CpuBackend", {"threads": 1})},
        measure=measure,
    )
    resolved = resolve(config)
    planned = plan(resolved.config, resolved.slots, {0})
    assert len({each.cohort for each in planned}) == 2  # bf16 and int8
    with Store.open(str(tmp_path / "store.db")) as store:
        done = sweep(Sweep(resolved.config, resolved.slots, planned), store, lambda _: None)
    assert done.status == "complete"
    with Reader.open(str(tmp_path / "store.db")) as reader:
        rows = {(row.format, row.implementation): row for row in reader.results()}
        described = {key: dict(reader.measurement(row.result_id).description) for key, row in rows.items()}
    ran = [key for key, row in rows.items() if row.outcome == "ok"]
    assert ran == [("bf16", "naive"), ("bf16", "library_flash"), ("int8", "naive")], [row.reason for row in rows.values()]
    refused = {row.implementation: row.reason for row in rows.values() if row.outcome != "ok"}
    assert all(row.outcome == "unsupported" for row in rows.values() if row.outcome != "ok")
    assert refused["triton"] == "implementation triton runs on GPUs; the device here is a CPU"
    assert refused["flashinfer"].startswith("flashinfer runs on CUDA devices")
    naive, flash, eight = (rows[key] for key in ran)
    assert naive.workload_key == flash.workload_key
    works = [DecodeJob().work(each) for each in DecodeJob().workloads(settings)]
    assert [naive.compulsory_bytes, eight.compulsory_bytes] == [each.compulsory_bytes for each in works]
    assert naive.bytes_s is not None
    assert naive.quantisation_error == flash.quantisation_error
    assert eight.quantisation_error is not None
    wasted = described["bf16", "naive"]["page_memory_wasted"]
    assert wasted == 1 - 300 / (3 * 7 * 16)


def test_the_command_line_runs_it_and_shows_what_the_pages_waste(tmp_path: Path) -> None:
    axes = ("jobs.decode.formats=[fp8_e4m3]", "jobs.decode.lengths=[skewed]", "jobs.decode.shared_prefixes=[16]")
    said = roofbench(tmp_path, "run", *SMALL, *axes, "jobs.decode.implementations=[naive,library_flash]")
    assert said.status in (0, 3), said.err  # 3: some cases were not measured, and say why
    found = {
        row["implementation"]: row for row in json.loads(roofbench(tmp_path, "show", "--json").out) if row["job"] == "decode"
    }
    assert {way: row["outcome"] for way, row in found.items()} == {"naive": "ok", "library_flash": "unsupported"}
    assert "takes no fp8_e4m3" in found["library_flash"]["reason"]
    assert found["naive"]["params"]["shared_prefix"] == 16
    case = roofbench(tmp_path, "show", "latest", found["naive"]["case_key"])
    assert "page_memory_wasted" in case.out
    assert "x the compulsory bytes" in case.out
