"""Options of a backend, as the configuration gives them."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from suite.errors import UsageError, nearest


class Range(NamedTuple):
    """The least and the most that an option may be, and why it is neither less nor more."""

    least: float
    most: float
    why_least: str
    why_most: str


# A reading wakes a thread that takes the interpreter from the one that
# launches.  On a machine of two cores one of two files held up products of 0.2 ms by under 1.5 % every 10 ms, by 2 to 6 % every
# 5 ms, by 10 % every 2 ms, and by half of their time every 0.3 ms.
RANGES = {
    "telemetry_period_s": Range(
        0.01,
        60.0,
        "readings closer to each other hold up the launches that are timed",
        "a case is over before a second reading",
    )
}


def read_options(backend: str, given: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults; raises ``UsageError`` for an option that is not known, or of another type than its default."""
    options = dict(defaults)
    for name, value in (given or {}).items():
        if name not in defaults:
            raise UsageError(f"backend {backend} has no option {name!r}{nearest(name, defaults)}")
        options[name] = _checked(backend, name, value, defaults[name])
    return options


def _checked(backend: str, name: str, value: Any, default: Any) -> Any:
    """A number stands for a float above 0, within its range where it has one; ``None`` takes a whole number above 0."""
    told = f"backends.{backend}.options.{name}={value!r} is not"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if default is None:
        if value is None or (is_number and isinstance(value, int) and value > 0):
            return value
        raise UsageError(f"{told} a whole number above 0")
    if isinstance(default, float):
        if is_number and 0 < value < math.inf and _in_range(name, value):
            return float(value)
        raise UsageError(f"{told} a number {_range_words(name, value)}; the default is {default:g}")
    if isinstance(value, str):
        return value
    raise UsageError(f"{told} a word; the default is {default}")


def _in_range(name: str, value: float) -> bool:
    found = RANGES.get(name)
    return found is None or found.least <= value <= found.most


def _range_words(name: str, value: Any) -> str:
    if (found := RANGES.get(name)) is None:
        return "above 0"
    is_more = isinstance(value, int | float) and value > found.most
    return f"from {found.least:g} to {found.most:g}, as {found.why_most if is_more else found.why_least}"
