"""``roofbench targets``: the matrix, its exit status, what it takes from the store, and what ends it early."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from suite import cli
from suite.store.queries import Reader
from suite.targets import listing, pool
from suite.targets.listing import Listing
from suite.targets.names import Program
from tests.cli.command import TIME_LIMIT_S, roofbench, start
from tests.cli.test_quick_answers import loaded

NONE_MISSING = {"triton": "", "xla": "", "tpu": ""}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have programs of these names, compiled by the child of ``tests.targets.scripted``; returns what sets them."""
    monkeypatch.setattr(pool, "MODULE", "tests.targets.scripted")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))

    def programs(*names: str, missing: dict[str, str] = NONE_MISSING) -> None:
        own = tuple(Program(name, name, "triton", f"digest of {name}") for name in names)
        versions = {"triton": {"triton": "3.7.1"}, "xla": {}}
        monkeypatch.setattr(listing, "listing", lambda: Listing(own, versions, missing, "EPYC"))

    return programs


def test_a_matrix_is_printed_and_stored_and_next_time_taken_from_the_store(scripted: Any, capsys: Any, tmp_path: Path) -> None:
    scripted("a", "refused")
    assert cli.main(["targets", "--jobs", "2"]) == 0
    said = capsys.readouterr()
    assert "22 cells: 11 ok, 11 unsupported" in said.out
    assert max(map(len, said.out.partition("  program ")[0].splitlines())) <= 80
    assert "a, refused on" not in said.out
    assert "refused on sm_80, sm_86" in said.out
    assert len(said.err.splitlines()) == 22
    before = Reader.open(str(tmp_path / "roofbench.db")).compiled()
    assert cli.main(["targets"]) == 0
    again = capsys.readouterr()
    assert "22 of them compiled before" in again.out
    assert again.err == ""
    assert Reader.open(str(tmp_path / "roofbench.db")).compiled() == before


def test_a_merge_says_what_it_brought_of_it(scripted: Any, capsys: Any) -> None:
    scripted("a")
    cli.main(["targets", "--target", "sm_90", "--store", "there.db"])
    capsys.readouterr()
    assert cli.main(["store", "merge", "there.db"]) == 0
    assert capsys.readouterr().out == "there.db: 0 runs and 0 results copied; 1 compiled program copied\n"


def test_json_has_every_cell_as_compiled_with_what_follows_from_its_facts(scripted: Any, capsys: Any) -> None:
    scripted("a")
    for cached in (False, True):
        assert cli.main(["targets", "--target", "sm_90", "gfx942", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [(row["program"], row["target"], row["evidence"], row["cached"]) for row in rows] == [
            ("a", "sm_90", "compiled", cached),
            ("a", "gfx942", "compiled", cached),
        ]
        assert rows[0]["occupancy"]["share"] == 0.5
        assert rows[0]["facts"]["registers"] == 64


def test_again_compiles_what_the_store_has(scripted: Any, capsys: Any) -> None:
    scripted("a")
    cli.main(["targets", "--target", "sm_90", "--json"])
    first = json.loads(capsys.readouterr().out)
    cli.main(["targets", "--target", "sm_90", "--json", "--again"])
    (second,) = json.loads(capsys.readouterr().out)
    assert not second["cached"]
    assert second["configuration"] != first[0]["configuration"]  # by another child


def test_a_cell_that_should_compile_and_does_not_is_status_3_with_what_the_compiler_said(scripted: Any, capsys: Any) -> None:
    scripted("a", "abort")
    assert cli.main(["targets", "--target", "sm_90"]) == 3
    said = capsys.readouterr().out
    assert "1 ok, 1 crashed" in said
    assert "abort on sm_90: the compiler's process died of SIGABRT: LLVM ERROR:" in said
    assert cli.main(["targets", "--target", "sm_90"]) == 3  # from the store too
    assert cli.main(["targets", "--target", "sm_90", "--kernel", "a"]) == 0


def test_a_limit_ends_what_takes_too_long(scripted: Any, capsys: Any) -> None:
    scripted("hang", "a")
    cli.main(["targets", "--target", "sm_90", "--kernel", "a"])  # without a limit that a slow host runs into
    capsys.readouterr()
    assert cli.main(["targets", "--target", "sm_90", "--timeout", "2"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "1 ok, 1 timeout" in said
    assert "hang on sm_90: not compiled within 2 s; --timeout gives more" in said


def test_what_is_not_installed_is_said_once_with_the_remedy_and_creates_no_store(
    scripted: Any, capsys: Any, tmp_path: Path
) -> None:
    remedy = "torch and triton not installed; pip install 'roofbench[targets]'"
    scripted("a", "b", missing={**NONE_MISSING, "triton": remedy})
    assert cli.main(["targets"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.count(remedy) == 1
    assert "22 unsupported" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "sm90"], "unknown target 'sm90'; did you mean 'sm_90'?"),
        (["--target", "h200"], "unknown target 'h200'; choose from: cpu, gfx1100, gfx1201, gfx90a"),
        (["--kernel", "aa"], "unknown kernel 'aa'"),
        (["--kernel", "a", "--target", "cpu"], "--kernel a is not compiled for cpu: kernels named xla_ are for v5e"),
        (
            ["--kernel", "a", "--target", "v5e", "sm_90", "cpu"],
            "--kernel a is not compiled for v5e, cpu: kernels named xla_ are for v5e, v5p, v6e, tpu7x and cpu, the others for "
            "sm_ and gfx; leave v5e cpu out, or name one of the other kind beside it",
        ),
        (["--jobs", "0"], "--jobs 0 is no number of children; give 1 to 1024"),
        (["--timeout", "soon"], "--timeout soon is no time; give seconds above 0"),
        (["--timeout", "nan"], "--timeout nan is no time"),
        (["--targets", "cpu"], "unknown option '--targets' for roofbench targets; did you mean '--target'?"),
        (["--store", "no/folder/x.db"], "no/folder"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_said_and_creates_nothing(
    arguments: list[str], message: str, scripted: Any, capsys: Any, tmp_path: Path
) -> None:
    scripted("a")
    assert cli.main(["targets", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_flags_that_xla_does_not_take_are_refused_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jax")
    monkeypatch.setenv("XLA_FLAGS", "--no_such_flag=1")
    said = roofbench(tmp_path, "targets", "--kernel", "xla_gemm", "--target", "cpu")
    assert (said.status, said.out) == (2, "")
    assert said.err == (
        "roofbench: nothing can be compiled with XLA_FLAGS=--no_such_flag=1: Unknown flag in XLA_FLAGS: --no_such_flag=1; "
        "correct it, or unset XLA_FLAGS\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_what_was_compiled_under_other_variables_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    rows = []
    for flags in ("", "--xla_cpu_enable_fast_math=true", ""):
        monkeypatch.setenv("XLA_FLAGS", flags)
        rows += json.loads(roofbench(tmp_path, "targets", "--kernel", "xla_calibration.empty", "--target", "cpu", "--json").out)
    assert [(row["cached"], row["versions"].get("XLA_FLAGS")) for row in rows] == [
        (False, None),
        (False, "--xla_cpu_enable_fast_math=true"),
        (True, None),
    ]
    assert rows[0]["key"] == rows[2]["key"] != rows[1]["key"]


def test_an_interruption_keeps_what_was_compiled_and_leaves_no_child(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    running = start(tmp_path, "targets", "--kernel", "gemm", "--jobs", "1")
    assert running.stderr is not None
    first = running.stderr.readline()
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(running.pid)], capture_output=True, text=True, check=True)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=TIME_LIMIT_S)
    assert running.returncode == 130
    assert "native" in first
    assert "of 99 cells are known; what was compiled is in roofbench.db" in err
    kept = Reader.open(str(tmp_path / "roofbench.db")).compiled()
    assert 1 <= len(kept) < 99
    assert f"{len(kept)} cells: {len(kept)} ok" in out
    own = [int(pid) for pid in children.stdout.split()]
    assert own
    assert not [pid for pid in own if Path(f"/proc/{pid}").exists()]


def test_the_command_loads_no_framework(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    assert loaded("targets", "--kernel", "clock", "--target", "gfx1100").isdisjoint({"torch", "triton", "jax", "backends"})


def test_the_listing_says_how_it_failed(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(listing, "MODULE", "tests.nowhere")
    monkeypatch.setattr(listing, "sys", type("Sys", (), {"executable": sys.executable}))
    assert cli.main(["targets"]) == 1
    assert "which programs there are cannot be told:" in capsys.readouterr().err
    assert not list(Path().iterdir())
