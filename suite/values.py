"""How a setting's value is written, and what is said of one that is of another type."""

import json
import re
from typing import Any

NOT_A_NUMBER = "is not a number"
NOT_WHOLE = "is not a whole number"
NEITHER_TRUE_NOR_FALSE = "is neither true nor false"
NOT_TEXT = "is not text; write it without brackets or braces"
LIST_WANTED = "is one value where a list is expected; write {key}=[{value}]"
# Of a value that no list of the setting can hold, so that brackets around it are no remedy.
LIST_OF_OTHERS = {
    bool: "is neither true nor false, and a list of these is expected; write {key}=[true], [false] or [true,false]",
    int: "is not a whole number, and a list of these is expected; write {key}=[NUMBER,NUMBER]",
    float: "is not a number, and a list of these is expected; write {key}=[NUMBER,NUMBER]",
}
SETTINGS_WANTED = "is one value where settings are expected; write {key}.NAME=VALUE"
NO_NULL = "may not be null; leave it out for the default"
SHOWN_AT_MOST = 60


def list_wanted(value: Any, kind: Any) -> str:
    """What is said of one value where a list of ``kind`` is expected: to put it in brackets, if such a list can hold it."""
    if isinstance(value, bool):
        fits = kind is bool
    else:
        fits = kind is not bool and isinstance(value, (int, float) if kind is float else int)
    return LIST_WANTED if fits else LIST_OF_OTHERS.get(kind, LIST_WANTED)


def not_whole(value: Any) -> str:
    """What is said of a value where a whole number is expected: how to write the one that it equals, if it equals one."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{NOT_WHOLE}; write {int(value)}"
    if isinstance(value, str) and re.fullmatch("[0-9]{1,15}", value):
        return f"{NOT_WHOLE} but text; write {int(value)}"
    return f"{NOT_WHOLE}; write digits from 0 to 9, as in 16"


def written(value: Any) -> str:
    """A value as the command line and YAML have it: ``true``, ``null``, ``[1,a]``; a long one cut short."""
    if value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, list | tuple):
        text = f"[{','.join(map(written, value))}]"
    elif isinstance(value, dict):
        text = "{" + ",".join(f"{name}:{written(each)}" for name, each in value.items()) + "}"
    elif isinstance(value, float | int | str):
        text = str(value)
    else:
        text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN_AT_MOST else f"{text[: SHOWN_AT_MOST - 3]}..."
