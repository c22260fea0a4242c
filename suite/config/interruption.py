"""Ctrl-C while a configuration is composed: held back until the libraries that compose it are done.

OmegaConf sets its nodes up in steps and catches what is raised between them: a ``KeyboardInterrupt`` there is lost, and ends in
an error about half of a node.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Within the block the first SIGINT is only noted; it is raised as ``KeyboardInterrupt`` at the end, instead of any error.

    A second one is treated as it would be outside: what is read may never end.  Where SIGINT is ignored, and in a thread other
    than the main one, nothing is changed.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    noted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal noted
        if noted:
            before(number, frame)
        noted = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if noted:
            before(signal.SIGINT, None)
