"""Rows of other tools as stored results: evidence imported, nothing correct that was unchecked, nothing joined."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.cli import main
from suite.collectives.series import series
from suite.errors import UsageError
from suite.importers.origin import refuse_imported, was_imported
from suite.importers.read import read_collectives
from suite.importers.results import Imported, left_out, results
from suite.importers.rows import CollectiveLog
from suite.jobs.collective import CollectiveJob, CollectiveSettings
from suite.outcome import Outcome
from suite.report.document import build
from suite.report.floors import uncounted
from suite.report.markdown import render_markdown
from suite.rows import ResultRow, RunInfo
from suite.show.imported import imported_lines
from suite.show.screen import Screen
from suite.store.maintain import check
from suite.store.queries import Reader
from tests.collectives.rows import collective
from tests.importers.fixtures import DATA, text


def log_of(name: str) -> CollectiveLog:
    (found,) = read_collectives(text(name), name)
    return found


def found(name: str) -> list[Imported]:
    return list(results(log_of(name)))


def one(name: str, size: int, in_place: bool) -> Imported:
    (single,) = (
        each
        for each in found(name)
        if each.planned.case.workload.param("message_bytes") == size
        and dict(each.planned.case.switches)["in_place"] is in_place
    )
    return single


def test_a_checked_row_is_ok_with_the_printed_time_over_its_iterations() -> None:
    planned, measured = one("nccl/all_reduce_8xGH200_good.log", 134217728, False)
    workload = planned.case.workload
    assert (workload.job, workload.format, planned.case.backend) == ("collective", "fp32", "nccl-tests")
    assert dict(workload.params) == {"op": "all_reduce", "message_bytes": 134217728, "world_size": 8}
    assert measured.outcome is Outcome.OK
    assert measured.samples is not None
    assert measured.samples.durations_ns[0] / measured.samples.launches == pytest.approx(1916.4e3)
    assert measured.samples.count == 1
    assert measured.interval_s is None
    assert planned.work.compulsory_bytes == 134217728 * 7 // 4  # busbw's: 122.57 GB/s of 70.04
    assert measured.description["printed_busbw_bytes_s"] == pytest.approx(122.57e9)
    assert measured.description["wrong"] == 0


def test_what_was_not_checked_is_unchecked_and_its_count_stays_null() -> None:
    every = found("nccl/all_reduce_8xA100_info_line_in_table.log")
    assert len(every) == 64  # 34 rows of both halves, less two of size 0
    assert {each.measurement.outcome for each in every} == {Outcome.UNCHECKED}
    assert {each.measurement.description["wrong"] for each in every} == {None}
    assert list(left_out(log_of("nccl/all_reduce_8xA100_info_line_in_table.log"))) == [
        "4 rows of size 0 left out: they move nothing"
    ]
    mixed = found("nccl/alltoall_16ranks_mca_noise.log")
    by_place = {(dict(each.planned.case.switches)["in_place"], each.measurement.outcome) for each in mixed}
    assert by_place == {(False, Outcome.OK), (True, Outcome.UNCHECKED)}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"time_s": -801.4e-6}, "1 row of a time that no iteration takes left out"),
        ({"time_s": 0.0}, "1 row of a time that no iteration takes left out"),
        ({"time_s": 1e308}, "1 row of a time that no iteration takes left out"),
        ({"time_s": math.nan}, "1 row of a time that no iteration takes left out"),
        ({"size_bytes": -8}, "1 row of a size that no message has left out"),
        ({"size_bytes": 10**30}, "1 row of a size that no message has left out"),
        ({"time_s": None}, "1 row without a time left out"),
    ],
)
def test_a_row_that_cannot_be_costs_itself_alone(fields: dict[str, Any], said: str) -> None:
    """A minus from a damaged line once stored a negative time, and the check of the store took the whole run for damaged."""
    whole = log_of("nccl/all_reduce_8xGH200_good.log")
    first, *others = whole.rows
    damaged = replace(whole, rows=(replace(first, **fields), *others))
    assert len(list(results(damaged))) == len(list(results(whole))) - 1
    assert said in left_out(damaged)


def test_a_wrong_result_has_no_time_that_is_shown() -> None:
    bad = text("nccl/all_reduce_8xGH200_good.log").replace("122.57      0 ", "122.57     12 ")
    (log,) = read_collectives(bad, "all_reduce.log")
    wrong = [each for each in results(log) if each.measurement.outcome is Outcome.INCORRECT]
    assert [each.measurement.reason for each in wrong] == ["nccl-tests found 12 wrong elements"]


def test_a_single_rank_has_no_bandwidth() -> None:
    planned, measured = one("nccl/alltoall_one_gpu_meaningless.log", 33554432, False)
    assert (planned.work.compulsory_bytes, planned.work.pipe) == (0, None)
    assert measured.reason == "a single rank: nothing crossed a link"


def test_an_operation_or_a_world_that_is_not_named_is_not_guessed() -> None:
    without_op = found("nccl/very_old_milliseconds.log")[0].planned.case.workload
    assert without_op.param("op") == "unknown"
    without_ranks = found("nccl/all_reduce_error_1e-06_truncated.log")[0].planned
    assert "world_size" not in dict(without_ranks.case.workload.params)
    assert without_ranks.work.compulsory_bytes == 0


def test_rows_that_are_there_again_are_kept_and_numbered() -> None:
    """As with ``-N 2``: the same sizes a second time."""
    lines = text("nccl/all_reduce_8xGH200_good.log").splitlines(keepends=True)
    (last,) = (line for line in lines if line.split()[:1] == ["134217728"])
    twice = "".join([*lines, last.replace("1916.4", "1920.0")])
    (log,) = read_collectives(twice, "all_reduce.log")
    cases = [each.planned.case for each in results(log) if each.planned.case.workload.param("message_bytes") == 134217728]
    assert [dict(case.switches).get("repeat") for case in cases] == [None, None, 2, 2]
    assert len({case.key for case in cases}) == 4


def test_the_spread_of_iterations_is_kept() -> None:
    _, measured = one("constructed/nccl_tests_per_iteration_columns.log", 8, False)
    assert measured.samples is not None
    assert measured.samples.details["iteration_max_s"] == pytest.approx(2210.40e-6)
    assert measured.samples.details["cv"] == pytest.approx(1.312)


def test_no_case_is_one_that_a_backend_here_has() -> None:
    job, settings = CollectiveJob(), CollectiveSettings(world_sizes=[8], sizes=["128MiB"], ops=["all_reduce"])
    imported = {each.planned.case.workload.key for each in found("nccl/all_reduce_8xGH200_good.log")}
    assert not imported & {workload.key for workload in job.workloads(settings)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files: checked, unchecked, killed, and two processes that each ran on its own."""
    folder = tmp_path_factory.mktemp("imported")
    table = text("nccl/all_reduce_2xGH200_wide_columns.log")
    doubled = "".join(f"[1,{rank}]<stdout>:{line}\n" for rank in range(2) for line in _slower(table, rank).splitlines())
    (folder / "doubled.log").write_text(doubled)
    names = (
        "nccl/all_reduce_8xGH200_good.log",
        "nccl/broadcast_8xA100_root_no_redop.log",
        "constructed/nccl_tests_v3_killed_run.json",
    )
    files = [*(str(DATA / name) for name in names), str(folder / "doubled.log")]
    assert main(["import", *files, "--store", str(folder / "s.db")]) == 0
    return folder / "s.db"


def _slower(table: str, rank: int) -> str:
    """The second process's largest message takes longer, so that it is another run and no copy."""
    return table.replace("5871.07", "5871.17") if rank else table


def test_every_run_of_a_file_is_a_run_of_the_store(store: Path) -> None:
    with Reader.open(str(store)) as reader:
        runs = sorted(reader.runs(), key=lambda run: (run.config["imported"]["file"], run.config["imported"]["index"]))
        notes = {run.config["imported"]["file"]: run.note for run in runs}
        outcomes = {run.config["imported"]["file"]: reader.counts(run.run) for run in runs}
        rows = reader.results()
    assert [run.config["imported"]["file"] for run in runs] == [
        "all_reduce_8xGH200_good.log", "broadcast_8xA100_root_no_redop.log", "doubled.log", "doubled.log",
        "nccl_tests_v3_killed_run.json",
    ]  # fmt: skip
    assert {row.evidence for row in rows} == {"imported"}
    assert outcomes["all_reduce_8xGH200_good.log"] == {"ok": 50}
    assert outcomes["broadcast_8xA100_root_no_redop.log"] == {"unchecked": 64}
    assert outcomes["nccl_tests_v3_killed_run.json"] == {"ok": 10}
    assert "each ran on its own" in notes["doubled.log"]
    assert "the run was killed" in notes["nccl_tests_v3_killed_run.json"]
    assert check(str(store)) == []


def test_rates_are_those_that_were_printed(store: Path) -> None:
    with Reader.open(str(store)) as reader:
        (row,) = (row for row in reader.results() if _is(row, "all_reduce", 134217728, 8, in_place=True))
    assert row.bytes_s == pytest.approx(123.11e9, rel=1e-3)
    assert (row.bound, row.hardware, row.fractions.spec, row.interval_s) == ("link", None, None, None)


def test_nothing_of_a_host_is_kept(store: Path) -> None:
    content = store.read_bytes()
    logs = text("nccl/all_reduce_8xGH200_good.log") + text("nccl/broadcast_8xA100_root_no_redop.log")
    hosts = {line.split(" on ")[1].split()[0] for line in logs.splitlines() if " on " in line and "device" in line}
    assert hosts
    assert not [host for host in hosts if host.encode() in content]


def test_a_file_is_imported_once(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Reader.open(str(store)) as reader:
        before = len(reader.runs())
        (run,) = (each.run for each in reader.runs() if each.config["imported"]["file"] == "all_reduce_8xGH200_good.log")
    assert main(["import", str(DATA / "nccl/all_reduce_8xGH200_good.log"), "--store", str(store)]) == 0
    assert f"imported before, as run {run}" in capsys.readouterr().out
    with Reader.open(str(store)) as reader:
        assert len(reader.runs()) == before


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nccl/abort_before_table_8ranks.log", "holds no result of nccl-tests (failed): the tool reports"),
        ("nccl/warn_only_no_rows.log", "holds no result of nccl-tests (empty): different devices in one run"),
        ("rccl/ras_healthy.json", "holds no run of nccl-tests or rccl-tests"),
        ("nothing.log", "cannot be read: No such file or directory"),
    ],
)
def test_a_file_without_a_result_is_refused_and_nothing_is_stored(
    name: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(DATA / "nccl/all_reduce_8xGH200_good.log"), str(DATA / name)]
    assert main(["import", *given, "--store", str(tmp_path / "s.db")]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_is_no_log_is_said_to_hold_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines of numbers that resemble rows make no log."""
    (tmp_path / "list.txt").write_text("groceries\n  16 4 float sum\n 12 13 14 15 16 17\n")
    assert main(["import", str(tmp_path / "list.txt"), "--store", str(tmp_path / "s.db")]) == 2
    said = capsys.readouterr().err
    assert "list.txt holds no run of nccl-tests or rccl-tests (1 row cut, dropped); give what nccl-tests" in said
    assert "(empty)" not in said


def test_curves_are_of_what_was_checked_and_apart_from_what_was_measured(store: Path) -> None:
    with Reader.open(str(store)) as reader:
        curves = series([*reader.results(), collective("all_reduce", 8, 2**20, 1e-3)])
    evidence = {(curve.setting.op.value, curve.setting.evidence) for curve in curves}
    assert evidence == {("all_reduce", "imported"), ("all_reduce", "measured")}  # no broadcast: nobody looked at its results


def test_imported_results_stand_beside_measured_ones_of_the_same_message(store: Path) -> None:
    own = collective("all_reduce", 8, 134217728, 0.5)
    with Reader.open(str(store)) as reader:
        lines = list(imported_lines(reader, [own], Screen()))
        assert list(imported_lines(reader, [collective("all_reduce", 4, 134217728, 0.5)], Screen())) == []
        assert list(imported_lines(reader, [r for r in reader.results() if r.job == "collective"], Screen())) == []
    measured, imported = lines[-2:]
    assert "not compared" in lines[1]
    assert "all_reduce fp32 of 128 MiB over 8" in measured
    assert "500.0 ms" in measured
    assert "imported" in imported
    assert "nccl-tests library" in imported
    assert "123 GB/s" in imported


def test_a_report_says_that_it_was_imported_and_how_to_read_it_again(store: Path) -> None:
    with Reader.open(str(store)) as reader:
        (run,) = (each for each in reader.runs() if each.config["imported"]["file"] == "broadcast_8xA100_root_no_redop.log")
        page = render_markdown(build(reader, [run.run], with_cases=False))
    assert "some are imported" in page
    assert "0 of 64 cases verified and timed" in page
    assert "roofbench import broadcast_8xA100_root_no_redop.log" in page


def info(config: dict[str, Any]) -> RunInfo:
    return RunInfo("r", "", "complete", "", None, 1, 1, (), (), "", "", None, None, config)


def test_an_imported_run_cannot_be_gone_on_with() -> None:
    assert not was_imported(info({"jobs": {}}))
    refuse_imported(info({"jobs": {}}))
    with pytest.raises(UsageError, match=r"run r was imported from a\.log"):
        refuse_imported(info({"imported": {"file": "a.log"}}))


def _is(row: ResultRow, op: str, size: int, ranks: int, in_place: bool) -> bool:
    given = row.params.get("op"), row.params.get("message_bytes"), row.params.get("world_size"), row.switches["in_place"]
    return given == (op, size, ranks, in_place)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("one_gpu_a6000_truncated", "over a single rank nothing crosses a link"),
        ("sendrecv_inplace_NA_truncated", ""),
        ("rows_headerless_8ranks", ""),
    ],
)
def test_what_moves_a_number_of_bytes_that_nobody_knows_has_no_rate_and_no_bound(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["import", str(DATA / f"nccl/{name}.log")]) == 0
    with Reader.open("roofbench.db") as reader:
        rows = [row for row in reader.results() if row.p50_s]
    assert rows
    for row in rows:
        known = bool(row.compulsory_bytes)
        assert (row.bound, row.flop_s, bool(row.bytes_s)) == (("link", 0.0, True) if known else ("unknown", None, False))
    capsys.readouterr()
    assert main(["show", "latest", "1"]) == 0
    said = capsys.readouterr().out
    assert "it moves no data" not in said
    assert "launch bound" not in said
    if why:
        assert f"n/a: {why}" in said
        assert f"bound unknown: {why}" in said
    assert main(["store", "check"]) == 0


def test_a_log_that_does_not_tell_operation_or_ranks_says_which() -> None:
    row = collective("ring", 2, 1024, 1e-5, evidence="imported", flops=0, compulsory_bytes=0)
    lacking = {"op": "unknown", "message_bytes": 1024}
    assert uncounted(row) == "what was imported does not say how many bytes it moves"
    assert (
        uncounted(replace(row, params={**lacking, "world_size": 8})) == "what was imported does not say which operation it is"
    )
    assert uncounted(replace(row, params=lacking)) == (
        "what was imported does not say which operation it is and over how many ranks"
    )
    assert uncounted(replace(row, evidence="measured")) == ""
