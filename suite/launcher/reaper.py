"""Kills whatever a launcher's workers left behind, compile workers in sessions of their own included.

A worker dies with its parent, but what the worker started does not die with the worker, and whoever is killed with
``kill -9`` cleans up nothing.  So each worker carries a mark in its environment, which everything it starts inherits,
and this file runs as a process beside the launcher: once the launcher's end of a pipe closes, it kills all that bear
the mark.  It is run by path, in isolated mode, and imports the standard library only.
"""

import argparse
import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

MARK = "ROOFBENCH_WORKER"
PATIENCE_S = 10.0  # a process that holds a GPU can take seconds to die
PAUSE_S = 0.05
_PR_SET_PDEATHSIG = 1


def marked(mark: str, proc: Path = Path("/proc")) -> list[int]:
    """Return the living processes whose environment has ``ROOFBENCH_WORKER=<mark>`` or ``<mark>.<anything>``."""
    entry = f"{MARK}={mark}".encode()
    found = []
    for path in proc.glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to another user
            variables = path.read_bytes().split(b"\0")
            if any(variable == entry or variable.startswith(entry + b".") for variable in variables):
                found.append(int(path.parent.name))
    return found


def kill_marked(mark: str, patience_s: float = PATIENCE_S) -> list[int]:
    """Kill every marked process until none is left or patience ends; return the ones that would not die."""
    until = time.monotonic() + patience_s
    while True:
        left = marked(mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not left or time.monotonic() > until:
            return left
        time.sleep(PAUSE_S)


def wake_when_parent_ends() -> None:
    """Have the kernel continue this process when its parent ends: stopped, it would see nothing and stay for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


def main() -> int:
    """Wait until the other end of the pipe closes, then kill."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--mark", required=True)
    given = parser.parse_args()
    wake_when_parent_ends()
    while os.read(given.fd, 1):
        pass
    return 1 if kill_marked(given.mark) else 0


if __name__ == "__main__":
    sys.exit(main())
