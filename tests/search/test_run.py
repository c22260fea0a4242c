"""A search as a person runs it, on the scripted device: found, measured, stored; killed, resumed, refused."""

import json
import re
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from suite import cli
from suite.search.space import Space, space
from suite.settings import SearchSettings
from suite.store.queries import Reader
from tests.cli.command import CONFIGS, TIME_LIMIT_S, Said, roofbench, start

BEST = "2048x1024x4096"
CALIBRATION, FINALISTS, LOADS = 5, 3, 2
DEVICE = (
    "--config-dir", str(CONFIGS), "backend=fake", "experiment=peak", "backends.fake.target=tests.search.planted:PlantedBackend",
    f"++backends.fake.options.best={BEST}", "jobs.gemm.formats=[bf16]", f"jobs.gemm.shapes=[{BEST}]",
)  # fmt: skip
QUICK = (
    "search.budget_s=0.5", "search.warm_up_s=0", "measure.steady_window_s=0.002", "measure.steady_timeout_s=0.01",
    "measure.min_time_s=0.001", "measure.max_time_s=0.01", "measure.burst_first_idle_s=0", "measure.burst_idle_s=0",
)  # fmt: skip
# Nine candidates, eight of a grid and the best, whatever the host's pace: 2 looks that are not brief make them ready, and each
# round begins with one: 19 are round 1, 11 round 2.  A launch is so long that a look takes few samples.
NINE = (
    "search.step=64", "search.m=128", "search.n=128", "search.k=128", "search.budget_s=600",
    "++backends.fake.options.launch_s=0.01",
)  # fmt: skip


def stopped(folder: Path, sign: signal.Signals, words: str, **let_through: int) -> tuple[int, str, str]:
    """A run of nine candidates that does not go on behind so many looks or finalists, ended once it says ``words``."""
    gate = (f"++backends.fake.options.gate={folder / 'gate'}",)
    only = [f"++backends.fake.options.{name}={count}" for name, count in let_through.items()]
    with start(folder, "run", *DEVICE, *QUICK, *NINE, *gate, *only) as child:
        assert child.stdout is not None
        try:
            assert any(words in line for line in child.stdout)
            child.send_signal(sign)
            out, err = child.communicate(timeout=TIME_LIMIT_S)
        finally:
            (folder / "gate").touch()
    return child.returncode, out, err


def run(folder: Path, *arguments: str) -> Said:
    return roofbench(folder, "run", *DEVICE, *QUICK, *arguments)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [row for row in json.loads(roofbench(folder, "show", "--json").out) if row["job"] == "gemm"]


def shape(row: dict[str, Any]) -> str:
    return "x".join(str(row["params"][name]) for name in ("m", "n", "k"))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("searched")
    began_s = time.monotonic()
    said = run(folder, "jobs.gemm.formats=[bf16,fp8_e4m3]")
    assert said.status == 0, said.err
    (folder / "took_s").write_text(str(time.monotonic() - began_s))
    (folder / "said").write_text(said.out)
    return folder


def test_the_planted_best_is_measured_first_in_each_load_and_is_the_ceiling(searched: Path) -> None:
    for format_name in ("bf16", "fp8_e4m3"):
        found = [row for row in rows(searched) if row["format"] == format_name]
        for load in ("sustained", "burst"):
            of_load = [row for row in found if row["regime"]["load"] == load]
            assert len(of_load) == FINALISTS
            assert shape(of_load[0]) == BEST
            assert of_load[0]["fractions"]["empirical"] == 1.0
            assert all(row["fractions"]["empirical"] < 0.95 for row in of_load[1:])


def test_only_what_was_verified_is_a_result(searched: Path) -> None:
    found = rows(searched)
    assert len(found) == 2 * FINALISTS * LOADS
    assert all(row["outcome"] == "ok" and row["error_rel"] is not None for row in found)
    assert {row["regime"]["cache"] for row in found} == {"cold"}, "looks are warm"
    with Reader.open(str(searched / "roofbench.db")) as reader:
        (info,) = reader.runs()
    assert (info.status, info.planned, info.finished) == ("complete",) + 2 * (CALIBRATION + 2 * FINALISTS * LOADS,)


def test_the_run_and_show_tell_what_was_found(searched: Path) -> None:
    said, shown = (searched / "said").read_text(), roofbench(searched, "show").out
    for name in ("bf16", "fp8_e4m3"):
        for load in ("sustained", "burst"):
            found = re.compile(
                rf"^peak {name} {load} \S+ [TP]FLOP/s by {BEST} \(of \d+ shapes looked at in \S+ s\), sets the empirical roof",
                re.M,
            )
            assert len(found.findall(said)) == len(found.findall(shown)) == 1
    told = [row["search"] for row in rows(searched)]
    assert all(each["sets_roof"] and each["looking_s"] > 0 and each["shapes_looked_at"] > 1 for each in told)
    assert sum({each["looking_s"] for each in told}) < float((searched / "took_s").read_text())
    assert sum(each["is_best"] for each in told) == 2 * LOADS


@pytest.mark.parametrize("content", ["x'00'", "3"])
def test_standings_that_are_damaged_in_the_store_cost_the_number_of_shapes_alone(
    content: str, searched: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "damaged.db"
    copy.write_bytes((searched / "roofbench.db").read_bytes())
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(f"update artifact set content = {content}")
    said = roofbench(tmp_path, "show", "--store", str(copy))
    assert said.status == 0, said.err
    assert re.search(rf"^peak bf16 sustained \S+ TFLOP/s by {BEST}, sets the empirical roof", said.out, re.M)


def test_progress_says_the_round_and_who_is_ahead(searched: Path) -> None:
    lines = [line for line in (searched / "said").read_text().splitlines() if line.startswith("search ")]
    bf16 = [line for line in lines if " bf16 " in line]
    assert "making candidates ready" in bf16[0]
    assert all("; ahead " in line and "(unverified)" in line for line in bf16[2:])
    assert f"ahead {BEST}, about 800 TFLOP/s" in bf16[-1]


def test_a_best_that_computes_wrongly_is_stored_as_such_and_others_are_measured(tmp_path: Path) -> None:
    said = run(tmp_path, f"++backends.fake.options.faults={{{BEST}:wrong}}")
    assert said.status == 3
    assert [(shape(row) == BEST, row["outcome"]) for row in rows(tmp_path)] == 2 * [(True, "incorrect"), *2 * [(False, "ok")]]


def test_where_all_finalists_are_wrong_the_next_are_measured(tmp_path: Path) -> None:
    said = run(tmp_path, f"++backends.fake.options.faults={{{BEST}:wrong}}", "search.finalists=1")
    assert said.status == 3
    assert [row["outcome"] for row in rows(tmp_path)] == 2 * ["incorrect", "ok"]
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        (info,) = reader.runs()
    assert (info.status, info.finished, info.planned) == ("complete",) + 2 * (CALIBRATION + 2 * LOADS,)


MORE_FAULTS = [pytest.param(fault, marks=pytest.mark.thorough) for fault in ("oom", "abort@measure")]


@pytest.mark.parametrize("fault", ["abort", "error", *MORE_FAULTS])
def test_a_candidate_that_fails_falls_out_and_the_search_goes_on(fault: str, tmp_path: Path) -> None:
    said = run(tmp_path, f"++backends.fake.options.faults={{{BEST}:{fault}}}", "search.budget_s=3")
    assert said.status == 0, said.err
    found = rows(tmp_path)
    assert len(found) == FINALISTS * LOADS
    assert BEST not in map(shape, found)


def test_a_format_that_is_not_there_is_stored_as_unsupported(tmp_path: Path) -> None:
    said = run(tmp_path, "++backends.fake.options.lacks=[bf16]")
    assert said.status == 0, said.err
    found = rows(tmp_path)
    assert {(row["outcome"], row["reason"]) for row in found} == {("unsupported", "planted: no bf16")}
    assert len(found) == FINALISTS * LOADS
    assert re.search(r"round \d", said.out) is None
    for load in ("sustained", "burst"):
        assert f"peak bf16 {load}: none, sets no roof: unsupported: planted: no bf16\n" in said.out


def test_every_device_has_its_own_search(tmp_path: Path) -> None:
    said = run(tmp_path, "backends.fake.options.devices=2", "device=all")
    assert said.status == 0, said.err
    best = [(row["device_slot"], row["regime"]["load"]) for row in rows(tmp_path) if shape(row) == BEST]
    assert sorted(best) == [(slot, load) for slot in (0, 1) for load in ("burst", "sustained")]


def test_one_load_is_searched_alone_where_it_was_asked_for(tmp_path: Path) -> None:
    assert run(tmp_path, "measure.regimes=[cold/sustained/device]").status == 0
    assert [row["regime"]["load"] for row in rows(tmp_path)] == ["sustained"] * FINALISTS


@pytest.mark.parametrize(
    ("words", "let_through", "results"),
    [
        ("round 1 of 4, 9 candidates", {"looks": 8}, CALIBRATION),
        ("[ 7/11]", {"finalists": 2}, CALIBRATION + 2),
        pytest.param("[10/11]", {"finalists": 5}, CALIBRATION + 5, marks=pytest.mark.thorough),
    ],
)
def test_a_killed_search_goes_on_and_nothing_is_lost_or_doubled(
    words: str, let_through: dict[str, int], results: int, tmp_path: Path
) -> None:
    stopped(tmp_path, signal.SIGKILL, words, **let_through)
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        before = [(row.result_id, row.case_key) for row in reader.results(reader.runs()[0].run)]
    assert len(before) == results
    left = roofbench(tmp_path, "plan", "resume=latest").out
    assert f"{CALIBRATION + FINALISTS * LOADS - results} of its 11 cases are left" in left
    words = "s for the best of " if results == CALIBRATION else f"; {CALIBRATION + 6 - results} of 6 cases left to measure"
    assert words in left
    resumed = roofbench(tmp_path, "run", "resume=latest")
    assert resumed.status == 0, resumed.err
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        (info,) = reader.runs()
        after = [(row.result_id, row.case_key) for row in reader.results(info.run)]
    assert (info.status, info.finished, info.planned) == ("complete", 11, 11)
    assert after[: len(before)] == before
    assert len({key for _, key in after}) == len(after)
    assert "making candidates ready" not in resumed.out, "what was made ready is known from the store"


def test_an_interrupted_search_ends_in_order_and_goes_on(tmp_path: Path) -> None:
    status, out, err = stopped(tmp_path, signal.SIGINT, "round 2 of 4, 5 candidates", looks=26)
    assert (status, err) == (130, "")
    assert "interrupted: SIGINT received, 6 cases left" in out
    resumed = roofbench(tmp_path, "run", "resume=latest")
    assert resumed.status == 0, resumed.err
    assert "round 1 of" not in resumed.out
    assert "round 2 of" in resumed.out
    assert roofbench(tmp_path, "run", "resume=latest").status == 2


def test_max_time_ends_a_search_politely(tmp_path: Path) -> None:
    """Making the first two candidates ready takes longer; how much of the calibration there is time for is the host's pace."""
    said = run(tmp_path, "max_time_s=2", "++backends.fake.options.look_s=1.5")
    assert said.status == 0, said.err
    left = re.search(r"max_time_s=2 reached, (\d+) cases left", said.out)
    assert left is not None, said.out
    assert LOADS * FINALISTS <= int(left[1]) <= LOADS * FINALISTS + CALIBRATION


def test_a_plan_tells_the_budget_and_counts_what_the_run_will_store(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "plan", *DEVICE)
    assert said.status == 0, said.err
    lines = said.out.splitlines()
    (search,) = [line for line in lines if line.startswith("search ")]
    assert "gemm bf16 library" in search
    assert "10 s for the best of " in search
    assert "then 3 measured cold/sustained/device and cold/burst/device" in search
    assert lines[-1].startswith("11 cases on fake Simulated Accelerator")
    as_json = json.loads(roofbench(tmp_path, "plan", *DEVICE, "--json").out)
    assert [row["job"] for row in as_json] == ["calibration"] * CALIBRATION + ["gemm"]
    assert (as_json[-1]["case_key"], as_json[-1]["search"]["budget_s"], as_json[-1]["format"]) == (None, 10.0, "bf16")


def test_looking_counts_in_the_time_of_its_search_and_of_the_whole_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def said(*arguments: str) -> str:
        assert cli.main(["plan", *DEVICE, *arguments]) == 0
        return capsys.readouterr().out

    predicted_s = [json.loads(said("--json", f"search.warm_up_s={seconds}"))[-1]["predicted_s"] for seconds in (0, 3600)]
    assert predicted_s[1] - predicted_s[0] == pytest.approx(3600)
    lines = said("search.warm_up_s=3600").splitlines()
    (search,) = [line for line in lines if line.startswith("search ")]
    assert search.endswith(f"  {predicted_s[1]:.1f} s")
    assert ": about 1 h " in lines[-1]


def test_a_search_needs_no_shapes_and_tells_which_of_those_named_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plan", *DEVICE, "jobs.gemm.shapes=[]"]) == 0
    assert "left out" not in capsys.readouterr().out
    assert cli.main(["plan", *DEVICE, "jobs.gemm.shapes=[100000,50000,40000,30000]"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("left out: ")]
    assert [line.split(":")[1].split(" ")[1:3] for line in told[:3]] == [
        ["gemm", "x".join([size] * 3)] for size in ("100000", "50000", "40000")
    ]
    assert told[3:] == ["left out: 1 more shape that was named"]


REFUSED = [
    ("search.step=4", "search.step=4 is not between 16 and "),
    ("search.m=512", "search.m=512 is below search.step=1024: no size is left"),
    ("search.budget_s=0", "search.budget_s=0.0 is not between 0.001 and 86400"),
    ("search.finalists=0", "search.finalists=0 is not between 1 and 64"),
    ("search.step=16", "search.step=16 makes 1342177280 shapes, above 1000000; take a larger step"),
    (
        "max_cases=10",
        "the plan has 11 cases for one device (5 of calibration), above max_cases=10; shorten an axis ("
        "formats, regimes, search.finalists), or write max_cases=11, or null for no limit\n",
    ),
    (
        "max_time_s=4",
        "max_time_s=4 is too short for a search to come any further: to warm up (search.warm_up_s=5) and to look once",
    ),
    ("search.stpe=512", "unknown key 'search.stpe'; did you mean 'step'?"),
    (
        "backends.fake.options.device={memory_bytes:200000000}",
        "no shape of search.step=1024 fits in the memory of fake device 0",
    ),
]


@pytest.mark.parametrize(("override", "message"), REFUSED, ids=[override for override, _ in REFUSED])
def test_bad_settings_are_one_line_and_create_nothing(
    override: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    added = "++" if "options" in override else ""
    assert cli.main(["run", *DEVICE, f"{added}{override}"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"roofbench: {message}")
    assert said.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("override", ["search.step=512", "++search.stpe=512", "search={step: 512}"])
def test_a_search_setting_without_a_search_says_where_there_is_one(override: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "seed=3", override, "experiment=standard"]) == 2
    assert capsys.readouterr().err == (f"roofbench: {override} is set but the run has no search; add experiment=peak\n")


@pytest.mark.parametrize(
    ("override", "complaint"),
    [("seed=3", "'NoneType' object has no attribute 'get'"), ("search.step=512", "'str' object has no attribute 'get'")],
)
def test_the_same_complaint_about_anything_else_and_another_about_a_search_are_not_taken_for_it(
    override: str, complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AttributeError(complaint)

    monkeypatch.setattr("hydra.compose", broken)
    assert cli.main(["plan", override]) == 2
    assert capsys.readouterr().err == f"roofbench: the configuration cannot be composed: {complaint}\n"


def grids_made(monkeypatch: pytest.MonkeyPatch) -> list[SearchSettings]:
    made: list[SearchSettings] = []

    def counted(settings: SearchSettings, *rest: Any) -> Space:
        made.append(settings)
        return space(settings, *rest)

    monkeypatch.setattr("suite.search.space.space", counted)
    return made


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_plan_makes_the_grid_of_each_search_once(
    form: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = grids_made(monkeypatch)
    assert cli.main(["plan", *DEVICE, "jobs.gemm.formats=[bf16,fp8_e4m3]", *form]) == 0
    assert capsys.readouterr().out.count("fp8_e4m3") == 1
    assert len(made) == 2


def test_a_run_makes_it_once_more_for_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = grids_made(monkeypatch)
    assert cli.main(["run", *DEVICE, *QUICK]) == 0
    assert len(made) == 2
