"""Options of a backend, as the configuration gives them."""

import math
from collections.abc import Mapping
from typing import Any

from suite.errors import UsageError, nearest

LONGEST_S = 60.0  # between two readings: a case that is measured is over by then


def read_options(backend: str, given: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults; raises ``UsageError`` for an option that is not known, or of another type than its default."""
    options = dict(defaults)
    for name, value in (given or {}).items():
        if name not in defaults:
            raise UsageError(f"backend {backend} has no option {name!r}{nearest(name, defaults)}")
        options[name] = _checked(backend, name, value, defaults[name])
    return options


def _checked(backend: str, name: str, value: Any, default: Any) -> Any:
    """A number stands for a float above 0, within ``LONGEST_S`` where it is a time; ``None`` takes a whole number above 0."""
    told = f"backends.{backend}.options.{name}={value!r} is not"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if default is None:
        if value is None or (is_number and isinstance(value, int) and value > 0):
            return value
        raise UsageError(f"{told} a whole number above 0")
    if isinstance(default, float):
        most = LONGEST_S if name.endswith("_s") else math.inf
        if is_number and 0 < value < math.inf and value <= most:
            return float(value)
        limit = f" and at most {most:g}" if most < math.inf else ""
        raise UsageError(f"{told} a number above 0{limit}; the default is {default:g}")
    if isinstance(value, str):
        return value
    raise UsageError(f"{told} a word; the default is {default}")
