"""A rank's own file: whole lines, and no case of a rank whose disk is full ends because of it."""

import json
from pathlib import Path

import pytest

from backends.torch.collective.record import RankRecord, append_line
from suite.collectives.names import Op
from tests.backends.collective.helpers import task

FULL = Path("/dev/full")


def recorded(record: RankRecord, ticket: int) -> None:
    record.begin(ticket, task(Op.ALL_REDUCE, 2, 1000))
    record.sampled(ticket, [10, 20])
    record.end(ticket)


def test_a_line_follows_one_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "rank"
    path.write_text('{"whole": 1}\n{"cut":')
    recorded(RankRecord(path, 1), 0)
    first, cut, last = path.read_text().splitlines()
    assert (first, cut) == ('{"whole": 1}', '{"cut":')
    assert json.loads(last)["times_ns"] == [10, 20]


def test_a_file_that_cannot_be_written_is_told_of_once_and_costs_no_case(capsys: pytest.CaptureFixture[str]) -> None:
    record = RankRecord(FULL, 1)
    for ticket in (0, 1):
        recorded(record, ticket)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("/dev/full cannot be written (No space left on device): rank 1 measures on")


def test_what_did_not_fit_leaves_nothing_of_its_line(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "rank"
    append_line(path, b"first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            append_line(path, b"x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"first\n"
