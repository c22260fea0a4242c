"""Logs that are cut, interleaved, doubled or tagged give what is there, and never a row that was not."""

import time
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.collectives.names import Op
from suite.errors import UsageError
from suite.importers.nccl_tests_text import read_nccl_tests
from suite.importers.read import read_collectives
from suite.importers.results import results
from suite.importers.rows import Checked, CollectiveRow, LogStatus
from suite.importers.text_lines import lines_by_process
from suite.outcome import Outcome
from tests.importers.fixtures import text
from tests.pace import at_reference_pace_s

GOOD = text("nccl/all_reduce_8xGH200_good.log")
WIDE = text("constructed/nccl_tests_per_iteration_columns.log")
OLD = text("nccl/reduce_8xA100_redop_and_root.log")
HEADERLESS = text("nccl/step_bytes_tail_headerless.log")
INFO = "node01:4100:4100 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}"


def numbers(rows: tuple[CollectiveRow, ...]) -> list[tuple[object, ...]]:
    """A row less what the whole table says of it."""
    return [(row.size_bytes, row.in_place, row.time_s, row.wrong, row.error_delta, row.iterations) for row in rows]


def rows_of(damaged: str) -> list[tuple[object, ...]]:
    return numbers(tuple(chain.from_iterable(log.rows for log in read_nccl_tests(damaged))))


@pytest.mark.parametrize("whole", [GOOD, WIDE, OLD, HEADERLESS], ids=["good", "wide", "old", "headerless"])
@given(share=st.floats(0, 1))
@settings(deadline=None, max_examples=40)
def test_a_text_cut_anywhere_gives_the_rows_before_the_cut(whole: str, share: float) -> None:
    cut = whole[: int(share * len(whole))]
    assert rows_of(cut) == rows_of(whole)[: 2 * sum(line in whole.splitlines() and is_row(line) for line in cut.splitlines())]


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_last_cell_that_lost_its_end_is_no_cell(lost: int) -> None:
    """Cut there, 0.70 % would read as 0.7 %, 0.00 % or none, and 1234 wrong elements as 123."""
    lines = WIDE.splitlines(keepends=True)
    rows = [index for index, line in enumerate(lines) if is_row(line)]
    whole = "".join(lines[: rows[-1] + 1])
    assert len(rows_of(whole)) == 8
    assert rows_of(whole[: -1 - lost]) == rows_of(whole)[:6]
    wrong = "".join(HEADERLESS.splitlines(keepends=True)[:2]).removesuffix("   0\n") + "1234\n"
    assert [row[3] for row in rows_of(wrong)] == [0, 0, 0, 1234]
    assert rows_of(wrong[: -1 - lost]) == rows_of(wrong)[:2]


def is_row(line: str) -> bool:
    return len(line.split()) > 11 and line.split()[0].isdigit()


@given(at=st.lists(st.integers(0, len(GOOD) - 1), max_size=6))
@settings(deadline=None, max_examples=40)
def test_messages_between_lines_change_nothing(at: list[int]) -> None:
    lines = GOOD.splitlines(keepends=True)
    for index in sorted((position % len(lines) for position in at), reverse=True):
        lines.insert(index, INFO + "\n")
    assert rows_of("".join(lines)) == rows_of(GOOD)


@pytest.mark.parametrize("column", [59, 66, 72, 84, 100])
def test_a_row_that_messages_run_into_is_put_together_again(column: int) -> None:
    lines = GOOD.splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if line.split()[0] == "1048576")
    cut = max(index for index in range(column) if lines[at][index] == " ")
    lines[at : at + 1] = [lines[at][:cut] + INFO + "\n", INFO + "\n", lines[at][cut:]]
    (log,) = read_nccl_tests("".join(lines))
    assert numbers(log.rows) == rows_of(GOOD)
    assert "1 row split by messages, put together again" in log.warnings
    assert log.status is LogStatus.COMPLETE


def test_the_parts_of_rows_in_a_debug_log_are_not_rows() -> None:
    (log,) = read_nccl_tests(text("tuning/tuning_2.21_splits_table_row.log"))
    assert (log.rows, log.status) == ((), LogStatus.EMPTY)
    assert "2 rows cut, dropped" in log.warnings


def test_a_text_that_stands_there_twice_is_one_run() -> None:
    (log,) = read_nccl_tests(GOOD + GOOD)
    assert len(log.rows) == 50
    assert log.warnings[-1] == "the same run stands in the text twice"


def test_two_runs_one_after_the_other_are_two() -> None:
    first, second = read_nccl_tests(GOOD + text("rccl/all_reduce_R9700_two_nodes.log"))
    assert (first.ranks, second.ranks) == (8, 2)
    assert (first.status, second.status) == (LogStatus.COMPLETE, LogStatus.COMPLETE)


@pytest.mark.parametrize("tag", ["[1,0]<stdout>:", "[0] ", "0: "])
def test_a_launchers_tags_are_taken_off(tag: str) -> None:
    tagged = "".join(tag + line for line in GOOD.splitlines(keepends=True))
    assert rows_of(tagged) == rows_of(GOOD)


def test_tables_of_several_processes_are_several_runs() -> None:
    own = GOOD.splitlines(keepends=True)
    other = [line.replace("  170.3 ", "  170.4 ") for line in own]
    both = "".join(
        chain.from_iterable(zip((f"[1,0]<stdout>:{a}" for a in own), (f"[1,1]<stdout>:{b}" for b in other), strict=True))
    )
    logs = read_nccl_tests(both)
    assert [len(log.rows) for log in logs] == [50, 50]
    assert all("several processes print tables" in log.warnings[-1] for log in logs)


def test_a_line_printed_twice_is_one_row() -> None:
    line = next(each for each in GOOD.splitlines(keepends=True) if each.split()[0] == "1048576")
    (log,) = read_nccl_tests(GOOD.replace(line, line + line))
    assert len(log.rows) == 50
    assert "1 row printed twice, kept once" in log.warnings


def test_a_table_without_a_heading_that_stands_there_twice_is_one_table() -> None:
    (once,), (log,) = read_nccl_tests(HEADERLESS), read_nccl_tests(HEADERLESS + HEADERLESS)
    assert log.rows == once.rows
    assert "6 rows printed twice, kept once" in log.warnings


@pytest.mark.parametrize("lost", range(1, 9))
def test_a_size_that_lost_its_first_digits_is_no_size(lost: int) -> None:
    whole = HEADERLESS.lstrip()
    (log,) = read_nccl_tests(whole[lost:])
    assert numbers(log.rows) == rows_of(whole)[2:]


def test_a_command_that_lost_its_beginning_names_no_other_operation() -> None:
    log_text = text("nccl/gb10_version_with_git_hash.log")
    (log,) = read_nccl_tests(log_text[log_text.index("reduce_perf") :])
    assert (log.op, log.op_source) == (Op.ALL_REDUCE, "columns")
    assert "named reduce, but the columns are those of all_reduce" in log.warnings


def test_a_mark_of_the_byte_order_hides_nothing() -> None:
    for name in ("nccl/rows_headerless_8ranks.log", "constructed/nccl_tests_v3_two_ranks.json"):
        plain = read_collectives(text(name))
        assert read_collectives("\ufeff" + text(name)) == plain


@pytest.mark.parametrize(
    ("said", "instead", "why"),
    [
        ("values : 0 OK", "values : 3 FAILED", "the footer counts 3 values out of bounds, and no row says where"),
        ("validation: 1", "validation: 0", "checking was off by the options"),
    ],
)
def test_rows_that_the_rest_of_the_text_speaks_against_are_not_taken_for_right(said: str, instead: str, why: str) -> None:
    assert said in GOOD
    (log,) = read_nccl_tests(GOOD.replace(said, instead))
    assert {(row.checked, row.wrong) for row in log.rows} == {(Checked.UNCHECKED, None)}
    assert any(warning.startswith(why) for warning in log.warnings)
    assert {imported.measurement.outcome for imported in results(log)} == {Outcome.UNCHECKED}


def test_bandwidths_of_other_ranks_than_are_listed_are_told() -> None:
    (log,) = read_nccl_tests(text("nccl/all_reduce_GB200_two_racks.log"))
    assert log.ranks == 144
    assert "the device list is of 144 ranks, and bandwidths of some rows are those of 128" in log.warnings


def test_wrong_results_are_wrong() -> None:
    line = next(each for each in GOOD.splitlines(keepends=True) if each.split()[0] == "1048576")
    head, tail = line.rstrip().rsplit("0", 1)
    (log,) = read_nccl_tests(GOOD.replace(line, f"{head}7{tail}\n").replace("values : 0 OK", "values : 1 FAILED"))
    assert [row.wrong for row in log.rows if row.size_bytes == 1048576] == [0, 7]
    assert "wrong results: 1 of 50 rows, 1 values out of bounds" in log.warnings


EXCERPT = "  33554432  8388608  float  sum  {root}  {time}  968.11  1815.2  0  34.10  984.0  1845.1  0\n"


@pytest.mark.parametrize("cell", [{"root": "xsum"}, {"root": "1.5"}, {"time": "34.66*"}, {"root": "9" * 5000}])
def test_a_row_with_a_word_where_a_number_must_be_is_dropped(cell: dict[str, str]) -> None:
    """An excerpt's root column was read as a number whatever stood in it, and so was a time with the mark of an error."""
    whole = EXCERPT.format(root="-1", time="34.66")
    assert len(rows_of(whole)) == 2
    damaged = EXCERPT.format(**{"root": "-1", "time": "34.66", **cell})
    assert rows_of(damaged) == []
    assert rows_of(whole + damaged) == rows_of(whole)


@pytest.mark.parametrize("name", ["algbw", "busbw", "type"])
def test_a_heading_that_lost_a_name_is_none(name: str) -> None:
    """Its rows were read for a column that was not there."""
    assert rows_of(GOOD.replace(name, "x" * len(name), 1)) in ([], rows_of(GOOD))


def test_numbers_too_long_to_be_read_are_no_sizes() -> None:
    assert rows_of(EXCERPT.format(root="-1", time="34.66").replace("33554432", "9" * 5000)) == []
    long = GOOD.replace("nGpus 1", f"nGpus {'9' * 5000}").replace("Avg bus bandwidth    : ", "Avg bus bandwidth    : 1.2.3-")
    assert rows_of(long) == rows_of(GOOD)


@given(st.text())
@settings(deadline=None, max_examples=40)
def test_any_text_is_read_or_refused_in_words(anything: str) -> None:
    if not read_nccl_tests(anything) and not anything.lstrip().startswith(("{", "[")):
        with pytest.raises(UsageError, match="holds no run of nccl-tests"):
            read_collectives(anything, "a.log")


LONG = ("a", "a1", "[1]", "a:1:1 [0] ", "[", "{", "{a\n", "[rank0]: a\n")


@pytest.mark.paced
def test_a_long_text_that_is_no_log_costs_no_more_than_its_length() -> None:
    """A name tried from each of its letters took a line of 80000 of them 40 s; nested brackets were a traceback."""

    def refuse_s() -> float:
        began = time.process_time()
        for unit in LONG:
            with pytest.raises(UsageError, match="holds no run of nccl-tests"):
                read_collectives(unit * 40_000, "a.log")
        return time.process_time() - began

    assert at_reference_pace_s(refuse_s, runs=1) < 5


@pytest.mark.parametrize("host", ["n1", "a[b", "n-1.x"])
@pytest.mark.parametrize(
    ("before", "own"), [("", ""), ("x", "x"), ("a]", ""), ("7 ", ""), ("1[1,0]<stdout>:", "[1,0]<stdout>:"), ("[0] ", "[0] ")]
)
def test_a_message_begins_where_the_name_of_its_host_or_its_tag_does(before: str, own: str, host: str) -> None:
    message = f"{host}:41:42 [0] NCCL INFO Channel"
    ((line,),) = lines_by_process(f"row {before}{message}\n").values()
    assert line.message == own + message


@pytest.mark.parametrize("content", [b"\x7fELF\2\1\1" + bytes(4000) + b"all_reduce" * 99, bytes(range(128, 256)) * 99])
def test_what_is_no_text_is_refused_before_it_is_read(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.importers.read._read", lambda text, known: pytest.fail("it was read"))
    with pytest.raises(UsageError, match=r"^python3 holds no run of .*characters are no text; give .* unpacked") as told:
        read_collectives(content.decode("utf-8", errors="replace"), "python3")
    assert str(told.value).isprintable()


def test_garbage_at_the_end_of_a_log_does_not_make_it_none() -> None:
    (log,) = read_collectives(GOOD * 30 + "\0" * 4096, "all_reduce.log")
    assert len(log.rows) == 50
