"""Bad input ends as one line on stderr, with status 2, before anything runs or is created."""

import sqlite3
from pathlib import Path

import pytest

from suite import cli
from suite.errors import DeviceBusy
from tests.cli.command import FAKE, roofbench

TAKEN = "what nccl-tests or rccl-tests print, their JSON (-J), or what rccl-tests write with -x"
HELP = "see `roofbench {0} --help`"
REFUSED = [
    (["rnu"], "unknown command 'rnu'; did you mean 'run'?"),
    (["--nope"], "unknown option '--nope' for roofbench; choose from: --help, --version"),
    (
        ["hardware", "mi30"],
        "hardware 'mi30' could be any of amd-mi300a, amd-mi300x; name one of them",
    ),
    (["devices", "foo"], "'foo' does not name a backend; write backend=NAME, such as backend=cuda"),
    (
        ["devices", "backend=cpu,cuda"],
        "backend=cpu,cuda gives several values; write 'backend=[cpu,cuda]' to ask each of them",
    ),
    (
        ["selftest", "--last", "--store", "x.db"],
        "unknown option '--store' for roofbench selftest, whose store is a setting; write store.url=PATH",
    ),
    (["plan", "--store=x.db"], "unknown option '--store' for roofbench plan, whose store is a setting; write store.url=x.db"),
    (
        ["run", "--cfg", "job", "-p", "measur"],
        "--package measur is no part of the configuration that has a value; did you mean 'measure'?",
    ),
    (
        ["run", "--cfg", "job", "-p", "measure.targt"],
        "--package measure.targt is no part of the configuration that has a value; `roofbench run --cfg job` prints all of it",
    ),
    (["import", "/dev/null"], f"/dev/null is empty; give {TAKEN}"),
    (["run", "+backends.cpu.options.thread=1"], "backend cpu has no option 'thread'; did you mean 'threads'?"),
    (["plan", "backend=cpu", "+backends.cpu.options.thread=1"], "backend cpu has no option 'thread'; did you mean 'threads'?"),
    (
        ["plan", "backend=cpu", "backends.cpu.options.threads=1"],
        "backends.cpu.options.threads is not set yet; add it with +backends.cpu.options.threads=VALUE",
    ),
    (["report", "-o", ".html"], "--output .html has no name before its ending; write for instance report.html"),
    (["run", "resume="], "resume is empty; write resume=latest, or a run that `roofbench show --runs` lists"),
    (["run", "measure.deadlines.start_s=inf"], "measure.deadlines.start_s=inf is not finite; choose from 0.001 to 604800"),
    (["show", "--jsn"], "unknown option '--jsn' for roofbench show; did you mean '--json'?"),
    (["show", "--js"], "unknown option '--js' for roofbench show; did you mean '--json'?"),
    (["plan", "--confg-dir=x"], "unknown option '--confg-dir=x' for roofbench plan; did you mean '--config-dir'?"),
    (["show", "a", "b", "c"], "unexpected argument 'c'; " + HELP.format("show")),
    (["store", "mrge"], "unknown action 'mrge'; did you mean 'merge'?"),
    (["store"], "the following arguments are required: ACTION; " + HELP.format("store")),
    (["store", "check", "--jso"], "unknown option '--jso' for roofbench store check; did you mean '--json'?"),
    (["store", "prune"], "prune needs runs or a date: roofbench store prune RUN..., or --before 2026-01-31"),
    (["store", "prune", "--before", "soon"], "--before soon is not a date; write YYYY-MM-DD, such as 2026-01-31"),
    (["run", "--cfg", "jbo"], "unknown --cfg/-c 'jbo'; did you mean 'job'?"),
    (
        ["run", "-m", "--cfg", "job"],
        "-m and --cfg do not go together, as in any Hydra program: a sweep has a configuration for each combination; "
        "write --cfg or --info with one value each, without -m",
    ),
    (["run", "wait_s=-1"], "wait_s=-1 is not between 0 and 604800 (a week)"),
    (["run", "wait_s=inf"], "wait_s=inf is not between 0 and 604800 (a week)"),
    (["run", "--resolve"], "--package and --resolve go with --cfg; write roofbench run --cfg job --resolve"),
    (["run", "job=gem"], "unknown job 'gem'; did you mean 'gemm'?"),
    (["plan", "job=gem"], "unknown job 'gem'; did you mean 'gemm'?"),
    (["devices", "backend=cud"], "unknown backend 'cud'; did you mean 'cuda'?"),
    (["run", "--cfg", "job", "backend=cud"], "unknown backend 'cud'; did you mean 'cuda'?"),
    (["run", "--info", "defaults", "job=gem"], "unknown job 'gem'; did you mean 'gemm'?"),
    (["run", "-m", "job=gem,gemm"], "unknown job 'gem'; did you mean 'gemm'?"),
    (["run", "-m", "measure.target=0.1,x"], "measure.target=x is not a number"),
    (["plan", "quick"], "'quick' is not an override; write key=value, such as experiment=standard or jobs.gemm.shapes=[512]"),
    (
        ["hardware", "h200x"],
        "unknown hardware 'h200x'; did you mean 'nvidia-h200-sxm5-141gb'? `roofbench hardware` lists all 58",
    ),
    (["report", "--output", "x.pdf"], "--output x.pdf is neither .html nor .md; choose from: .html, .md"),
    (
        ["report", "--output", "nowhere/x.md"],
        "--output nowhere/x.md cannot be written: nowhere is no directory; create it first",
    ),
    (["report", "--output", "."], "--output . is neither .html nor .md; choose from: .html, .md"),
    (["dashboard", "no.db"], "no store at no.db; run `roofbench run` first, or name one: roofbench dashboard PATH"),
    (["dashboard", "--port", "x"], "argument --port: invalid int value: 'x'; " + HELP.format("dashboard")),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_one_line_and_status_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"roofbench: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_other_files_than_expected_are_named_for_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sqlite3.connect("other.db").execute("create table t (x)").connection.close()
    Path("all_reduce.log").write_text("# nThread 1 nGpus 8\n")
    Path("new.db").touch()
    said = []
    for arguments in (["import", "other.db"], ["dashboard", "all_reduce.log"], ["dashboard", "new.db", "other.db"]):
        assert cli.main(arguments) == 2
        said.append(capsys.readouterr().err)
    assert said == [
        "roofbench: other.db is an SQLite database and no log: `roofbench store merge` brings stores together; "
        f"import takes {TAKEN}\n",
        "roofbench: all_reduce.log is not a database: choose another with roofbench dashboard PATH\n",
        "roofbench: other.db is another program's database (tables t): choose another with roofbench dashboard PATH\n",
    ]


STORES = [
    ("store.url=folder", "store folder is a directory: name a file, such as folder/roofbench.db"),
    ("store.url=text.db", "{0}/text.db is not a database"),
    ("store.url=none/x.db", "store {0}/none/x.db cannot be created: {0}/none is no directory; create it first"),
    ("device=1", "device=1 is not among the devices of backend 'fake' (0); `roofbench devices` lists what there is"),
    ("device=GPU", "device=GPU is not among the devices of backend 'fake' (Simulated Accelerator);"),
    ("jobs.gemm.shapes=[200000x200000x200000]", "choose smaller shapes, or oversize=record to store such cases"),
    ("max_cases=2", "the plan has 7 cases for one device, above max_cases=2;"),
]


@pytest.mark.parametrize(("override", "message"), [each for each in STORES if each[0].startswith("device=")])
def test_a_plan_for_a_device_that_is_not_there_is_refused_like_the_run(override: str, message: str, tmp_path: Path) -> None:
    said = roofbench(tmp_path, "plan", *FAKE, override)
    assert (said.status, said.out) == (2, "")
    assert message in said.err


@pytest.mark.parametrize(("override", "message"), STORES, ids=[override for override, _ in STORES])
def test_a_run_that_cannot_be_is_refused_before_anything_is_created(override: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at " * 20)
    before = sorted(tmp_path.rglob("*"))
    said = roofbench(tmp_path, "run", *FAKE, override)
    assert said.status == 2
    assert said.err.startswith("roofbench: ")
    assert message.format(tmp_path) in said.err
    assert said.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_backend_without_a_device_says_what_it_said(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "run", *FAKE, "+backends.fake.options.start=raise")
    assert said.status == 2
    assert said.err.startswith("roofbench: no device for backend 'fake': ")
    assert list(tmp_path.iterdir()) == []


def test_other_errors_of_ours_keep_their_own_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def busy(argv: object) -> int:
        raise DeviceBusy("device 0 is held by another run")

    monkeypatch.setattr(cli, "run", busy)
    assert cli.main([]) == 1
    assert capsys.readouterr().err == "roofbench: device 0 is held by another run\n"


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run", lambda argv: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        cli.main([])


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    """``roofbench plan | head`` ends without a traceback."""
    import subprocess
    import sys

    code = f"{sys.executable} -m suite.cli plan experiment=thorough hardware=mi300x | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == str(cli.EXIT_PIPE_CLOSED)
