"""The rows of roofbench's all_reduce beside a plain loop's, and both sides on CPU ranks."""

from pathlib import Path

import pytest

from suite.collectives.series import series
from tests.collectives.rows import collective
from tests.peers import plain_collectives
from tests.peers.plain_collectives import HEADINGS, Message, Plan, command, main, row, rows
from tests.peers.record import Record, Verdict

GIB = 2**30
EIGHT = Message("ring", "fp32", 8 * GIB)


@pytest.mark.parametrize(
    ("message", "ours_s", "loop_s", "verdict"),
    [
        (EIGHT, [0.02478], [0.02478 * 0.981], Verdict.PASS),
        (EIGHT, [0.02478], [0.02478 * 0.979], Verdict.FAIL),
        (EIGHT, [0.02478], [0.02478 * 1.021], Verdict.FAIL),  # faster than the loop is as wrong as slower
        (EIGHT, [0.02, 0.0251, 0.025], [0.025, 0.0252, 0.03], Verdict.PASS),  # medians over the rounds
        (EIGHT._replace(bytes=GIB), [1.0], [2.0], Verdict.FAIL),
        (EIGHT._replace(bytes=GIB // 4), [1.0], [2.0], Verdict.INFO),
        (EIGHT, [], [0.025], Verdict.ABSENT),
        (EIGHT, [0.025], [], Verdict.ABSENT),
    ],
)
def test_a_row_is_judged_from_1_gib_on(message: Message, ours_s: list[float], loop_s: list[float], verdict: Verdict) -> None:
    found = row(message, 2, ours_s, loop_s)
    assert found.verdict is verdict
    assert len(found.cells) == len(HEADINGS)
    assert bool(found.note) is (verdict is Verdict.ABSENT)


def test_bus_bandwidth_is_that_of_the_ranks() -> None:
    assert row(EIGHT, 2, [8 * GIB / 347e9], [1.0]).cells[3] == "347"
    assert row(EIGHT, 8, [8 * GIB / 347e9 * 1.75], [1.0]).cells[3] == "347"


def test_a_message_that_one_side_lacks_is_a_row_too() -> None:
    other = EIGHT._replace(algo="tree")
    found = list(rows(2, [{EIGHT: 1.0}, {EIGHT: 1.0, other: 2.0}], [{EIGHT: 1.0}]))
    assert [(each.name, each.verdict) for each in found] == [
        ("ring fp32 8 GiB", Verdict.PASS), ("tree fp32 8 GiB", Verdict.ABSENT),
    ]  # fmt: skip


def test_both_sides_name_the_same_messages(tmp_path: Path) -> None:
    plan = Plan("cuda", 4, ("library", "ring", "tree"), ("1GiB",), tmp_path)
    argv = command(plan, tmp_path / "a.db")
    assert {"jobs.collective.algos=[library,ring,tree]", "jobs.collective.world_sizes=[4]"} <= set(argv)
    stored = series([collective("all_reduce", 4, GIB, 0.01, switches={"algo": "ring"})])
    assert stored[0].way.algo in plain_collectives.FORCED


def test_the_part_is_absent_without_two_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plain_collectives, "devices", lambda: 1)
    assert main(["--out", str(tmp_path)]) == 0
    assert "it takes as many GPUs as ranks, at least 2; here are 1" in capsys.readouterr().out


@pytest.mark.thorough  # two runs of roofbench and four processes that load torch
def test_both_sides_time_cpu_ranks(tmp_path: Path) -> None:
    assert main(["--out", str(tmp_path), "--backend", "cpu", "--tiny"]) == 0
    record = Record.load(tmp_path / "plain_collectives.json")
    assert [each.verdict for each in record.rows] == [Verdict.INFO] * 4
    assert all(len(each.figures["ours_s"]) == len(each.figures["loop_s"]) == 2 for each in record.rows)
