"""Stored content that no writer puts there: found where rows are converted, and said in one line that names it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.exc import NoResultFound

from suite.store.files import shown

# What converting a value of the wrong kind, or looking for what is missing, may raise.
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, NoResultFound)
NO_TEXT = "it is no UTF-8 text"
LONGEST = 160  # characters of an explanation: some quote the value, which may be megabytes


class Damaged(Exception):
    """Something in a store is not what it should be; ``sqlite.translated``, which knows the file, makes a line of it."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where = where
        self.what = what


@contextmanager
def converting(where: str) -> Iterator[None]:
    """Around the conversion of what was stored: any failure is ``Damaged`` there."""
    try:
        yield
    except UNREADABLE as error:
        raise damaged(where, error) from error


def damaged(where: str, error: BaseException) -> Damaged:
    """The ``Damaged`` that a failed conversion means."""
    if isinstance(error, NoResultFound):
        return Damaged(where, "it is missing")
    if isinstance(error, UnicodeDecodeError):
        return Damaged(where, NO_TEXT)
    text = str(error)
    if isinstance(error, KeyError):
        return Damaged(where, f"{text[:LONGEST]} is missing")
    return Damaged(where, one_line(text or type(error).__name__))


def line(path: Path, found: Damaged) -> str:
    """The one line for whoever wanted to read the store."""
    return f"{shown(path)} is damaged: {found}; `roofbench store check` lists what is wrong"


def one_line(text: str) -> str:
    """An explanation without line breaks, control characters or endless quotations."""
    flat = " ".join(text[: 2 * LONGEST].split())
    safe = "".join(each if each.isprintable() else repr(each)[1:-1] for each in flat)
    return safe if len(safe) <= LONGEST else safe[: LONGEST - 3] + "..."


def json_object(value: Any, name: str) -> dict[str, Any]:
    """A JSON column that must hold an object."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no JSON object")
    return value


def scalars(value: Any, name: str) -> dict[str, Any]:
    """A JSON column that must hold an object of texts, numbers, truths and nulls."""
    for key, each in json_object(value, name).items():
        if isinstance(each, list | dict):
            raise ValueError(f"{name} {key[:40]} is no text, number or truth")
    return dict(value)


def texts(value: Any, name: str) -> tuple[str, ...]:
    """A JSON column that must hold a list of texts."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{name} is no list of texts")
    return tuple(value)
