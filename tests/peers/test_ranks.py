"""Processes that need one another: all of them end when one fails, and when the time is up."""

import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.patience import PATIENCE_S
from tests.peers.child import Deadline, PeerFailed
from tests.peers.ranks import Rank, run_ranks

WAITS = "import time; time.sleep(600)"
SAYS = "import os; print('rank', os.environ['RANK'])"
FAILS = "raise ValueError('no link')"


def of(*codes: str) -> list[Rank]:
    return [Rank([sys.executable, "-c", code], {"RANK": str(rank)}) for rank, code in enumerate(codes)]


def test_each_is_told_its_number_and_what_they_print_is_kept(tmp_path: Path) -> None:
    run_ranks(of(SAYS, SAYS), tmp_path / "log", Deadline(PATIENCE_S))
    assert sorted((tmp_path / "log").read_text().splitlines()) == ["rank 0", "rank 1"]


def test_one_that_fails_ends_those_that_wait_for_it(tmp_path: Path) -> None:
    began_s = time.monotonic()
    with pytest.raises(PeerFailed, match=r"rank 1 of 2 ended with status 1: ValueError: no link"):
        run_ranks(of(WAITS, FAILS), tmp_path / "log", Deadline(600))
    assert time.monotonic() - began_s < PATIENCE_S
    assert not psutil.Process().children(recursive=True)


def test_none_outlives_the_time(tmp_path: Path) -> None:
    with pytest.raises(PeerFailed, match="1 of 2 ranks were still running when the time was up"):
        run_ranks(of(WAITS, "pass"), tmp_path / "log", Deadline(2.0))
    assert not psutil.Process().children(recursive=True)
