"""Running the command line as a person does, in a child process and an empty folder."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.cli.ready import Server
from tests.patience import PATIENCE_S

CONFIGS = Path(__file__).parent / "configs"
FAKE = ("--config-dir", str(CONFIGS), "backend=fake", "experiment=tiny")
TIME_LIMIT_S = PATIENCE_S


def leaves_slowly(leaving: Path) -> tuple[str, str]:
    """Overrides for a backend whose worker writes ``leaving`` when it is told to leave, and does not."""
    return "backends.fake.target=tests.processes.strange:Leaving", f"+backends.fake.options.leaving={leaving}"


def wait_for(path: Path) -> None:
    """Wait until there is such a file."""
    until = time.monotonic() + TIME_LIMIT_S
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.01)


class Said(NamedTuple):
    """How the command ended and what it printed."""

    status: int
    out: str
    err: str


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start ``roofbench`` in ``folder``."""
    return subprocess.Popen(
        [sys.executable, "-m", "suite.cli", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def let_through(cases: int, gate: Path) -> tuple[str, ...]:
    """Overrides for the fake backend: behind so many cases it waits for a file."""
    return f"++backends.fake.options.let_through={cases}", f"++backends.fake.options.gate={gate}"


@contextmanager
def held_up(folder: Path, *arguments: str, cases: int = 6) -> Iterator[tuple[subprocess.Popen[str], Callable[[], None]]]:
    """Start ``roofbench`` on the fake backend, which comes no further than so many cases before the function is called."""
    gate = folder / "gate"
    with start(folder, *arguments, *let_through(cases, gate)) as child:
        try:
            yield child, gate.touch
        finally:
            gate.touch()


def roofbench(folder: Path, *arguments: str) -> Said:
    """Run it to its end, forked from a process that has its modules imported."""
    return Said(*_server().call(folder, arguments, os.environ, TIME_LIMIT_S))


@cache
def _server() -> Server:
    return Server()
