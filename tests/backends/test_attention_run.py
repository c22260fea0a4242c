"""Attention through a real worker: planned in a cohort, measured in turns, checked and stored with what it moved."""

from dataclasses import replace
from pathlib import Path

from suite.devices import resolve
from suite.jobs.attention import AttentionJob, AttentionSettings
from suite.plan import plan
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.processes.bench import quick

WAYS = ["naive", "library_flash", "library_math", "library_cudnn"]


def test_implementations_take_turns_in_one_cohort_and_those_that_are_not_here_say_so(tmp_path: Path) -> None:
    measure = replace(quick(), regimes=["warm/sustained/device"], interleave=2)
    settings = AttentionSettings(
        directions=["forward", "backward"],
        heads=["2/1x64"],
        tokens=[128],
        seq_lens=[64],
        masks=["causal"],
        implementations=WAYS,
    )
    config = RunConfig(
        jobs={"attention": settings},
        backends={"cpu": BackendSettings("cpu", "backends.cpu:CpuBackend", {"threads": 1})},
        measure=measure,
    )
    resolved = resolve(config)
    config, slots = resolved.config, resolved.slots
    planned = plan(config, slots, {0})
    assert len({each.cohort for each in planned}) == 2  # forward and backward
    with Store.open(str(tmp_path / "store.db")) as store:
        assert (
            sweep(
                Sweep(
                    config,
                    slots,
                    planned,
                ),
                store,
                lambda _: None,
            ).status
            == "complete"
        )
    with Reader.open(str(tmp_path / "store.db")) as reader:
        rows = {(row.params["direction"], row.implementation): row for row in reader.results()}
        described = {key: dict(reader.measurement(row.result_id).description) for key, row in rows.items()}
    outcomes = {key: row.outcome for key, row in rows.items()}
    assert [key for key, outcome in outcomes.items() if outcome != "ok"] == [
        ("forward", "library_cudnn"),
        ("backward", "library_math"),
        ("backward", "library_cudnn"),
    ]
    assert {row.reason.partition(" ")[0] for row in rows.values() if row.outcome != "ok"} == {"library_cudnn", "library_math"}
    naive, flash = rows["forward", "naive"], rows["forward", "library_flash"]
    assert naive.workload_key == flash.workload_key
    assert naive.flops == flash.flops == AttentionJob().work(next(AttentionJob().workloads(settings))).flops
    assert described["forward", "naive"]["traffic_bytes"] > naive.compulsory_bytes
    assert naive.quantisation_error == flash.quantisation_error
    assert naive.flop_s is not None
    assert flash.flop_s is not None
