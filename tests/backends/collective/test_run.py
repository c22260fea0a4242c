"""A whole run of collectives on CPU ranks, from settings to rows; and ranks that go with whoever started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from suite.devices import resolve
from suite.jobs.collective import CollectiveSettings
from suite.plan import plan
from suite.rows import ResultRow
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.patience import PATIENCE_S
from tests.processes.bench import gone_within, quick

OWNER = """
import sys, time
from tests.backends.collective.helpers import world
from backends.torch.collective.crew import Crew
print(*Crew(world(2)).pids, flush=True)
time.sleep(600)
"""


def test_a_sweep_stores_a_rate_over_the_link_and_every_ranks_times(tmp_path: Path) -> None:
    job = CollectiveSettings(ops=["all_reduce", "all_to_all"], sizes=["64KiB"], world_sizes=[2], formats=["bf16"])
    config = RunConfig(
        jobs={"collective": job},
        backends={"cpu": BackendSettings("cpu", "backends.cpu:CpuBackend")},
        measure=quick(1, start_s=PATIENCE_S, compile_s=PATIENCE_S),
    )
    resolved = resolve(config)
    config, slots = resolved.config, resolved.slots
    url = str(tmp_path / "store.db")
    with Store.open(url) as store:
        assert sweep(Sweep(config, slots, plan(config, slots, {0})), store, lambda _: None).status == "complete"
    with Reader.open(url) as reader:
        rows = reader.results()
        measured = {row.result_id: reader.measurement(row.result_id) for row in rows}
    assert [by(row) for row in rows] == [
        "all_reduce library library", "all_reduce own ring", "all_reduce own tree", "all_to_all library library",
    ]  # fmt: skip
    for row in rows:
        assert (row.outcome, row.bound, row.method, row.pipe) == ("ok", "link", "slowest rank", "host")
        factor = 0.5 if row.params["op"] == "all_to_all" else 1.0  # busbw's of two ranks
        assert row.p50_s is not None
        assert row.bytes_s == pytest.approx(factor * 2**16 / row.p50_s)
        found = measured[row.result_id]
        assert found.samples is not None
        assert all(len(times) == 2 for times in found.samples.details["rank_times_ns"])
        assert found.description["transport"] == "host"
        assert found.check_before is not None
        assert found.check_after is not None
        assert found.check_before.passed is found.check_after.passed is True


def by(row: ResultRow) -> str:
    return f"{row.params['op']} {row.implementation} {row.switches['algo']}"


def test_ranks_end_with_the_process_that_started_them() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    with owner:
        assert owner.stdout is not None
        ranks = [int(pid) for pid in owner.stdout.readline().split()]
        assert len(ranks) == 2
        os.kill(owner.pid, signal.SIGKILL)
    assert all(gone_within(pid, PATIENCE_S) for pid in ranks)
