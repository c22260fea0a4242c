"""Bad input ends as one line on stderr, with status 2, before anything runs or is created."""

import os
import sqlite3
from pathlib import Path

import pytest

from suite import cli
from suite.errors import DeviceBusy
from tests.cli.command import FAKE, roofbench
from tests.cli.test_streams import shell

RECORDED = Path(__file__).parents[1] / "importers/data/nccl/all_reduce_8xGH200_good.log"

TAKEN = "what nccl-tests or rccl-tests print, their JSON (-J), or what rccl-tests write with -x"
LONG = 300 * "a"
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
        ["selftest", "--store", "x.db"],
        "--store x.db goes with --last, which only reads; where a selftest stores what it measures is a setting: "
        "write store.url=x.db",
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
    *(
        (
            ["store", "prune", "--before", date, *dry],
            f"--before {date} is in UTC before the year 1 or after 9999; write YYYY-MM-DD",
        )
        for date, *dry in (("0001-01-01T00:00:00+14:00",), ("9999-12-31T23:59:59-14:00", "--dry-run"))
    ),
    (
        ["show", "--store", "~nobody-of-that-name/x.db"],
        "--store '~nobody-of-that-name/x.db' begins with a home directory that is not known: give a full path",
    ),
    *(
        (
            [command, "backend=cpu", "store.url='~nobody-of-that-name/x.db'"],
            "store.url='~nobody-of-that-name/x.db' begins with a home directory that is not known: give a full path",
        )
        for command in ("run", "selftest")
    ),
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
    (
        ["plan", "--config-dir", ""],
        "--config-dir is empty; name a folder that holds groups such as experiment/mine.yaml, or leave it out",
    ),
    (
        ["plan", "experiment=peak", "search.step=4"],
        "search.step=4 is not between 16 and 2147483647; leave it out for what experiment=peak takes",
    ),
    (["run", "-m", "job=gem,gemm"], "unknown job 'gem'; did you mean 'gemm'?"),
    (["run", "-m", *FAKE, "measure.target=0.1,x"], "measure.target=x is not a number"),
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
    (["report", "--output", "."], "--output . is a directory; name a file in it"),
    (["report", "-o", ""], "--output names no file; write for instance report.html"),
    (["report", "-o", "n\nl.htm"], "--output 'n\\nl.htm' is neither .html nor .md; did you mean '.html'?"),
    (["report", "-o", f"{LONG}.html"], f"--output {LONG}.html cannot be written: File name too long; choose another name"),
    (  # which fits itself, and what is written first does not
        ["report", "-o", f"{LONG[:248]}.md"],
        f"--output {LONG[:248]}.md cannot be written: File name too long; choose another name",
    ),
    (
        ["dashboard", "n\no\33[2J.db"],
        "no store at 'n\\no\\x1b[2J.db'; run `roofbench run` first, or name one: roofbench dashboard PATH",
    ),
    (["dashboard", "no.db"], "no store at no.db; run `roofbench run` first, or name one: roofbench dashboard PATH"),
    (["dashboard", "."], "store . is a directory: name a file, such as roofbench.db"),
    (["dashboard", "--remote", "no.db"], "no store at no.db; run `roofbench run` first, or name one: roofbench dashboard PATH"),
    *(
        (arguments, f"{' '.join(option)} is an option of a command and stands behind it; write roofbench {where}")
        for arguments, option, where in (
            (["--store", "x", "show"], ["--store", "x"], "show --store x"),
            (["--store=x", "show", "latest"], ["--store", "x"], "show --store x"),
            (["--store", "x"], ["--store", "x"], "show --store x"),
            (["--json", "show"], ["--json"], "show --json"),
        )
    ),
    (["--store", "x", "run"], "unknown option '--store' for roofbench run, whose store is a setting; write store.url=PATH"),
    (["--store", "x", "devices"], "unknown option '--store' for roofbench devices; did you mean '--json'?"),
    (["show", "--runs", "nope"], "--runs lists every run and takes no nope; leave --runs out to show nope"),
    (["show", "--runs", "latest", "7"], "--runs lists every run and takes no latest 7; leave --runs out to show latest"),
    (["show", "--runs", "--keys"], "--runs lists every run and takes no --keys; leave --runs out to show one"),
    (
        ["show", "latest", "7", "--keys"],
        "--keys lists the keys of a run's cases as text and does not go with CASE 7; leave one of them out",
    ),
    (
        ["show", "--keys", "--json"],
        "--keys lists the keys of a run's cases as text and does not go with --json, whose rows have case_key and device_slot; "
        "leave one of them out",
    ),
    *(
        (
            ["devices", text],
            f"'{text}' changes nothing here: roofbench devices takes backend=NAME and the options of backends, "
            "backends.NAME.options.KEY=VALUE; other settings are for run and plan",
        )
        for text in ("device=0", "seed=1", "+hardware=my-xeon")
    ),
    *(
        (
            ["hardware", *name, "--config-dir", "nope"],
            "--config-dir nope is not a directory; name one that holds hardware/NAME.yaml",
        )
        for name in ((), ("cpu",), ("h200",))
    ),
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


def test_a_pipe_without_a_writer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe", 0o600)
    assert cli.main(["import", "pipe"]) == 2
    assert capsys.readouterr().err == f"roofbench: pipe is a pipe that nobody has written into; give {TAKEN}\n"
    Path("s.db").touch()
    assert cli.main(["dashboard", "--passphrase-file", "pipe", "s.db"]) == 2
    assert capsys.readouterr().err == (
        "roofbench: the passphrase has 0 characters; give at least 12, such as four random words\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "$R import <(cat $LOG) --store s.db",
        "cat $LOG | $R import /dev/stdin --store s.db",
        "mkfifo pipe; cat $LOG >pipe & until [ -p pipe ]; do :; done; $R import pipe --store s.db",
    ],
    ids=["a substitution", "standard input", "a pipe with a writer"],
)
def test_a_pipe_with_a_writer_is_imported(line: str, tmp_path: Path) -> None:
    said = shell(tmp_path, line, LOG=str(RECORDED))
    assert said.status == 0, said.err
    assert "all_reduce" in said.out


@pytest.mark.parametrize(
    ("content", "told"), [(None, "No such file or directory"), (b"\xff\xfe", "it is no UTF-8 text")], ids=["none", "no text"]
)
def test_a_passphrase_file_that_cannot_be_read_is_named_once(
    content: bytes | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.db").touch()
    if content is not None:
        os.close(os.open("phrase", os.O_CREAT, 0o600))
        Path("phrase").write_bytes(content)
    assert cli.main(["dashboard", "--passphrase-file", "phrase", "s.db"]) == 2
    assert capsys.readouterr().err == (
        f"roofbench: --passphrase-file phrase cannot be read: {told}; name a text file of yours\n"
    )


STORES = [
    ("store.url=folder", "store folder is a directory: name a file, such as folder/roofbench.db"),
    ("store.url=text.db", "{0}/text.db is not a database"),
    ("store.url=none/x.db", "store {0}/none/x.db cannot be created: {0}/none is no directory; create it first"),
    ("device=1", "device=1 is not among the devices of backend 'fake' (0); `roofbench devices` lists what there is"),
    ("device=GPU", "device=GPU is not among the devices of backend 'fake' (Simulated Accelerator);"),
    ("jobs.gemm.shapes=[200000x200000x200000]", "choose smaller shapes, or oversize=record to store such cases"),
    (
        "max_cases=2",
        "the plan has 7 cases for one device (5 of calibration), above max_cases=2; shorten an axis (measure.regimes), or "
        "write max_cases=7, ",
    ),
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
