"""``roofbench compare`` over real stores: how runs are named, what is printed, how it ends, how much of a store it reads."""

import json
import random
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from suite.cli import main
from suite.compare.runs import Place, compare_runs
from suite.compare.verdict import Verdict
from suite.errors import UsageError
from suite.measurement import Measurement, SampleSet
from suite.outcome import Outcome
from suite.rows import ResultRow
from suite.selftest.record import Finding, Repeatability, Selftest, Status
from suite.store import sqlite
from suite.store.comparing import ComparisonReader
from suite.store.writer import Store
from tests.report.builders import UID, device, failed, result, run_info
from tests.report.stores import _start, write_store
from tests.store.big import build

SIZES = (1024, 2048, 4096, 8192)


def measured(row: ResultRow, seed: int = 1) -> Measurement:
    """Two hundred samples a thousandth apart around the median of the row, as one stretch."""
    draw = random.Random(f"{seed} {row.params}")
    times = [round((row.p50_s or 0.0) * 1e9 * 100 * draw.gauss(1, 1e-3)) for _ in range(200)]
    samples = SampleSet(tuple(times), 100, "graph", 1e-9, 200, sum(times), min(times), details={}, median_ns=median(times))
    return Measurement(
        Outcome(row.outcome), samples=samples, interval_s=row.interval_s, converged=True, description={"library": "x"}
    )


def rows(by: float = 0.0, **fields: Any) -> list[ResultRow]:
    """Four products bound by memory, the largest of them so much slower."""
    made = [result(size, 16, size, bound="memory", **fields) for size in SIZES]
    slow = replace(made[-1], p50_s=made[-1].p50_s * (1 + by))  # type: ignore[operator]
    return [*made[:-1], slow]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Run 0, the same again, one with a slower case, one on another chip by another implementation, one simulated."""
    path = tmp_path_factory.mktemp("compare") / "store.db"
    crashed = [*rows()[:-1], failed("crashed", "signal 11", m=8192, n=16, k=8192)]
    other = device(info=replace(device().info, uid="f00d", driver="590.1"))
    runs = [
        write_store(path, rows(), measured=lambda row: measured(row, 1)),
        write_store(path, rows(), measured=lambda row: measured(row, 2)),
        write_store(path, rows(0.03), measured=lambda row: measured(row, 3), info=run_info(note="a change")),
        write_store(path, rows(implementation="triton", device_uid="f00d"), [other], measured=lambda row: measured(row, 4)),
        write_store(path, rows(evidence="simulated"), measured=lambda row: measured(row, 5)),
        write_store(path, crashed, measured=lambda row: measured(row, 6)),
    ]
    return path, runs


@pytest.fixture
def compare(store: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Compare run A with run B of the store, by their numbers there; status, output and errors."""
    path, runs = store

    def call(a: int, b: int, *options: str) -> tuple[int, str, str]:
        status = main(["compare", runs[a], runs[b], "--store", str(path), *options])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def test_the_same_thing_twice_is_the_same(compare):
    status, out, err = compare(0, 1, "--fail-on", "different", "--fail-on", "undecided", "--fail-on", "lost")
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "0 SLOWER, 0 UNDECIDED, 5 SAME, 0 FASTER"
    assert "paired by case: two runs of one device, cuda Testium T1" in out


def test_a_case_3_percent_slower_is_found_and_named_and_fails_the_gate(compare):
    status, out, err = compare(0, 2, "--fail-on", "slower")
    assert status == 1
    assert err == "roofbench: failed, as --fail-on slower asks for: 1 case SLOWER\n"
    shown = out.splitlines()
    row = next(line for line in shown if line.startswith("  SLOWER"))
    assert float(row.split()[1]) == pytest.approx(1.03, abs=1e-3)
    assert shown[shown.index(row) + 1].strip().startswith("gemm 8192x16x8192 bf16 library")
    assert shown[-1] == "1 SLOWER, 0 UNDECIDED, 4 SAME, 0 FASTER"
    assert "note: a change" in " ".join(out.split())
    assert max(map(len, shown)) <= 80


def test_a_gate_on_what_did_not_happen_passes(compare):
    assert compare(0, 2, "--fail-on", "faster")[0] == 0
    assert compare(2, 0, "--fail-on", "faster")[0] == 1
    assert compare(0, 2, "--fail-on", "slower", "--min-effect", "0.05")[0] == 0


def test_json_is_one_document_that_agrees_with_the_exit_status(compare):
    status, out, _ = compare(0, 2, "--json", "--fail-on", "slower")
    found = json.loads(out)
    assert status == 1
    assert found["counts"] == {"SLOWER": 1, "UNDECIDED": 0, "SAME": 4, "FASTER": 0}
    assert found["cases"][0]["ratio"] == pytest.approx(1.03, rel=1e-9)
    assert found["cases"][0]["b"]["params"]["m"] == 8192


def test_another_device_and_implementation_is_compared_by_workload(compare):
    _, out, _ = compare(0, 3)
    assert "paired by workload and regime: not the same devices on both sides, cuda Testium T1" in " ".join(out.split())
    assert f"chip: {UID} -> f00d" in out
    assert "driver: 580.159 -> 590.1" in out
    assert "implementation: library -> triton (in 4 of 5)" in out
    assert out.splitlines()[-1] == "0 SLOWER, 0 UNDECIDED, 5 SAME, 0 FASTER"


def test_measured_is_never_compared_with_simulated(compare):
    status, out, _ = compare(0, 4)
    assert status == 0  # the calibration of both is measured
    assert out.splitlines()[-1] == "0 SLOWER, 0 UNDECIDED, 1 SAME, 0 FASTER; 4 not compared"
    assert "A is measured, B simulated:" in out


def test_what_crashed_is_lost_and_a_gate_can_fail_on_it(compare):
    status, out, err = compare(0, 5, "--fail-on", "lost")
    assert (status, err) == (1, "roofbench: failed, as --fail-on lost asks for: 1 case lost\n")
    assert "lost, as it is ok in A alone: B crashed (signal 11):" in out
    assert compare(0, 5, "--fail-on", "slower")[0] == 0


def test_markdown_is_for_a_comment(compare):
    _, out, _ = compare(0, 2, "--markdown")
    assert out.startswith("### roofbench: 1 SLOWER, 0 UNDECIDED, 4 SAME, 0 FASTER\n")
    assert "| SLOWER | gemm 8192x16x8192 bf16 library cold/sustained/device |" in out


def test_two_stores_are_given_in_the_order_of_their_runs(store, tmp_path, capsys):
    path, runs = store
    there = tmp_path / "there.db"
    newer = write_store(there, rows(0.03), measured=lambda row: measured(row, 7))
    assert main(["compare", runs[0], "latest", "--store", str(path), "--store", str(there), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["a"]["run"], found["b"]["run"]) == (runs[0], newer)
    assert found["counts"]["SLOWER"] == 1


def test_nothing_compared_fails_with_why(store, tmp_path, capsys):
    path, runs = store
    there = tmp_path / "there.db"
    write_store(there, [])
    with sqlite3.connect(there) as connection:
        connection.execute("UPDATE result SET evidence = 'imported'")
    for option in ([], ["--json"]):
        assert main(["compare", runs[0], "latest", "--store", str(path), "--store", str(there), *option]) == 2
        said = capsys.readouterr()
        assert said.out
        assert "not one case of" in said.err
        assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{0}", "{0}"], "is both A and B: nothing would differ"),
        (["{0}", "nosuch"], "no run 'nosuch' in store"),
        (["{0}", "{1}", "--by", "device"], "unknown --by 'device'; choose from: case, workload"),
        (["{0}", "{1}", "--fail-on", "slow"], "unknown --fail-on 'slow'; did you mean 'slower'?"),
        (["{0}", "{1}", "--min-effect", "2"], "--min-effect 2 is not between 0 and 1"),
        (["{0}", "{1}", "--min-effect", "x"], "invalid float value: 'x'"),
        (["{0}", "{1}", "--json", "--markdown"], "--json and --markdown are two answers"),
        (["{0}", "{1}", "--store", "x.db", "--store", "y.db"], "--store is given 3 times"),
        (["{0}"], "the following arguments are required: B"),
    ],
)
def test_bad_input_is_one_line(store, capsys, arguments, said):
    path, runs = store
    status = main(["compare", *(each.format(*runs) for each in arguments), "--store", str(path)])
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, "")
    assert said in printed.err
    assert printed.err.count("\n") == 1


def test_a_run_that_was_merged_elsewhere_is_the_same_run(store, tmp_path):
    path, runs = store
    there = tmp_path / "there.db"
    there.write_bytes(path.read_bytes())
    with ComparisonReader.open(str(path)) as one, ComparisonReader.open(str(there)) as other, pytest.raises(UsageError):
        compare_runs(Place(one, runs[0]), Place(other, runs[0]))


def test_a_selftest_of_either_store_sets_the_margin(store, tmp_path):
    path, runs = store
    there = tmp_path / "there.db"
    newer = write_store(there, rows(0.03), measured=lambda row: measured(row, 8))
    tested = Selftest(
        UID, "Testium T1", "cuda", (newer,), datetime(2031, 5, 7, tzinfo=UTC), (), Repeatability(0.002, 0.05, True, 20)
    )
    with Store.open(str(there)) as writing:
        writing.record_selftest(tested)
    with ComparisonReader.open(str(path)) as one, ComparisonReader.open(str(there)) as other:
        found = compare_runs(Place(one, runs[0]), Place(other, newer))
    assert {case.gap.delta for case in found.cases} == {0.05}
    assert found.counts()[Verdict.SLOWER] == 0
    assert list(found.repeats) == [(UID, "cuda")]


def failed_selftest(run: str, day: int) -> Selftest:
    """As one was stored that was measured beside other work, when nothing was left out of it."""
    crowded = {"cases": 20, "contended_cases": 20}
    findings = (Finding("repeatability", Status.FAIL, "1 of 20 cases repeat within 1 %; worst 95 % off", crowded),)
    when = datetime(2031, 5, day, tzinfo=UTC)
    return Selftest(UID, "Testium T1", "cuda", (run,), when, findings, Repeatability(0.95, 0.77, False, 20), {"driver": "580"})


def test_a_failed_selftest_disarms_no_gate_and_is_said_everywhere(store, tmp_path, capsys):
    """A case 1.8 times slower is SLOWER, although the latest selftest says that runs differ by up to 95 %."""
    path, runs = store
    there = tmp_path / "there.db"
    there.write_bytes(path.read_bytes())
    newer = write_store(there, rows(0.8), measured=lambda row: measured(row, 9))
    earlier = replace(failed_selftest(newer, 7), findings=(), repeatability=Repeatability(0.002, 0.02, True, 20))
    arguments = ["compare", runs[0], newer, "--store", str(there), "--fail-on", "slower"]
    for also, delta, instead in (
        ((), 0.01, "no earlier one can be"),
        ((earlier,), 0.02, "that of 2031-05-07 00:00 UTC is, instead"),
    ):
        with Store.open(str(there)) as writing:
            for each in (failed_selftest(newer, 8), *also):
                writing.record_selftest(each)
        assert main([*arguments, "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert {case["delta"] for case in found["cases"]} == {delta}
        why = "repeatability FAIL (95 % at the 95th percentile), measured beside other work (20 of 20)"
        assert [each["why"] for each in found["selftests_not_used"]] == [why]
        for way in ([], ["--markdown"]):
            assert main([*arguments, *way]) == 1
            said = " ".join(capsys.readouterr().out.replace("\\", "").split())
            assert f"The latest selftest of cuda Testium T1, of 2031-05-08 00:00 UTC, is not used: {why}; {instead}." in said


def test_a_run_without_results_is_of_the_same_device_and_lacks_no_method(store, tmp_path, capsys):
    path, runs = store
    there = tmp_path / "there.db"
    there.write_bytes(path.read_bytes())
    with Store.open(str(there)) as writing, writing.start_run(_start(run_info(), [device()])) as empty:
        pass
    assert main(["compare", runs[0], empty.run, "--store", str(there)]) == 2
    said = capsys.readouterr()
    assert "paired by case: B has no results" in said.out
    assert "not recorded" not in said.out
    assert said.err == f"roofbench: not one case of {runs[0]} and {empty.run} could be compared: B has no result\n"


def test_a_damaged_sample_is_one_line_that_names_the_result(store, tmp_path, capsys):
    path, runs = store
    there = tmp_path / "there.db"
    there.write_bytes(path.read_bytes())
    with sqlite3.connect(there) as connection:
        connection.execute("UPDATE sample_blob SET durations = x'00' WHERE result_id = 3")
    assert main(["compare", runs[0], runs[1], "--store", str(there)]) == 2
    assert "result 3" in capsys.readouterr().err


# As tests/store/test_speed.py counts them.
STEPS_A_CALL = 100
ROW_STEPS, QUESTION_STEPS = 250, 10_000


def test_no_question_of_a_comparison_reads_the_whole_store(tmp_path, monkeypatch):
    """Five hundred of 4,000 results are a run's; of samples those that are asked for are read."""
    reader = ComparisonReader.open(str(build(tmp_path / "big.db", 4_000, devices=2, runs=8)))
    calls, connect = [0], sqlite.connect

    def counted(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_progress_handler(lambda: calls.__setitem__(0, calls[0] + 1), STEPS_A_CALL)
        return connection

    monkeypatch.setattr(sqlite, "connect", counted)
    run = reader.runs()[0].run
    ids = [row.result_id for row in reader.results(run)]
    assert len(ids) == 500
    questions: dict[str, tuple[Callable[[], Any], int]] = {
        "method versions": (lambda: reader.method_versions(run), 500),
        "samples": (lambda: reader.sampled(ids[:50]), 50),
        "environments": (lambda: reader.environments(run), 1),
    }
    for name, (ask, rows_of) in questions.items():
        calls[0] = 0
        assert len(ask()) == rows_of, name
        assert calls[0] * STEPS_A_CALL <= QUESTION_STEPS + ROW_STEPS * rows_of, name
