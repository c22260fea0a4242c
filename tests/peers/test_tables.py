"""Verdicts, order of turns, records on disk and the tables made of them."""

import json
from pathlib import Path

import pytest

from tests.peers.gemms import TWENTY, Gemm, square
from tests.peers.judge import absolute, at_most, relative, spread
from tests.peers.order import turns
from tests.peers.part import Part, status
from tests.peers.record import Record, Row, Verdict
from tests.peers.table import number, percent, render, tally

PART = Part("tried", "what is tried", ("ours", "theirs"), lambda session: None)


def row(name: str, verdict: Verdict, note: str = "") -> Row:
    return Row(name, ("1 us", "2 us"), verdict, {"ours_s": 1e-6}, note)


@pytest.mark.parametrize(
    ("ours", "theirs", "difference", "verdict"),
    [
        (102.0, 100.0, 0.02, Verdict.PASS),
        (97.9, 100.0, -0.021, Verdict.FAIL),
        (None, 100.0, None, Verdict.ABSENT),
        (1.0, None, None, Verdict.ABSENT),
        (1.0, 0.0, None, Verdict.ABSENT),
    ],
)
def test_a_share_is_judged_on_both_sides_of_zero(
    ours: float | None, theirs: float | None, difference: float | None, verdict: Verdict
) -> None:
    judged = relative(ours, theirs, 0.0201)
    assert judged.verdict is verdict
    assert judged.difference == (None if difference is None else pytest.approx(difference))


def test_a_difference_in_seconds_is_judged_in_seconds() -> None:
    assert absolute(3.7e-6, 5.0e-6, 2e-6) == (pytest.approx(-1.3e-6), Verdict.PASS)
    assert absolute(3.7e-6, 6.0e-6, 2e-6).verdict is Verdict.FAIL
    assert absolute(0.0, 1e-6, 2e-6).verdict is Verdict.PASS, "no time at all is a figure"
    assert absolute(None, 5.0e-6, 2e-6).verdict is Verdict.ABSENT


def test_what_should_be_small_may_reach_its_limit() -> None:
    assert at_most(0.5, 0.5) is Verdict.PASS
    assert at_most(0.51, 0.5) is Verdict.FAIL
    assert at_most(None, 0.5) is Verdict.ABSENT


def test_a_spread_is_of_the_extremes() -> None:
    assert spread([0.915, 0.923, 0.918]) == pytest.approx(0.923 / 0.915 - 1)
    assert spread([1.0]) is None
    assert spread([0.0, 1.0]) is None


def test_every_pair_has_both_sides_and_the_first_changes() -> None:
    assert list(turns(3)) == [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1)]


def test_the_list_has_twenty_different_products() -> None:
    assert len(TWENTY) == len(set(TWENTY)) == 20
    assert {gemm.format for gemm in TWENTY} == {"bf16", "fp16", "fp8_e4m3", "int8", "tf32", "fp32", "fp64"}


def test_a_tiny_product_keeps_small_sizes() -> None:
    assert square("bf16", 8192).scaled(tiny=True) == square("bf16", 128)
    assert Gemm("bf16", 1, 512, 8192).scaled(tiny=True) == Gemm("bf16", 1, 16, 128)
    assert square("bf16", 8192).scaled(tiny=False) == square("bf16", 8192)


def test_rows_are_on_disk_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "tried.json"
    record = Record("tried", path, {"tiny": False})
    record.add(row("first", Verdict.PASS, "a note"))
    record.keep("ncu", "its table")
    halfway = Record.load(path)
    assert (halfway.rows, halfway.raw, halfway.finished) == (record.rows, {"ncu": "its table"}, False)
    record.finish()
    assert Record.load(path).finished
    assert json.loads(path.read_text())["rows"][0]["verdict"] == "pass"
    assert [each.name for each in tmp_path.iterdir()] == ["tried.json"]


def test_a_table_has_its_columns_in_line_and_its_notes_once() -> None:
    record = Record("tried", about={"tiny": True})
    for name in "abcd":
        record.add(row(f"case {name}", Verdict.ABSENT, "no peer"))
    record.add(Row("longest of all", ("12345 us", "-"), Verdict.FAIL, {}, "slow"))
    lines = render(record, "what is tried", PART.headings, ("foot",)).splitlines()
    assert lines[0] == "tried: what is tried (did not finish) (tiny: the figures mean nothing)"
    assert len({line.index("absent") for line in lines[2:6]}) == 1
    assert lines[6] == "longest of all  12345 us       -    fail"
    assert lines[7:] == ["  4 rows: no peer", "  longest of all: slow", "  foot", "tried: 1 fail, 4 absent"]


def test_a_record_without_rows_has_a_table_too() -> None:
    assert render(Record("tried"), "x", PART.headings).endswith("tried: nothing")


def test_what_has_no_figure_is_a_dash() -> None:
    assert (number(None), percent(None)) == ("-", "-")
    assert (number(1.357e-3, 1e6), percent(-0.0123)) == ("1357", "-1.23%")


def test_a_limit_counts_only_where_figures_mean_something() -> None:
    over, broken = Record("a"), Record("b", about={"tiny": True})
    over.add(row("x", Verdict.FAIL))
    assert status([over]) == 1
    over.about["tiny"] = True
    assert status([over]) == 0
    broken.add(row("x", Verdict.FAILED))
    assert status([over, broken]) == 1
    assert tally(broken) == "b: 1 failed"
