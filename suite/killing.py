"""Killing a process that may hold a device, which dies of nothing while it waits within the kernel."""

import subprocess
from contextlib import suppress

# The kernel's tear-down of a large device context; a wedged driver never ends it, and must not hold up who kills.
KILLED_S = 30.0


def end(process: "subprocess.Popen[bytes]", killed_s: float = KILLED_S) -> bool:
    """Kill a child and wait for its end, ``killed_s`` at most; whether it has come.  Harmless when it is dead."""
    process.kill()
    return has_ended(process, killed_s)


def has_ended(process: "subprocess.Popen[bytes]", killed_s: float = KILLED_S) -> bool:
    """Wait for the end of a child that was killed, ``killed_s`` at most."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(killed_s)
    return process.poll() is not None
