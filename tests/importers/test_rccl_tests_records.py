"""The records of rccl-tests: a published JSON form, and the CSV as its writer in ROCm/rocm-systems makes it.

No public sample of the CSV exists: the texts here follow ``Reporter::writeFile`` of ``projects/rccl-tests/src/common.cu``
(2026), and the form before ROCm/rccl-tests#140, which has blanks after its separators; their values are invented.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.collectives.names import Op
from suite.importers.read import read_collectives
from suite.importers.rows import Checked, CollectiveLog, LogStatus
from tests.importers.fixtures import text

LINES = text("rccl/constructed_output_jsonlines.json")
GB = 1e9
# With MPI the writer names 13 columns and writes 14.
CSV_MPI = """\
numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong
0,"AllReduce",2,16,8,1,1024,"float","sum",0,17.200000,0.059535,0.111628,"0"
0,"AllReduce",2,16,8,1,1024,"float","sum",1,16.900000,0.060592,0.113610,"N/A"
0,"AllReduce",2,16,8,1,1073741824,"float","sum",0,5890.200000,182.292931,341.799246,"0"
0,"AllReduce",2,16,8,1,1073741824,"float","sum",1,5874.800000,182.770788,342.695228,"12"
"""
CSV_ONE_PROCESS = """\
numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong
0,"AllGather",8,8388608,"bfloat16","none",0,88.100000,95.216889,83.314778,"0"
"""


def only(written: str) -> CollectiveLog:
    (log,) = read_collectives(written)
    return log


def test_an_object_a_line_is_read() -> None:
    log = only(LINES)
    assert (log.tool, log.op, log.ranks, log.status) == ("rccl-tests", Op.ALL_REDUCE, 8, LogStatus.COMPLETE)
    assert len(log.rows) == 10
    assert log.placed(False)[-1].busbw_bytes_s == pytest.approx(319.012630 * GB)
    assert log.placed(False)[-1].time_s == pytest.approx(5890.2e-6)


def test_a_string_that_says_not_available_is_unchecked() -> None:
    fifth = only(LINES).rows[4]
    assert (fifth.size_bytes, fifth.in_place, fifth.wrong, fifth.checked) == (1048576, False, None, Checked.UNCHECKED)
    assert only(LINES).warnings == ("1 of 10 rows were not checked",)


@pytest.mark.parametrize(("name", "cell"), [("size", "xsum"), ("time", "34.6*"), ("ranks", "many"), ("size", "9" * 5000)])
def test_a_record_with_a_word_where_a_number_must_be_is_dropped(name: str, cell: str) -> None:
    first, *others = map(json.loads, LINES.splitlines())
    assert name in first
    log = only("\n".join(map(json.dumps, ({**first, name: cell}, *others))))
    assert log.rows == only(LINES).rows[1:]
    assert (log.status, log.warnings[0]) == (LogStatus.PARTIAL, "1 record cut, dropped")


def test_one_list_of_records_is_the_same() -> None:
    records = [json.loads(line) for line in LINES.splitlines()]
    assert only(json.dumps(records, indent=1)).rows == only(LINES).rows


def test_records_of_2024_without_mpi_are_read() -> None:
    log = only(
        '{"#wrong":"0","algBw":0.05337739748698796,"busBw":0.08006609623048194,"gpus":4,"inPlace":0,"name":"AllReduce",'
        '"redop":"sum","size":1024,"time":19.184150000000002,"type":"float"}\n'
    )
    assert (log.ranks, log.rows[0].checked) == (4, Checked.GOOD)
    assert log.rows[0].time_s == pytest.approx(19.18415e-6)


def test_a_list_without_an_end_is_aborted() -> None:
    records = [json.loads(line) for line in LINES.splitlines()]
    log = only(json.dumps(records)[:-30])
    assert len(log.rows) == 9
    assert log.status is LogStatus.ABORTED


def test_csv_built_with_mpi_has_a_column_that_its_heading_does_not_name() -> None:
    log = only(CSV_MPI)
    assert (log.op, log.ranks, log.status) == (Op.ALL_REDUCE, 16, LogStatus.COMPLETE)
    assert [(row.size_bytes, row.in_place) for row in log.rows] == [(1024, False), (1024, True), (2**30, False), (2**30, True)]
    assert [row.wrong for row in log.rows] == [0, None, 0, 12]
    assert [row.checked for row in log.rows] == [Checked.GOOD, Checked.UNCHECKED, Checked.GOOD, Checked.BAD]
    assert log.rows[2].busbw_bytes_s == pytest.approx(341.799246 * GB)


def test_csv_with_a_heading_that_names_all_is_the_same() -> None:
    assert only(CSV_MPI.replace(",ranks,", ",nodes,ranks,")).rows == only(CSV_MPI).rows


def test_csv_with_blanks_after_separators_is_the_same() -> None:
    assert only(CSV_MPI.replace(",", ", ")).rows == only(CSV_MPI).rows


def test_csv_of_one_process_counts_gpus() -> None:
    log = only(CSV_ONE_PROCESS)
    assert (log.op, log.ranks, log.rows[0].format) == (Op.ALL_GATHER, 8, "bf16")


def test_processes_with_several_gpus_are_more_ranks_than_the_record_says() -> None:
    log = only(CSV_MPI.replace(",2,16,8,1,", ",2,4,2,4,"))
    assert {row.ranks for row in log.rows if row.size_bytes == 2**30} == {16}


def test_csv_of_several_operations_is_several_logs() -> None:
    second = CSV_MPI.splitlines()[1].replace("AllReduce", "ReduceScatter")
    logs = read_collectives(f"{CSV_MPI}{second}\n")
    assert [(log.op, len(log.rows)) for log in logs] == [(Op.ALL_REDUCE, 4), (Op.REDUCE_SCATTER, 1)]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
def test_a_rate_that_is_not_finite_is_none(number: str) -> None:
    log = only(CSV_MPI.replace("0.111628", number, 1))
    assert [row.busbw_bytes_s is None for row in log.rows] == [True, False, False, False]


@pytest.mark.parametrize(
    ("doubled", "rows", "repeated"),
    [(LINES + LINES, 10, 10), (CSV_MPI + CSV_MPI.split("\n", 1)[1], 4, 4)],
    ids=["json", "csv"],
)
def test_records_that_are_there_twice_are_kept_once(doubled: str, rows: int, repeated: int) -> None:
    log = only(doubled)
    assert len(log.rows) == rows
    assert f"{repeated} records there twice, kept once" in log.warnings


@given(cut=st.integers(CSV_MPI.index("\n") + 1, len(CSV_MPI) - 1))
@settings(deadline=None)
def test_csv_cut_anywhere_gives_a_beginning_of_its_rows(cut: int) -> None:
    whole = only(CSV_MPI).rows
    written = CSV_MPI[:cut]
    if written.count("\n") == 1:
        return
    log = only(written)
    assert log.rows == whole[: written.count("\n") - 1]
    assert log.status is (LogStatus.COMPLETE if written.endswith("\n") else LogStatus.PARTIAL)
