"""Running the command line as a person does, in a child process and an empty folder."""

import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.cli.ready import Server

CONFIGS = Path(__file__).parent / "configs"
FAKE = ("--config-dir", str(CONFIGS), "backend=fake", "experiment=tiny")
TIME_LIMIT_S = 120


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


def roofbench(folder: Path, *arguments: str) -> Said:
    """Run it to its end, forked from a process that has its modules imported."""
    return Said(*_server().call(folder, arguments, os.environ, TIME_LIMIT_S))


@cache
def _server() -> Server:
    return Server()
