"""A process that is killed is waited for, but not for ever: one that waits within the kernel dies of nothing."""

import subprocess
import sys
import time

from suite.killing import end, has_ended
from tests.patience import PATIENCE_S


def asleep() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


def test_a_child_that_dies_has_ended_and_is_reaped() -> None:
    child = asleep()
    assert end(child)
    assert child.returncode == -9
    assert end(child), "it may be asked for again"


def test_one_that_no_signal_reaches_is_not_waited_for() -> None:
    child = asleep()
    kill, child.kill = child.kill, lambda: None  # type: ignore[method-assign]
    began_s = time.monotonic()
    assert not end(child, killed_s=0.1)
    assert time.monotonic() - began_s < PATIENCE_S
    kill()
    assert has_ended(child)
