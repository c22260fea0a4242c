"""A rank whose process is killed under a run: what is stored of it, how it ends, and that it goes on."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from suite.store.queries import Reader

LIMIT_S = 300.0
SETTINGS = (
    "backend=cpu", "measure=fast", "measure.max_time_s=0.3", "measure.steady_timeout_s=0.6", "job=collective",
    "jobs.collective.ops=[all_reduce]", "jobs.collective.sizes=[1KiB,2KiB]",
)  # fmt: skip


@pytest.mark.thorough
def test_the_case_that_a_rank_died_in_crashed_and_the_others_are_left(tmp_path: Path) -> None:
    """Nobody watches these ranks, as srun does not: the run has to end itself."""
    store = f"store.url={tmp_path}/s.db"
    command = [sys.executable, "-m", "suite.cli", "run"]
    port = 20_000 + os.getpid() % 500 * 20
    surroundings = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    first, other = (
        subprocess.Popen(
            [*command, *SETTINGS, store],
            env={**surroundings, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    )
    with first, other:
        assert first.stdout is not None
        for line in first.stdout:
            if re.match(r"\[ *\d+/\d+\] collective", line):
                other.kill()
                break
        said, _ = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 130, said
    assert other.returncode == -signal.SIGKILL
    assert "to go on, start it again under torchrun, srun or mpirun with 2 ranks: roofbench run resume=" in said
    with Reader.open(f"{tmp_path}/s.db") as reader:
        (run,) = reader.runs()
        rows = [row for row in reader.results() if row.job == "collective"]
    assert run.status == "interrupted"
    assert [row.outcome for row in rows] == ["ok", "crashed"]
    assert re.fullmatch(
        r"rank 1 of 2 \(host 1 of 1, local rank 0\) is gone with the process that kept it before it answered \w+ of "
        r"all_reduce 1 KiB fp32 \(own ring/library\)",
        rows[1].reason,
    )

    again = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "suite.cli", "run"]
    done = subprocess.run([*again, "resume=latest", store], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    with Reader.open(f"{tmp_path}/s.db") as reader:
        (run,) = reader.runs()
        rows = [row for row in reader.results() if row.job == "collective"]
    assert run.status == "complete", done.stdout + done.stderr
    assert [row.outcome for row in rows] == ["ok", "crashed", "ok", "ok", "ok", "ok"]
