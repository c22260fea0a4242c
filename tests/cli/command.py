"""Running the command line as a person does, in a child process and an empty folder."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

CONFIGS = Path(__file__).parent / "configs"
FAKE = ("--config-dir", str(CONFIGS), "backend=fake", "experiment=tiny")
TIME_LIMIT_S = 120


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
    """Run it to its end."""
    with start(folder, *arguments) as child:
        out, err = child.communicate(timeout=TIME_LIMIT_S)
    return Said(child.returncode, out, err)
