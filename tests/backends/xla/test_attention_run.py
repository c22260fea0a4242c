"""Attention and decoding through XLA beside torch, through real workers: planned, measured, checked and stored."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.devices import resolve
from suite.jobs.attention import AttentionJob, AttentionSettings
from suite.jobs.decode import DecodeSettings
from suite.plan import plan
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.processes.bench import quick

BACKENDS = {
    "cpu": BackendSettings("cpu", "backends.cpu:CpuBackend", {"threads": 1}),
    "xla": BackendSettings("xla", "backends.xla:XlaBackend", {"platform": "cpu"}),
}
ATTENTION = AttentionSettings(
    directions=["forward", "backward"],
    heads=["2/1x64"],
    tokens=[128],
    seq_lens=[64],
    masks=["causal"],
    implementations=["naive", "library_math", "library_cudnn"],
)
DECODE = DecodeSettings(
    formats=["bf16", "int8"], heads=["4/2x32"], batches=[3], kv_lens=[100], implementations=["naive", "library_flash"]
)


def rows_of(folder: Path, job: str, settings: Any) -> tuple[dict[tuple[str, ...], Any], dict[tuple[str, ...], Any]]:
    """Results by backend, what tells workloads apart, and implementation; and what is described of each."""
    measure = replace(quick(), regimes=["warm/sustained/device"], interleave=2)
    resolved = resolve(RunConfig(jobs={job: settings}, backends=dict(BACKENDS), measure=measure))
    planned = plan(resolved.config, resolved.slots, {0, 1})
    with Store.open(str(folder / "store.db")) as store:
        assert sweep(Sweep(resolved.config, resolved.slots, planned), store, lambda _: None).status == "complete"
    with Reader.open(str(folder / "store.db")) as reader:
        rows = {
            (row.backend, str(row.params.get("direction", row.format)), row.implementation): row for row in reader.results()
        }
        return rows, {key: dict(reader.measurement(row.result_id).description) for key, row in rows.items()}


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_attention_stands_beside_torchs(tmp_path: Path) -> None:
    rows, described = rows_of(tmp_path, "attention", ATTENTION)
    right = {key for key, row in rows.items() if row.outcome == "ok"}
    assert right == {
        *(("cpu", "forward", name) for name in ("naive", "library_math")),
        ("cpu", "backward", "naive"),
        *(("xla", direction, name) for direction in ATTENTION.directions for name in ("naive", "library_math")),
    }, [row.reason for row in rows.values()]
    mine, theirs = rows["xla", "forward", "naive"], rows["cpu", "forward", "naive"]
    assert mine.workload_key == theirs.workload_key
    assert mine.flops == AttentionJob().work(next(AttentionJob().workloads(ATTENTION))).flops
    assert described["xla", "forward", "naive"]["passing_bytes"] > 0
    assert "for NVIDIA GPUs" in rows["xla", "forward", "library_cudnn"].reason


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_decoding_stands_beside_torchs(tmp_path: Path) -> None:
    rows, described = rows_of(tmp_path, "decode", DECODE)
    assert {key for key, row in rows.items() if row.outcome == "ok"} == {
        ("cpu", "bf16", "naive"),
        ("cpu", "bf16", "library_flash"),
        ("cpu", "int8", "naive"),
        ("xla", "bf16", "naive"),
        ("xla", "int8", "naive"),
    }, [row.reason for row in rows.values()]
    assert rows["xla", "bf16", "naive"].workload_key == rows["cpu", "bf16", "naive"].workload_key
    assert described["xla", "bf16", "naive"]["pages_are"].startswith("gathered")
