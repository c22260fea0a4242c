"""Watching a sweep: a live display on a terminal, plain lines where there is none.

A display is a context manager that is called with each of ``suite.events``; it only reads them.
"""

from types import TracebackType
from typing import Protocol, Self, TextIO

from suite.events import Event
from suite.progress.lines import Lines


class Display(Protocol):
    """Shows a sweep's events between ``__enter__`` and ``__exit__``."""

    def __call__(self, event: Event) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def display(stream: TextIO) -> Display:
    """Live on a terminal, else one line a finished case."""
    if not stream.isatty():
        return Lines(stream)
    from suite.progress.live import Live

    return Live(stream)
