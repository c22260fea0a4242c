"""Printing lists for programs, and lines for people beside what a command prints."""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any


def json_text(value: Any) -> str:
    """One value as indented JSON; ``ValueError`` for NaN and infinities, which no other program would read."""
    return json.dumps(value, indent=2, allow_nan=False)


def json_array(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Lines of a JSON array, one row each, so that a long list is neither held in memory nor hard to read."""
    texts = (json.dumps(row, allow_nan=False) for row in rows)
    held = next(texts, None)
    yield "["
    for text in texts:
        yield f"{held},"
        held = text
    if held is not None:
        yield held
    yield "]"


def say(line: str) -> None:
    """Tell a person on standard error, at once."""
    sys.stderr.write(f"roofbench: {line}\n")
    sys.stderr.flush()
