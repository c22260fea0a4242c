"""The selftest as a person runs it, on the scripted device: measured, judged, stored, printed again, interrupted, refused."""

import json
import re
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from suite import cli
from suite.commands.selftest import FIXED
from suite.config.schema import GROUPS, RunSchema
from suite.selftest.record import Finding, Selftest, Status
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.cli.command import FAKE, TIME_LIMIT_S, Said, held_up, leaves_slowly, roofbench, start, wait_for
from tests.report.stores import write_store

DEVICE = (*FAKE[:2], "backend=fake")
QUICK = (
    "measure.steady_window_s=0.002", "measure.steady_timeout_s=0.01", "measure.min_time_s=0.001", "measure.max_time_s=0.01",
    "measure.burst_first_idle_s=0", "measure.burst_idle_s=0",
)  # fmt: skip
FREE = {"backend", "backends", "measure", "store", "launcher", "hardware", "device", "seed", "note", "wait_s"}
PASSES = ("first", "load", "doubled", "again")
CASES = (25, 4, 10, 20)


def selftest(folder: Path, *arguments: str) -> Said:
    return roofbench(folder, "selftest", *DEVICE, *QUICK, *arguments)


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished selftest of two devices."""
    folder = tmp_path_factory.mktemp("tested")
    said = selftest(folder, "backends.fake.options.devices=2", "device=all", "note=rack 7", "--json")
    assert said.status == 0, said.err
    (folder / "out").write_text(said.out)
    (folder / "err").write_text(said.err)
    return folder


def stored(folder: Path) -> list[Selftest]:
    with Reader.open(str(folder / "roofbench.db")) as reader:
        return reader.selftests()


def test_it_says_how_far_it_is_and_keeps_that_off_json(tested: Path) -> None:
    lines = (tested / "err").read_text().splitlines()
    assert lines[0].startswith("selftest: 118 cases on 2 devices, about ")
    assert [line.partition(":")[0] for line in lines if line.startswith("pass ")] == [f"pass {n} of 4" for n in (1, 2, 3, 4)]
    assert sum(line.startswith("[") for line in lines) == 2 * sum(CASES)
    assert len(json.loads((tested / "out").read_text())) == 2


def test_a_device_without_a_counter_or_a_cache_is_given_no_pass_for_them(tested: Path) -> None:
    for each in stored(tested):
        found = {finding.name: finding for finding in each.findings}
        assert found["cases"].status == "ok"
        assert found["repeatability"].status == "ok"
        assert found["clock"].status == "unavailable"
        assert found["flush"].status == "warn", "a scripted clock knows no cache, so nothing tells cold from warm"
        assert found["telemetry"].status == "warn"


def test_raw_facts_are_ordinary_runs_of_the_experiment(tested: Path) -> None:
    with Reader.open(str(tested / "roofbench.db")) as reader:
        runs = list(reversed(reader.runs()))
        rows = [reader.results(run.run) for run in runs]
    assert [(run.experiment, run.status) for run in runs] == 4 * [("selftest", "complete")]
    assert [run.note for run in runs] == [f"rack 7; {name} pass" for name in PASSES]
    assert [len(each) for each in rows] == [2 * count for count in CASES]
    assert [each[-1].result_id - each[0].result_id for each in rows] == [2 * count - 1 for count in CASES]


def test_the_passes_measure_the_same_cases_the_last_in_reversed_order(tested: Path) -> None:
    with Reader.open(str(tested / "roofbench.db")) as reader:
        first, load, doubled, again = (
            [row.case_key for row in reader.results(run.run) if row.device_slot == 0 and row.job == "gemm"]
            for run in reversed(reader.runs())
        )
    assert again == first[::-1]
    assert set(doubled) < set(first)
    assert len(set(load) & set(first)) == 2


def test_the_doubled_pass_was_measured_with_everything_doubled(tested: Path) -> None:
    with Reader.open(str(tested / "roofbench.db")) as reader:
        first, _, doubled, _ = (run.config for run in reversed(reader.runs()))
    assert (first["measure"]["cold_margin"], doubled["measure"]["cold_margin"]) == (1.0, 2.0)
    assert doubled["backends"]["fake"]["options"]["flush_factor"] == 4.0
    assert "flush_factor" not in first["backends"]["fake"]["options"]


def test_the_overrides_of_a_pass_name_its_backend_and_device_once(tested: Path) -> None:
    with Reader.open(str(tested / "roofbench.db")) as reader:
        load = reader.runs()[2]
    keys = [override.partition("=")[0] for override in load.overrides]
    assert (keys[0], keys.count("backend"), keys.count("device")) == ("experiment", 1, 1)
    assert "device=[0,1]" in load.overrides
    assert "jobs.gemm.shapes=[2048x2048x2048]" in load.overrides
    assert load.argv[:2] == ("roofbench", "selftest")


def test_the_verdict_is_stored_with_the_repeatability_that_compare_uses(tested: Path) -> None:
    each, other = stored(tested)
    assert {each.device_uid, other.device_uid} == {"simulated0", "simulated1"}
    assert len(each.runs) == 4
    assert (each.facts["evidence"], each.facts["driver"]) == ("simulated", "1.0")
    with Reader.open(str(tested / "roofbench.db")) as reader:
        known = reader.repeatability(each.device_uid)
    assert known is not None
    assert known == each.repeatability
    assert known.cases == 10, "the rest is bound by launching"
    assert known.worst_rel is not None
    assert known.worst_rel < 0.01


def test_the_last_verdicts_are_printed_without_measuring(tested: Path) -> None:
    before = (tested / "roofbench.db").read_bytes()
    said = roofbench(tested, "selftest", "--last")
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert sum(line.startswith("selftest of fake Simulated Accelerator, simulated, ") for line in lines) == 2
    marks = [line.split()[:2] for line in lines if line.startswith(("  ok ", "  warn ", "  FAIL ", "  n/a "))]
    assert [name for _, name in marks] == 2 * [
        "cases", "timer", "flush", "load", "clock", "repeatability", "steady", "converged", "contention", "telemetry",
    ]  # fmt: skip
    assert lines[-1].startswith("Results of this device can be used, with what is said of flush")
    assert (tested / "roofbench.db").read_bytes() == before


@pytest.mark.parametrize("named", [["--store", "{}"], ["--store={}"], ["store.url={}"]])
def test_the_store_of_the_last_verdicts_is_named_in_either_way(tested: Path, tmp_path: Path, named: list[str]) -> None:
    said = roofbench(tmp_path, "selftest", "--last", *(each.format(tested / "roofbench.db") for each in named))
    assert (said.status, said.err) == (0, "")
    assert said.out == roofbench(tested, "selftest", "--last").out
    assert list(tmp_path.iterdir()) == []


def test_two_names_of_a_store_are_one_too_many(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "selftest", "--last", "--store", "a.db", "store.url=b.db")
    assert said.err == "roofbench: --store a.db and store.url=b.db both name the store; give one of them\n"


def test_json_is_each_selftest_whole(tested: Path) -> None:
    def by_device(text: str) -> dict[str, Any]:
        return {each["device_uid"]: each for each in json.loads(text)}

    said = roofbench(tested, "selftest", "--last", "--json")
    assert by_device(said.out) == by_device((tested / "out").read_text())
    assert {uid: Selftest.from_json(each) for uid, each in by_device(said.out).items()} == {
        each.device_uid: each for each in stored(tested)
    }


def test_nothing_but_the_store_is_left(tested: Path) -> None:
    assert {path.name for path in tested.iterdir()} == {"roofbench.db", "out", "err"}


def test_a_finding_that_fails_shows_in_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = write_store(tmp_path / "roofbench.db", [])
    for number, status in enumerate((Status.FAIL, Status.WARN)):  # the newest of a device counts
        finding = Finding("flush", status, "cold is not cold")
        when = datetime(2031, 5, 6, 7, number, tzinfo=UTC)
        with Store.open("roofbench.db") as store:
            store.record_selftest(Selftest(f"u{number}", "Testium T1", "cuda", (run,), when, (finding,)))
            store.record_selftest(Selftest("u0", "Testium T1", "cuda", (run,), when, (finding,)))
        assert cli.main(["selftest", "--last"]) == (3 if number == 0 else 0)
        said = capsys.readouterr()
    assert said.out.count("with what is said of flush in mind") == 2


def test_a_verdict_of_one_backend_hides_no_failure_under_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = write_store(tmp_path / "roofbench.db", [])
    with Store.open("roofbench.db") as store:
        for number, (backend, status) in enumerate((("cuda", Status.FAIL), ("xla", Status.OK))):
            when = datetime(2031, 5, 6, 7, number, tzinfo=UTC)
            store.record_selftest(Selftest("u0", "Testium T1", backend, (run,), when, (Finding("flush", status, "so it is"),)))
    assert cli.main(["selftest", "--last"]) == 3
    assert "FAIL  flush" in capsys.readouterr().out


def test_the_help_says_that_a_stored_failure_shows_in_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["selftest", "--help"]) == 0
    assert "with --last when one of the stored verdicts did" in " ".join(capsys.readouterr().out.split())


def test_the_help_names_the_group_that_a_selftest_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["selftest", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "and the group measure (fast, standard, precise) as run does" in said
    said = selftest(tmp_path, "measure=precise", "device=3")
    assert said.err.startswith("roofbench: device=3 is not among the devices"), "measure=precise was taken"


def test_the_help_names_whatever_is_taken_and_what_of_measure_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    """It said measure.*, of which three are refused, and seed was taken without a word."""
    assert cli.main(["selftest", "--help"]) == 0
    detail = capsys.readouterr().out.partition("Takes ")[2].partition("positional arguments")[0]
    taken, _, refused = " ".join(detail.split()).partition("of measure.* everything but ")
    words = {word.strip(",.").removesuffix(".*").removesuffix(".url") for word in taken.split()}
    assert words >= FREE
    assert set(re.findall(r"\w+", refused.partition(", for ")[0])) - {"and"} == {
        name.removeprefix("measure.") for name in FIXED if name.startswith("measure.")
    }


def test_an_interrupted_selftest_says_what_is_stored_and_reaches_no_verdict(tmp_path: Path) -> None:
    with held_up(tmp_path, "selftest", *DEVICE, *QUICK) as (child, go_on):
        assert child.stdout is not None
        assert any(line.startswith("[ 4/25]") for line in child.stdout)
        child.send_signal(signal.SIGINT)
        go_on()
        out, err = child.communicate(timeout=TIME_LIMIT_S)
    assert (child.returncode, err) == (130, "")
    last = out.splitlines()[-1]
    assert last.startswith("interrupted: ")
    assert f" of 59 cases are stored in {tmp_path / 'roofbench.db'} (runs " in last
    assert last.endswith("; no verdict was reached")
    assert "resume" not in out
    assert stored(tmp_path) == []
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        runs = reader.runs()
        kept = sum(len(reader.results(run.run)) for run in runs)
    assert [run.status for run in reversed(runs)] == ["interrupted"]
    assert f"interrupted: {kept} of 59" in last
    again = roofbench(tmp_path, "run", "resume=latest")
    assert again.status == 0, again.err
    assert again.err == (
        f"roofbench: run {runs[0].run} is one pass of a selftest: no verdict comes of going on with it; "
        "`roofbench selftest` starts anew\n"
    )
    assert stored(tmp_path) == []


def test_an_interrupt_between_two_passes_begins_no_other(tmp_path: Path) -> None:
    leaving = tmp_path / "leaving"
    with start(tmp_path, "selftest", *DEVICE, *QUICK, *leaves_slowly(leaving)) as child:
        wait_for(leaving)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=TIME_LIMIT_S)
    assert (child.returncode, err) == (130, "")
    assert [line.partition(":")[0] for line in out.splitlines() if line.startswith("pass ")] == ["pass 1 of 4"]
    assert out.splitlines()[-1].startswith("interrupted: 25 of 59 cases are stored in ")
    assert stored(tmp_path) == []


REFUSED = [
    ("experiment=quick", "experiment=quick cannot change a selftest: its cases are fixed, so that two of them compare;"),
    ("jobs.gemm.shapes=[64]", "jobs.gemm.shapes=[64] cannot change a selftest: its cases are fixed"),
    ("~jobs.gemm", "~jobs.gemm cannot change a selftest: its cases are fixed"),
    ("measure.regimes=[standard]", "measure.regimes=[standard] cannot change a selftest: its cases are fixed"),
    ("measure.steady_window_s=50", "measure.steady_timeout_s=0.01 is not above measure.steady_window_s=50.0: "),
    ("resume=latest", "resume=latest cannot change a selftest: its cases are fixed"),
    ("devcie=all", "unknown key 'devcie'; did you mean 'device'?"),
    ("measure.target=x", "measure.target=x is not a number"),
    ("measure.cold_margin=12", "measure.cold_margin=12 cannot be doubled, as a selftest does"),
    ("quick", "'quick' is not an override; write key=value"),
    ("device=3", "device=3 is not among the devices of backend 'fake' (0); `roofbench devices` lists what there is"),
    ("backends.fake.options.start=raise", "no device for backend 'fake': "),
    ("store.url=folder", "store folder is a directory: name a file, such as folder/roofbench.db"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "message"), REFUSED, ids=[override for override, _ in REFUSED])
def test_bad_input_is_one_line_and_creates_nothing(
    override: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    added = "+" if "start=" in override else ""
    assert cli.main(["selftest", *DEVICE, *QUICK, f"{added}{override}"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"roofbench: {message}")
    assert said.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_store_without_a_selftest_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["selftest", "--last"]) == 2
    assert "no store at " in capsys.readouterr().err
    assert cli.main(["selftest", "--last", "device=0"]) == 2
    assert capsys.readouterr().err.startswith("roofbench: device=0 does not go with --last, which prints what the store has")
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_cannot_start_leaves_no_store(tmp_path: Path) -> None:
    said = selftest(tmp_path, "+backends.fake.options.select={0:'exit:3'}")
    assert said.status == 1
    assert said.err.startswith("roofbench: ")
    assert list(tmp_path.iterdir()) == []


def test_every_setting_is_either_fixed_or_the_user_s() -> None:
    """A new one must be decided on: it changes the cases, or it does not."""
    known = {*GROUPS, *RunSchema.__dataclass_fields__}
    assert known == FREE | {name for name in FIXED if "." not in name}
