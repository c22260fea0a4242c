"""The rows of the network's table, how its ranks are started, and that nothing of a network is left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite.collectives.series import Point
from suite.collectives.study import studies
from tests.collectives.rows import collective
from tests.patience import PATIENCE_S
from tests.peers.network import HEADINGS, command, launch, row, rows
from tests.peers.network_spaces import CONTROL_FILE, Network, why_absent
from tests.peers.record import Verdict

RATE_BIT_S = 200 * 10**6
MIB = 2**20


def point(ranks: int, size: int, time_s: float) -> Point:
    return Point(ranks, size, time_s, time_s * 0.99, time_s * 1.01, 1)


@pytest.mark.parametrize(
    ("name", "size", "time_s", "predicted_s", "verdict"),
    [
        ("own ring", 16 * MIB, 1.3, None, Verdict.PASS),  # 29.36 MB in 1.3 s over 25 MB/s: 90 %
        ("own ring", 16 * MIB, 1.5, None, Verdict.FAIL),  # 78 %
        ("own ring", 16 * MIB, 1.3, 1.3 * 1.19, Verdict.PASS),
        ("own ring", 16 * MIB, 1.3, 1.3 * 0.79, Verdict.FAIL),
        ("own tree", 16 * MIB, 2.0, 2.0 * 1.19, Verdict.PASS),  # a tree is held to its prediction alone
        ("own tree", 16 * MIB, 2.0, None, Verdict.INFO),
        ("own ring", 8 * MIB, 9.0, 1.0, Verdict.INFO),
    ],
)
def test_a_row_is_judged_from_16_mib_on(
    name: str, size: int, time_s: float, predicted_s: float | None, verdict: Verdict
) -> None:
    found = row(name, point(8, size, time_s), predicted_s, RATE_BIT_S)
    assert found.verdict is verdict
    assert len(found.cells) == len(HEADINGS)
    assert found.figures["of_the_rate"] == pytest.approx(1.75 * size / time_s / 25e6)


def test_rows_have_a_prediction_where_the_largest_world_was_held_out() -> None:
    measured = [
        collective("all_reduce", ranks, size, 2 * (ranks - 1) * (1e-3 + size / ranks / 24e6), implementation="own",
                   switches={"algo": "ring"})
        for ranks in (2, 4, 8)
        for size in (8, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB)
    ]  # fmt: skip
    (study,) = studies(measured)
    found = list(rows(study.models, RATE_BIT_S))
    predicted = [each for each in found if each.figures["predicted_s"] is not None]
    assert [each.figures["ranks"] for each in predicted] == [8] * 5
    assert all(abs(each.figures["off"]) < 1e-6 for each in predicted)
    assert sum(each.verdict is Verdict.PASS for each in found) == 3  # 16 MiB at 2, 4 and 8 ranks
    few = studies(measured[:5])[0].models
    assert [each.verdict for each in rows(few, RATE_BIT_S)] == [Verdict.FAILED]


def test_every_rank_is_given_the_same_command_and_its_own_number() -> None:
    argv = command(Path("/tmp/a.db"), (2, 4), ("8", "1MiB"))
    assert "jobs.collective.world_sizes=[2,4]" in argv
    assert "jobs.collective.sizes=[8,1MiB]" in argv
    told = launch(3, 8, "10.0.0.1")
    assert {name: told[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")} == {
        "RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "10.0.0.1",
    }  # fmt: skip


def spaces() -> set[str]:
    folder = Path("/run/netns")
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


@pytest.mark.skipif(bool(why_absent()), reason=why_absent())
def test_a_network_is_gone_with_its_processes_whatever_happens() -> None:
    before = spaces()
    started: list[subprocess.Popen[bytes]] = []

    def interrupted() -> None:
        with Network(2, RATE_BIT_S) as network:
            assert network.burst_bytes == 250_000
            assert len(spaces() - before) == 3
            ask = [sys.executable, "-c", "import socket; socket.create_connection(('10.213.77.2', 9), 5)"]
            refused = subprocess.run(network.inside(0, ask), capture_output=True, text=True, check=False)
            assert "ConnectionRefusedError" in refused.stderr  # the other end of the bridge answers
            control = subprocess.run(network.inside(0, ["cat", CONTROL_FILE]), capture_output=True, text=True, check=True)
            assert control.stdout.strip() == "reno"
            started.append(subprocess.Popen(network.inside(1, [sys.executable, "-c", "import time; time.sleep(600)"])))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert started[0].wait(PATIENCE_S) != 0
    assert spaces() == before


@pytest.mark.skipif(bool(why_absent()), reason=why_absent())
def test_what_a_killed_one_left_is_removed_by_the_next() -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    stale = f"roofbench-net-{gone.stdout.strip()}-0"
    subprocess.run(["ip", "netns", "add", stale], check=True)
    with Network(1, RATE_BIT_S):
        assert stale not in spaces()
        assert f"roofbench-net-{os.getpid()}-0" in spaces()
    assert not {name for name in spaces() if str(os.getpid()) in name}
