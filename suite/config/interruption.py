"""Ctrl-C while a configuration is composed: held back until the libraries that compose it are done.

OmegaConf sets its nodes up in steps and catches what is raised between them: a ``KeyboardInterrupt`` there is lost, and ends in
an error about half of a node.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Within the block the first SIGINT is only noted; it is raised as ``KeyboardInterrupt`` at the end, instead of any error.

    A second one is treated as it would be outside: what is read may never end.  Where SIGINT is ignored, in a thread other than
    the main one, and within such a block, which holds it back already, nothing is changed.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before) or isinstance(before, _HeldBack):
        yield
        return
    held = _HeldBack(before)
    signal.signal(signal.SIGINT, held)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held.noted:
            before(signal.SIGINT, None)


class _HeldBack:
    """A handler that notes the first signal and passes every later one on to ``before``."""

    def __init__(self, before: Callable[[int, FrameType | None], object]) -> None:
        self.before = before
        self.noted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            self.before(number, frame)
        self.noted = True
