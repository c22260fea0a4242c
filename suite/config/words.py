"""What is said of a setting whose value is of another type, and how a value is written."""

import json
from typing import Any

NOT_A_NUMBER = "is not a number"
NOT_WHOLE = "is not a whole number"
NEITHER_TRUE_NOR_FALSE = "is neither true nor false"
NOT_TEXT = "is not text"
LIST_WANTED = "is one value where a list is expected; write {key}=[{value}]"
SETTINGS_WANTED = "is one value where settings are expected; write {key}.NAME=VALUE"
NO_NULL = "may not be null; leave it out for the default"
SHOWN_AT_MOST = 60


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
