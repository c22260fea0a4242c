"""Paths that a person gave: how they stand in a message, and how what they name is opened."""

import os
import shlex
from pathlib import Path


def shown(path: Path) -> str:
    """A path as it can stand in a one-line message."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def is_text(path: str) -> bool:
    """Whether a path has a character for each of its bytes; others can be opened, and neither stored nor sent as text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def for_shell(text: str) -> str:
    """A word of a command that is to be typed: quoted for a shell, what cannot be printed in bash's ``$'...'``."""
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_for_bash, text))}'"


def _for_bash(character: str) -> str:
    if character in "'\\":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def without_waiting(path: str, flags: int) -> int:
    """An ``opener`` that does not wait for somebody to write into a pipe: one without a writer reads as empty."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return descriptor
