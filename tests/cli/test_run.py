"""Whole runs on the scripted device: measured, stored, shown; several at once, interrupted, resumed."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from suite import cli
from suite.commands import run
from suite.errors import StoreUnusable
from suite.settings import RunConfig
from suite.store.queries import Reader
from tests.cli.command import FAKE, TIME_LIMIT_S, held_up, leaves_slowly, roofbench, start, wait_for

TWO_CASES = 7  # with the five of calibration
LONG = (*FAKE, "jobs.gemm.shapes=[64,128,256,512]")


def results(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    said = roofbench(folder, "show", "--json", *arguments)
    assert said.status == 0, said.err
    rows: list[dict[str, Any]] = json.loads(said.out)
    return rows


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run."""
    folder = tmp_path_factory.mktemp("measured")
    said = roofbench(folder, "run", *FAKE, "note=the first")
    assert said.status == 0, said.err
    (folder / "said").write_text(said.out)
    return folder


def test_a_run_prints_each_case_then_the_table_and_where_it_is(measured: Path) -> None:
    said = (measured / "said").read_text()
    lines = said.splitlines()
    assert [line.partition("]")[0] for line in lines if line.startswith("[")] == [f"[{n}/7" for n in range(1, 8)]
    assert "gemm bf16" in lines
    assert any("64x64x64" in line and "cold/sustained/device" in line and "launch" in line for line in lines)
    assert f"stored in {measured / 'roofbench.db'}" in lines
    assert "\033[" not in said


def test_nothing_but_the_store_is_left_in_the_folder(measured: Path) -> None:
    assert {path.name for path in measured.iterdir()} == {"roofbench.db", "said"}


def test_rows_carry_what_they_promise(measured: Path) -> None:
    rows = results(measured)
    promised = (
        "run case_key workload_key job implementation backend device format execution params distribution regime evidence "
        "outcome reason converged bound p50_s interval_s flop_s bytes_s fractions clock_hz energy_j power_w throttle error_rel"
    )
    assert len(rows) == TWO_CASES
    for row in rows:
        assert set(promised.split()) <= set(row)
        assert set(row["regime"]) == {"cache", "load", "dispatch"}
        assert set(row["fractions"]) == {"spec", "boost", "at_clock", "empirical"}
        assert (row["outcome"], row["evidence"]) == ("ok", "simulated")


def test_a_plan_names_the_cases_that_a_run_then_stores(measured: Path) -> None:
    said = roofbench(measured, "plan", *FAKE, "--json")
    planned = json.loads(said.out)
    stored = results(measured)
    same = (
        "case_key", "workload_key", "job", "implementation", "backend", "device", "format", "params", "distribution", "regime",
        "switches",
    )  # fmt: skip
    assert [{name: row[name] for name in same} for row in planned] == [{name: row[name] for name in same} for row in stored]


def test_the_command_that_made_a_run_is_stored_with_it(measured: Path) -> None:
    with Reader.open(str(measured / "roofbench.db")) as reader:
        info = reader.resolve()
    assert info.overrides == ("backend=fake", "experiment=tiny", "note=the first")
    assert info.argv[:2] == ("roofbench", "run")
    assert (info.experiment, info.note, info.status) == ("tiny", "the first", "complete")
    assert info.config["backends"]["fake"]["target"] == "tests.fake.backend:FakeBackend"


def test_one_case_is_shown_with_its_samples(measured: Path) -> None:
    key = results(measured)[-1]["case_key"]
    said = roofbench(measured, "show", "latest", key[:6])
    assert said.status == 0
    for heading in ("samples", "telemetry", "checks", "environment: python"):
        assert heading in said.out.splitlines()
    detail = json.loads(roofbench(measured, "show", "latest", key, "--json").out)
    samples = detail["measurement"]["samples"]
    assert len(samples["durations"]) == -(-detail["count"] // samples["stride"])
    assert len(samples["clocks"]) in (0, len(samples["durations"]))
    assert detail["environment"]["python"]["python"]["status"] == "measured"


def test_a_case_is_named_by_the_number_that_the_run_printed(measured: Path) -> None:
    printed = next(line for line in (measured / "said").read_text().splitlines() if line.startswith(f"[7/{TWO_CASES}]"))
    title = printed.removeprefix(f"[7/{TWO_CASES}] ").partition(": ")[0]
    assert roofbench(measured, "show", "latest", "7").out.splitlines()[0] == title
    (keyed,) = [line for line in roofbench(measured, "show", "--keys").out.splitlines() if line.startswith("7  ")]
    assert title in keyed
    missing = roofbench(measured, "show", "latest", "27")
    assert missing.status != 0
    assert "has no case number 27: its 7 are numbered from 1 on" in missing.err
    brief = roofbench(measured, "show", "latest", keyed.split()[1][:3].replace("0", "a") + "z")
    assert "is too short for a key, of which at least 6 characters are needed" in brief.err


def test_runs_are_listed(measured: Path) -> None:
    said = roofbench(measured, "show", "--runs")
    assert "complete" in said.out
    assert "the first" in said.out
    (run,) = json.loads(roofbench(measured, "show", "--runs", "--json").out)
    assert (run["planned"], run["finished"]) == (TWO_CASES, TWO_CASES)


def test_a_report_is_not_overwritten_unasked(measured: Path, tmp_path: Path) -> None:
    store = str(measured / "roofbench.db")
    first = roofbench(tmp_path, "report", "--store", store, "-o", "r.md")
    assert (first.status, first.out) == (0, f"report: {tmp_path / 'r.md'}\n")
    again = roofbench(tmp_path, "report", "--store", store, "-o", "r.md")
    assert again.status == 2
    assert again.err == "roofbench: --output r.md is there already; name another file, or replace it with --force\n"
    assert roofbench(tmp_path, "report", "--store", store, "-o", "r.md", "--force").status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["r.md"]


def test_m_makes_one_run_for_each_combination_in_one_store(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "run", "-m", *FAKE, "seed=1,2", "note=swept")
    assert said.status == 0, said.err
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        runs = reader.runs()
    assert [run.config["seed"] for run in reversed(runs)] == [1, 2]
    assert [run.overrides[2] for run in reversed(runs)] == ["seed=1", "seed=2"]
    assert all(run.status == "complete" for run in runs)


@pytest.mark.parametrize("devices", ["0,3", "3,0"])
def test_a_sweep_in_which_one_run_cannot_be_ends_before_the_first(devices: str, tmp_path: Path) -> None:
    """Status 2 promises that nothing was run: not after minutes of the others."""
    said = roofbench(tmp_path, "run", "-m", *FAKE, f"device={devices}")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("roofbench: device=3 is not among the devices of backend 'fake' (0)")
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_with_a_store_that_is_none_ends_before_the_first(tmp_path: Path) -> None:
    """Every store is looked at before anything is measured, not each when its turn comes."""
    (tmp_path / "b.db").write_text("no database, and longer than the smallest page\n" * 20)
    said = roofbench(tmp_path, "run", "-m", *FAKE, "store.url=a.db,b.db")
    assert (said.status, said.out) == (2, "")
    assert said.err == f"roofbench: {tmp_path / 'b.db'} is not a database: choose another with store.url=PATH\n"
    assert [path.name for path in tmp_path.iterdir()] == ["b.db"]


def test_a_run_that_is_refused_after_another_was_measured_does_not_stop_the_rest_and_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A store is looked at again when its run begins: it may be moved, filled or locked by then."""
    began = []

    def measure(config: RunConfig, overrides: Sequence[str]) -> int:
        began.append(config.store.url)
        if config.store.url == "b.db":
            raise StoreUnusable("store b.db is locked by another process: wait until it ends, or stop it")
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "measure", measure)
    assert cli.run(["run", "-m", *FAKE, "store.url=a.db,b.db,c.db"]) == 1
    assert began == ["a.db", "b.db", "c.db"]
    assert "roofbench: store b.db is locked" in capsys.readouterr().err


def test_every_device_runs_every_case(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "run", *FAKE, "backends.fake.options.devices=2", "device=all")
    assert said.status == 0, said.err
    slots = [row["device_slot"] for row in results(tmp_path)]
    assert (slots.count(0), slots.count(1)) == (TWO_CASES, TWO_CASES)
    assert "gemm bf16 on device 1" in said.out.splitlines()


def test_cases_that_ended_badly_show_in_the_exit_status(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "run", *FAKE, "++backends.fake.options.faults={64x64x64:wrong}")
    assert said.status == 3
    ended = [row["outcome"] for row in results(tmp_path) if row["job"] == "gemm"]
    assert ended == ["incorrect", "incorrect"]
    assert "2 incorrect" in said.out


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_an_interrupted_run_goes_on_and_ends_as_if_it_had_not_been(number: signal.Signals, tmp_path: Path) -> None:
    with held_up(tmp_path, "run", *LONG) as (child, go_on):
        assert child.stdout is not None
        assert any(line.startswith("[ 4/13]") for line in child.stdout)
        child.send_signal(number)
        go_on()
        out, err = child.communicate(timeout=TIME_LIMIT_S)
    assert child.returncode == 130, err
    assert "interrupted: " in out
    assert "Traceback" not in err
    resumed = roofbench(tmp_path, "run", "resume=latest")
    assert resumed.status == 0, resumed.err
    rows = results(tmp_path)
    assert len(rows) == 13
    assert len({row["case_key"] for row in rows}) == 13
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        (info,) = reader.runs()
    assert (info.status, info.planned, info.finished) == ("complete", 13, 13)


def test_an_interrupt_while_workers_leave_ends_a_sweep_of_configurations(tmp_path: Path) -> None:
    leaving = tmp_path / "leaving"
    with start(tmp_path, "run", "-m", *FAKE, *leaves_slowly(leaving), "seed=1,2") as child:
        wait_for(leaving)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=TIME_LIMIT_S)
    assert (child.returncode, err) == (130, "roofbench: interrupted\n")
    assert f"stored in {tmp_path / 'roofbench.db'}\n" in out
    assert "interrupted: every case of this run is stored\n" in out
    assert "to go on" not in out
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        assert [(run.config["seed"], run.status, run.finished) for run in reader.runs()] == [(1, "complete", TWO_CASES)]


def test_a_run_that_goes_on_keeps_its_settings(measured: Path) -> None:
    refused = roofbench(measured, "run", "resume=latest", "seed=3")
    assert refused.status == 2
    assert refused.err == (
        "roofbench: seed=3 cannot change a run that goes on; leave it out, or start a new run without resume\n"
    )
    complete = roofbench(measured, "run", "resume=latest")
    assert complete.status == 2
    assert "is complete, nothing is left to measure" in complete.err


def test_max_time_s_ends_a_run_politely(tmp_path: Path) -> None:
    """The fifth case of each part takes as long as it may; what is before it is the time that a worker has to start in."""
    slow = ("++backends.fake.options.let_through=4", "++backends.fake.options.held_s=6")
    said = roofbench(tmp_path, "run", *LONG, *slow, "max_time_s=6")
    assert said.status == 0, said.err
    assert "max_time_s=6 reached" in said.out
    before = len(results(tmp_path))
    assert roofbench(tmp_path, "run", "resume=latest").status == 0
    assert before < len(results(tmp_path)) < 13  # as long again
    rest = roofbench(tmp_path, "run", "resume=latest", "max_time_s=null")
    assert "reached" not in rest.out
    assert len(results(tmp_path)) == 13
    assert roofbench(tmp_path, "run", "resume=latest").status == 2


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--cfg", "job"), "backends:\n  fake:\n"),
        (("--cfg",), "jobs:\n  gemm:\n"),
        (("--cfg", "job", "--package", "measure"), "# @package measure\n"),
        (("--cfg", "hydra"), "hydra:\n"),
        (("--cfg", "all"), "hydra:\n"),
        (("--info", "defaults"), "| experiment/tiny "),
        (("--info", "searchpath"), "pkg://configs"),
    ],
)
def test_hydra_s_own_views_work(flags: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    said = roofbench(tmp_path, "run", *FAKE, *flags)
    assert (said.status, said.err) == (0, "")
    assert expected in said.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--cfg",), True),
        (("--cfg", "all"), True),
        (("--cfg", "hydra"), False),
        (("--cfg", "job", "--package", "measure"), False),
    ],
    ids=str,
)
def test_a_printed_configuration_says_where_its_settings_are_explained_and_stays_yaml(
    flags: tuple[str, ...], says: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", *FAKE, *flags]) == 0
    printed = capsys.readouterr().out
    *_, last = printed.splitlines()
    assert last.startswith("# what each setting means ") is says
    if says:
        folder = Path(last.rpartition(": ")[2])
        assert "formats" in (folder / "job" / "gemm.yaml").read_text()
    assert isinstance(yaml.safe_load(printed), dict)


@pytest.mark.parametrize("flags", ["--info", "--info defaults", "--cfg all"])
def test_a_reader_who_leaves_a_printed_configuration_is_no_error(flags: str, tmp_path: Path) -> None:
    code = f"{sys.executable} -m suite.cli run {' '.join(FAKE)} {flags} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in ("0", str(cli.EXIT_PIPE_CLOSED))  # 0 where it all fitted into the pipe


def test_a_run_waits_for_a_held_device_when_it_is_asked_to(tmp_path: Path) -> None:
    leaving = tmp_path / "leaving"
    with start(tmp_path, "run", *FAKE, *leaves_slowly(leaving)) as first:
        wait_for(leaving)  # it holds the device until its worker has left, and stopped for as long as it is
        first.send_signal(signal.SIGSTOP)
        try:
            refused = roofbench(tmp_path, "run", *FAKE, "store.url=other.db")
            with start(tmp_path, "run", *FAKE, f"wait_s={TIME_LIMIT_S:g}", "store.url=other.db") as second:
                assert second.stderr is not None
                told = second.stderr.readline()
                first.send_signal(signal.SIGKILL)
                out, _ = second.communicate(timeout=TIME_LIMIT_S)
        finally:
            first.kill()
    assert refused.status == 1
    assert "wait for it with wait_s=SECONDS" in refused.err
    assert told.startswith("roofbench: fake device 0 (Simulated Accelerator) is held by run 2")
    assert told.endswith(" s at most\n")
    assert (second.returncode, "stored in" in out) == (0, True)
    with Reader.open(str(tmp_path / "other.db")) as reader:
        assert [run.config["wait_s"] for run in reader.runs()] == [TIME_LIMIT_S]


def test_overrides_may_stand_on_both_sides_of_options(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "plan", "experiment=tiny", "--json", "backend=fake", *FAKE[:2])
    assert said.status == 0, said.err
    assert len(json.loads(said.out)) == TWO_CASES


def test_a_store_is_looked_after(measured: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    merged = roofbench(tmp_path, "store", "merge", str(measured / "roofbench.db"), "--store", str(copy))
    assert merged.out.endswith(": 1 run and 7 results copied\n")
    assert roofbench(tmp_path, "store", "check", "--store", str(copy)).out == f"{copy} is whole\n"
    before = results(tmp_path, "--store", str(copy))
    rebuilt = roofbench(tmp_path, "store", "rebuild", "--everything", "--store", str(copy))
    assert rebuilt.out == f"{copy}: 7 results derived anew\n"
    assert results(tmp_path, "--store", str(copy)) == before
    pruned = roofbench(tmp_path, "store", "prune", "--before", "2999-01-01", "--store", str(copy))
    assert pruned.out.endswith("1 run with 7 results removed\n")
    assert "before" in roofbench(tmp_path, "store", "vacuum", "--store", str(copy)).out
    assert results(measured) != []
