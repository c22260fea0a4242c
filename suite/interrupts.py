"""Ctrl-C and a request to terminate, turned into whatever ends a run in order."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXIT_INTERRUPTED = 130  # what a shell reports for a process that SIGINT ended

_told: list[str] = []  # the signals that were acted on, by name


@contextmanager
def on_interrupt(act: Callable[[str], None]) -> Iterator[None]:
    """Within the block the first of ``SIGNALS`` calls ``act`` with its name; a second one ends the process as it would have.

    ``act`` runs inside the signal handler.  A signal that is ignored (``nohup``) stays so.  In a thread other than the main
    one signals cannot be handled and nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    taken = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    acted = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal acted
        if acted:
            _end(number, before[signal.Signals(number)], frame)
            return
        # The handlers stay: of two signals that came together Python would lose the second, with an error of its own.
        acted = True
        _told.append(signal.Signals(number).name)
        act(signal.Signals(number).name)

    for number in taken:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])


def _end(number: int, handler: Any, frame: FrameType | None) -> None:
    """What the signal would have done without us."""
    if callable(handler):
        handler(number, frame)
        return
    signal.signal(number, handler)
    signal.raise_signal(number)


def was_told_to_end() -> bool:
    """Whether a signal has ended what this process did, so that whatever fails after it is no other end."""
    return bool(_told)


def leave(name: str) -> None:
    """End as Ctrl-C does, whichever signal it was."""
    raise KeyboardInterrupt(name)
