"""The rows of NCCL's cost table beside the rebuilt one, from a real log whose graph lines are put back."""

import argparse
from pathlib import Path

import pytest

from suite.collectives.log.reader import DebugLog, read_log
from tests.importers.fixtures import text
from tests.peers import nccl_model
from tests.peers.child import Deadline, PeerFailed
from tests.peers.nccl_model import HEADINGS, communicator_of, logged, options, rows
from tests.peers.record import Verdict

RING = "Pattern 4, crossNic 0, nChannels 2, bw 1.200000/1.200000, type PHB/PHB, sameChannels 1"
TREE = "Pattern 3, crossNic 0, nChannels 4, bw 1.200000/1.200000, type PHB/PHB, sameChannels 1"
COMMUNICATOR = (
    "comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0",
    "4 coll channels, 4 collnet channels, 0 nvls channels, 4 p2p channels, 2 p2p channels per peer",
)
INTEL, AMD = "vendor_id\t: GenuineIntel\n" * 2, "vendor_id\t: AuthenticAMD\n" * 2


def log(*graphs: str) -> DebugLog:
    """Two ranks on two nodes, NCCL 2.29.7 on compute capability 120: the bandwidths in its table follow from these graphs."""
    lines = "".join(f"host:1:1 [0] NCCL INFO {line}\n" for line in (*COMMUNICATOR, *graphs))
    return read_log(lines + text("tuning/tuning_2.29_broadcast_debug.log"))


def test_equal_tables_pass_in_every_row() -> None:
    found = list(rows(log(RING, TREE), communicator_of(log(RING, TREE), 120, INTEL)))
    judged = [each for each in found if each.verdict is not Verdict.INFO]
    assert {each.verdict for each in judged} == {Verdict.PASS}
    assert [each.name for each in judged] == [
        "2 ranks, all_reduce tree",
        "2 ranks, all_reduce ring",
        "2 ranks, all_gather ring",
        "2 ranks, reduce_scatter ring",
        "2 ranks, broadcast ring",
        "2 ranks, reduce ring",
    ]
    assert all(len(each.cells) == len(HEADINGS) for each in found)
    assert judged[1].cells[:2] == (judged[1].figures["ll"]["logged"], judged[1].figures["ll"]["rebuilt"])


@pytest.mark.parametrize(
    ("ring", "tree", "differs"),
    [
        (RING.replace("nChannels 2", "nChannels 3"), TREE, "ring"),
        (RING.replace("bw 1.2", "bw 1.3"), TREE, "ring"),
        (RING, TREE.replace("Pattern 3", "Pattern 1"), "tree"),
    ],
    ids=["more channels", "faster channels", "a balanced tree"],
)
def test_one_digit_that_differs_fails(ring: str, tree: str, differs: str) -> None:
    found = list(rows(log(ring, tree), communicator_of(log(ring, tree), 120, INTEL)))
    assert {each.name.split()[-1] for each in found if each.verdict is Verdict.FAIL} == {differs}


@pytest.mark.parametrize(("cpuinfo", "cpu"), [(INTEL, "intel"), (AMD, "amd"), (INTEL + AMD, "other"), ("", "other")])
def test_the_host_is_who_its_processors_say(cpuinfo: str, cpu: str) -> None:
    assert communicator_of(log(RING, TREE), 120, cpuinfo).cpu == cpu


def test_a_log_without_graphs_is_no_comparison() -> None:
    with pytest.raises(PeerFailed, match="GRAPH"):
        communicator_of(log(RING), 120, INTEL)
    with pytest.raises(PeerFailed, match="no version"):
        communicator_of(read_log(""), 120, INTEL)


def test_ranks_that_fail_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(PeerFailed, match=r"rank [01] of 2 ended with status 1: \w+Error: "):
        logged(2, tmp_path, Deadline(100))


def test_the_part_is_absent_without_nccl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nccl_model, "why_absent", lambda: "NCCL takes a CUDA device")
    assert nccl_model.main(["--out", str(tmp_path)]) == 0
    assert "nccl_model: 1 absent" in capsys.readouterr().out


def test_worlds_are_numbers() -> None:
    parser = options()
    assert parser.parse_args(["--out", "x"]).worlds == [2, 4, 8]
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parser.parse_args(["--out", "x", "--worlds", "two"])
