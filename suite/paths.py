"""Paths that a person gave: how they stand in a message, and how what they name is opened."""

import os
from pathlib import Path


def shown(path: Path) -> str:
    """A path as it can stand in a one-line message."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def without_waiting(path: str, flags: int) -> int:
    """An ``opener`` that does not wait for somebody to write into a pipe: one without a writer reads as empty."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return descriptor
