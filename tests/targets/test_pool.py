"""Children that compile: killed at the limit with all that they started, replaced, and asked on."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.targets import pool
from suite.targets.pool import Asked, Child, Pool, said_last
from tests.patience import PATIENCE_S as LONG_S
from tests.targets.scripted import asked, command, command_that_dies


def ended(cells: list[Asked], jobs: int = 1, limit_s: float = LONG_S, made_by: Any = command) -> dict[str, Any]:
    return {cell.program: answer for cell, answer in Pool(jobs, limit_s, os.environ, made_by).run(cells)}


def gone(pid: int) -> bool:
    until_s = time.monotonic() + LONG_S
    while time.monotonic() < until_s:
        if not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return True
        time.sleep(0.02)
    return False


def test_every_cell_is_answered_by_children_that_serve_many() -> None:
    found = ended(asked(*"abcdef"), jobs=2)
    assert list(found) == sorted(found, key=list(found).index)
    assert {each["outcome"] for each in found.values()} == {"ok"}
    assert 1 <= len({each["configuration"] for each in found.values()}) <= 2


def test_an_abort_is_told_with_what_the_compiler_said_and_costs_no_other_cell() -> None:
    found = ended(asked("a", "abort", "leave", "b"))
    assert found["abort"]["outcome"] == "crashed"
    assert found["abort"]["reason"] == "the compiler's process died of SIGABRT: LLVM ERROR: Unsupported DotScaleOp"
    assert found["leave"]["reason"] == "the compiler's process left with status 7: giving up"
    assert found["a"]["outcome"] == found["b"]["outcome"] == "ok"


def test_a_cell_past_its_limit_is_killed_with_what_it_started_and_the_rest_goes_on() -> None:
    seen: list[int] = []
    made = Pool(1, 1.5, os.environ, command)
    for cell, answer in made.run(asked("hang with a child", "a")):
        if cell.program == "a":
            assert answer["outcome"] == "ok"
            continue
        assert (answer["outcome"], answer["seconds"], answer["facts"]) == ("timeout", 1.5, {"limit_s": 1.5})
        assert answer["reason"] == "not compiled within 1.5 s; --timeout gives more"
        made._limit_s = LONG_S  # the other cell is to be compiled however slow the host is
        seen.append(1)
    assert seen


def test_whoever_stops_listening_ends_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Child] = []

    class Noted(Child):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            started.append(self)

    monkeypatch.setattr(pool, "Child", Noted)
    running = Pool(2, LONG_S, os.environ, command).run(asked("a", "hang", "b"))
    next(running)
    running.close()  # what an interruption does
    assert len(started) == 2
    assert all(gone(child.process.pid) for child in started)


def test_a_child_that_never_starts_says_why_for_each_cell() -> None:
    found = ended(asked("a", "b"), jobs=2, made_by=command_that_dies)
    assert {each["outcome"] for each in found.values()} == {"crashed"}
    assert {each["reason"] for each in found.values()} == {
        "the compiler's process left with status 1: ModuleNotFoundError: no compiler"
    }


def test_a_group_is_killed_whole() -> None:
    child = Child(command(""), os.environ)
    while not child.read():
        pass
    child.ask(asked("hang with a child")[0], LONG_S)
    until_s = time.monotonic() + LONG_S
    while not (printed := Path(f"/proc/self/fd/{child.printed.fileno()}").read_text()) and time.monotonic() < until_s:
        time.sleep(0.02)
    child.end()
    assert gone(int(printed))


@pytest.mark.parametrize(
    ("printed", "last"),
    [
        ("a\nLLVM ERROR: no unit\nStack dump:\n0. x\n", "LLVM ERROR: no unit"),
        ("a\nb\n\n", "b"),
        ("", ""),
        ("spoken\nFatal Python error: Aborted\nThread 1\n", "spoken"),
    ],
)
def test_the_last_that_a_compiler_says_is_found(printed: str, last: str) -> None:
    assert said_last(printed) == last


@pytest.mark.parametrize(("free", "told"), [(0, "could print nothing, for the disk of "), (1, "printed nothing")])
def test_a_full_disk_is_why_a_child_leaves_without_a_word(monkeypatch: pytest.MonkeyPatch, free: int, told: str) -> None:
    monkeypatch.setattr("suite.targets.pool.shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    child = Child(["false"], os.environ)
    try:
        assert child.gone().startswith(f"the compiler's process left with status 1 and {told}")
    finally:
        child.end()
