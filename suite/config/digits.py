"""Digits of other scripts than ASCII: Python reads a number in them, where a person who sees ``٣`` cannot tell what was meant.

Settings that hold numbers, or text in which numbers stand (``512x512x512``), take the digits 0 to 9 only, and no more of them
in a row than a size can have; what is text, such as a note or a path, takes any.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from suite.errors import UsageError
from suite.values import written

MOST_DIGITS = 64  # no size needs as many; of thousands Python makes no number
TOO_LONG = re.compile(f"[0-9]{{{MOST_DIGITS + 1}}}")
HOLD_NUMBERS = ("jobs", "measure", "search")  # branches whose texts are sizes, formats and names of ours


def other_digit(text: str) -> str:
    """The first digit of a text that is none of 0 to 9; empty where there is none."""
    return "" if text.isascii() else next((each for each in text if each.isdecimal() and not each.isascii()), "")


def refuse_unread_numbers(key: str, value: Any) -> None:
    """``UsageError`` naming the first text within ``value`` that has such a digit, or too many of the others."""
    if isinstance(value, str):
        if digit := other_digit(value):
            raise UsageError(f"{key}={written(value)}: '{digit}' is none of the digits 0 to 9; write {_ascii(value)}")
        if TOO_LONG.search(value):
            raise UsageError(f"{key}={written(value)} has a number of more than {MOST_DIGITS} digits; write fewer")
    elif isinstance(value, Mapping):
        for name, each in value.items():
            refuse_unread_numbers(f"{key}.{name}", each)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            refuse_unread_numbers(f"{key}[{number}]", each)
    elif is_dataclass(value):
        for field in fields(value):
            refuse_unread_numbers(f"{key}.{field.name}", getattr(value, field.name))


def _ascii(text: str) -> str:
    return written("".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in text))
