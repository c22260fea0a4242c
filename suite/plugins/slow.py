"""A word about a plugin that keeps a command waiting: a command that hangs in somebody else's code would say nothing."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

SLOW_S = 5.0


@contextmanager
def told_when_slow(what: str) -> Iterator[None]:
    """Say on standard error ``what`` goes on (``importing ...``) where the block takes longer than ``SLOW_S`` seconds."""
    timer = Timer(SLOW_S, _tell, [what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tell(what: str) -> None:
    """While a configuration is composed, the first Ctrl-C is held back (``suite.config.interruption``)."""
    advice = "; Ctrl-C, and once more if need be, ends it" if callable(signal.getsignal(signal.SIGINT)) else ""
    sys.stderr.write(f"roofbench: still {what}, after {SLOW_S:g} s{advice}\n")
    sys.stderr.flush()
