"""The JSON of nccl-tests: whole, killed, unchecked, with several devices a process and with single iterations."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.cli import main
from suite.collectives.names import Op
from suite.importers.json_stream import documents
from suite.importers.read import read_collectives
from suite.importers.rows import Checked, CollectiveLog, LogStatus
from tests.importers.fixtures import text

WHOLE = text("constructed/nccl_tests_v3_two_ranks.json")
GB = 1e9


def only(written: str) -> CollectiveLog:
    (log,) = read_collectives(written)
    return log


def changed(**values: Any) -> dict[str, Any]:
    return json.loads(WHOLE) | values


def test_a_whole_document_is_read() -> None:
    log = only(WHOLE)
    last = log.placed(False)[-1]
    assert (log.op, log.ranks, log.hosts, log.library_version) == (Op.ALL_REDUCE, 2, 2, "2.30.7")
    assert [row.size_bytes for row in log.placed(True)] == [8, 128, 2048, 32768, 524288, 8388608, 134217728]
    assert (last.busbw_bytes_s, last.time_s) == (pytest.approx(22.860863 * GB), pytest.approx(5871.07e-6))
    assert (last.root, last.redop, last.format, last.wrong) == (-1, "sum", "fp32", 0)
    assert log.average_busbw_bytes_s == pytest.approx(5.954203 * GB)
    assert (log.status, log.warnings, log.out_of_bounds) == (LogStatus.COMPLETE, (), 0)


@pytest.mark.parametrize(("name", "value"), [("size", "xsum"), ("count", None), ("root", "1.5")])
def test_a_row_with_a_word_where_a_number_must_be_is_dropped(name: str, value: Any) -> None:
    first, *others = json.loads(WHOLE)["results"]
    assert name in first
    log = only(json.dumps(changed(results=[{**first, name: value}, *others])))
    assert log.rows == only(WHOLE).rows[2:]
    dropped = "2 of 14 rows lack a number or have a word where one must be, dropped"
    assert (log.status, log.warnings) == (LogStatus.PARTIAL, (dropped,))


def test_a_killed_run_has_its_complete_sizes_and_is_aborted() -> None:
    log = only(text("constructed/nccl_tests_v3_killed_run.json"))
    assert [row.size_bytes for row in log.placed(False)] == [8, 128, 2048, 32768, 524288]
    assert (log.status, log.average_busbw_bytes_s) == (LogStatus.ABORTED, None)
    assert log.warnings == ("the document has no end: the run was killed, 1 size without a timing dropped",)


@given(share=st.floats(0.5, 0.999))
@settings(deadline=None)
def test_a_document_cut_anywhere_gives_a_beginning_of_its_rows(share: float) -> None:
    log = only(WHOLE[: int(share * len(WHOLE))])
    assert log.rows == only(WHOLE).rows[: len(log.rows)]
    assert log.status is LogStatus.ABORTED


def test_null_is_unchecked_and_not_correct() -> None:
    document = changed()
    document["results"][0]["out_of_place"]["nwrong"] = None
    document["results"][1]["in_place"]["nwrong"] = 3.0
    log = only(json.dumps(document))
    assert (log.rows[0].wrong, log.rows[0].checked) == (None, Checked.UNCHECKED)
    assert (log.rows[3].wrong, log.rows[3].checked) == (3, Checked.BAD)
    assert "1 of 14 rows were not checked" in log.warnings
    assert any("wrong results: 1 of 14" in warning for warning in log.warnings)


@pytest.mark.parametrize("value", [5, [1], "x", None, {"0": 1}])
@pytest.mark.parametrize("name", ["config", "results", "out_of_bounds", "average_bus_bandwidth", "errors", "args", "end_time"])
def test_a_member_of_another_type_is_as_good_as_none(name: str, value: Any) -> None:
    log = only(json.dumps(changed(**{name: value})))
    assert log.rows == () if name == "results" else {row.checked for row in log.rows} == {Checked.GOOD}
    if name == "config":
        assert (log.ranks, log.devices) == (None, ())


@pytest.mark.parametrize(
    "config", [{"devices": 7}, {"devices": [7, None]}, {"nthreads": 10**9}, {"ngpus": "many"}, {"nthreads": -1}], ids=str
)
def test_devices_that_cannot_be_are_no_ranks(config: dict[str, Any]) -> None:
    log = only(json.dumps(changed(config={**json.loads(WHOLE)["config"], **config})))
    assert log.ranks is None
    assert len(log.rows) == 14


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_not_finite_is_no_number(number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = WHOLE
    for cell in ('"bus_bw":0.000457', '"time":18.250000', '"alg_bw":0.106279', '"nwrong":0.000000'):
        assert cell in written
        written = written.replace(cell, f"{cell.partition(':')[0]}:{number}", 1)
    first, *_ = only(written).rows
    assert (first.size_bytes, first.busbw_bytes_s, first.wrong, first.checked) == (8, None, None, Checked.UNCHECKED)
    (tmp_path / "all.json").write_text(written)
    assert main(["import", str(tmp_path / "all.json"), "--store", str(tmp_path / "s.db")]) == 0
    assert "1 row without a time left out" in capsys.readouterr().err


def test_a_truth_value_is_no_count_of_wrong_elements() -> None:
    first, *_ = json.loads(WHOLE)["results"]
    log = only(json.dumps(changed(results=[{**first, "in_place": {**first["in_place"], "nwrong": False}}])))
    assert [(row.in_place, row.checked) for row in log.rows] == [(False, Checked.GOOD), (True, Checked.UNCHECKED)]


@pytest.mark.parametrize(
    "told",
    [{"out_of_bounds": {"count": 2}}, {"config": {**json.loads(WHOLE)["config"], "validation": 0}}],
    ids=["bounds", "off"],
)
def test_rows_that_the_rest_of_a_document_speaks_against_are_not_taken_for_right(told: dict[str, Any]) -> None:
    log = only(json.dumps(changed(**told)))
    assert {row.checked for row in log.rows} == {Checked.UNCHECKED}


def test_a_document_that_stands_there_twice_is_one_run() -> None:
    log = only(f"{WHOLE}\n{WHOLE}")
    assert len(log.rows) == 14
    assert log.warnings[-1] == "the same run stands in the text twice"


def test_a_killed_run_hides_no_other_that_follows_it() -> None:
    killed = text("constructed/nccl_tests_v3_killed_run.json")
    first, second = read_collectives(f"{killed.rstrip()}\n{WHOLE}")
    assert (first.rows, first.status) == (only(killed).rows, LogStatus.ABORTED)
    assert (second.rows, second.status) == (only(WHOLE).rows, LogStatus.COMPLETE)


def test_a_process_with_several_devices_lists_its_first() -> None:
    document = changed()
    document["config"] |= {"ngpus": 4}
    document["config"]["devices"][1] |= {"rank": 4}
    assert only(json.dumps(document)).ranks == 8


def test_one_rank_has_no_bandwidth() -> None:
    document = changed()
    document["config"]["devices"] = document["config"]["devices"][:1]
    log = only(json.dumps(document))
    assert {(row.algbw_bytes_s, row.busbw_bytes_s) for row in log.rows} == {(None, None)}
    assert any("a single rank" in warning for warning in log.warnings)


def test_a_half_that_was_not_run_has_no_row_and_single_iterations_stand_beside_theirs() -> None:
    document = changed()
    document["results"][0]["out_of_place"] = None
    document["results"][1]["in_place_per_iter"] = {
        "min_us": 17.0,
        "max_us": 30.0,
        "p99_us": 29.0,
        "cv_pct": 12.5,
        "avg_us": 20.0,
    }
    log = only(json.dumps(document))
    assert [row.size_bytes for row in log.placed(False)][:1] == [128]
    spread = log.placed(True)[1].iterations
    assert spread is not None
    assert (spread.max_s, spread.cv) == (pytest.approx(30e-6), pytest.approx(0.125))


def test_time_of_the_cpu_says_so() -> None:
    document = changed()
    half = document["results"][0]["in_place"]
    half["cpu_time"] = half.pop("time")
    row = only(json.dumps(document)).placed(True)[0]
    assert (row.time_s, row.extra) == (pytest.approx(16.41e-6), (("time", "cputime"),))


def test_errors_are_told_and_an_empty_one_is_none() -> None:
    assert only(json.dumps(changed(errors=["", "unhandled system error"]))).warnings == (
        "the tool reports: unhandled system error",
    )


def test_documents_follow_each_other_among_other_lines() -> None:
    found = list(documents('WARNING: no group\n[not json]\n[1, 2]\n{"a": {"b": []}}{"c": 1}\ntrailing\n'))
    assert [(each.value, each.closed) for each in found] == [([1, 2], True), ({"a": {"b": []}}, True), ({"c": 1}, True)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
    )
)
@settings(deadline=None, max_examples=40)
def test_a_list_of_anything_is_what_json_says_it_is(value: Any) -> None:
    (found,) = documents(json.dumps([value]))
    assert found.value == [value]
    assert found.closed
