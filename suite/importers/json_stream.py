"""JSON as tools leave it: several documents one after the other, lines of other programs between, an end that never came."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()
_CLOSERS = {"{": "}", "[": "]"}
_SPACE = re.compile(r"\s*")
# Only what may go on as JSON does: to explain each other line that begins with a bracket takes the whole text before it.
_START = re.compile(r"[\s,]*(?P<bracket>\[(?=\s*(?:[\]\[{\"\d\-tfnNI]|$))|\{(?=\s*(?:[\"}]|$)))?")


class Document(NamedTuple):
    """One value of a text; ``closed`` is false where its end is missing and what was whole of it is kept."""

    value: Any
    closed: bool


def documents(text: str) -> Iterator[Document]:
    """Every object and list that begins a line, in order, and everything else passed over."""
    position, end = 0, len(text.rstrip())
    while position < len(text):
        start = _START.match(text, position)
        if start is None or not start["bracket"]:
            position = _line_end(text, start.end() if start else position)
            continue
        position = start.end() - 1
        try:
            value, position = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            if text.find("\n", _space_end(text, error.pos), end) < 0:  # it is the end that is wrong: the text is cut
                kept = _whole_part(text[position:])
                if kept is not None:
                    yield Document(kept, closed=False)
                    return
            line_end = _line_end(text, position)
            if error.pos >= line_end:  # a line that is right as far as it goes, before another document
                kept = _whole_part(text[position:line_end])
                if kept is not None:
                    yield Document(kept, closed=False)
            position = line_end
        except (RecursionError, ValueError):  # nested deeper, or a number with more digits, than any tool has
            position = _line_end(text, position)
        else:
            yield Document(value, closed=True)


def _line_end(text: str, position: int) -> int:
    found = text.find("\n", position)
    return len(text) if found < 0 else found + 1


def _space_end(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _whole_part(text: str) -> Any:
    """A value whose end is missing, closed after the last part of it that is whole; ``None`` where nothing is."""
    closers: list[str] = []
    end, closing, inside, escaped = 0, "", False, False
    for index, character in enumerate(text):
        if inside:
            inside, escaped = escaped or character != '"', character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in _CLOSERS:
            closers.append(_CLOSERS[character])
        elif closers and character == closers[-1]:
            closers.pop()
            end, closing = index + 1, "".join(reversed(closers))
        elif character == ",":
            end, closing = index, "".join(reversed(closers))
    try:
        return json.loads(text[:end] + closing)
    except (ValueError, RecursionError):
        return None
