"""The whole of it: ``roofbench run`` in every process of a torchrun."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite.store.queries import Reader

LIMIT_S = 300.0


@pytest.mark.thorough
def test_under_torchrun_rank_0_alone_stores_and_every_rank_writes_its_file(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "suite.cli", "run",
        "backend=cpu", "experiment=collectives", "jobs.collective.ops=[all_reduce]", "jobs.collective.sizes=[64KiB]",
        "measure.max_time_s=0.2", "measure.deadlines.start_s=200", "measure.deadlines.compile_s=200",
        f"store.url={tmp_path}/s.db",
    ]  # fmt: skip
    surroundings = {**os.environ, "ROOFBENCH_LOCK_DIR": str(tmp_path)}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with Reader.open(f"{tmp_path}/s.db") as reader:
        (run,) = reader.runs()
        rows = [row for row in reader.results() if row.job == "collective"]
        described = reader.measurement(rows[0].result_id).description
    assert run.status == "complete"
    assert [(row.outcome, row.params["world_size"], row.switches["joined"]) for row in rows] == [("ok", 2, True)] * 3
    assert (described["ranks_from"], described["hosts"]) == ("torchrun", 1)
    for rank in range(2):
        lines = [json.loads(line) for line in Path(f"{tmp_path}/s.db.rank-{rank}.jsonl").read_text().splitlines()]
        assert [(line["rank"], line["asked"]) for line in lines] == [
            (rank, "library"), (rank, "ring/library"), (rank, "tree/library"),
        ]  # fmt: skip
        assert all(line["iterations"] >= len(line["times_ns"]) > 0 for line in lines)
