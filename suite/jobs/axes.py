"""Lists of names and of numbers that a job's settings have: what is refused of them, whichever job it is."""

from collections.abc import Sequence
from typing import Any

from suite.errors import UsageError, nearest


def listed(given: Any) -> list[Any]:
    """A setting of one value or several, as a list."""
    return list(given) if isinstance(given, list | tuple) else [given]


def check_names(job: str, axis: str, given: Sequence[Any], valid: Sequence[str], singular: str = "") -> None:
    """Raise ``UsageError`` for a name that is not valid, and for an axis without any; ``singular`` is what one is called."""
    for each in given:
        if each not in valid:
            named = singular or axis[:-1].replace("_", " ")
            raise UsageError(f"unknown {named} '{each}' in jobs.{job}.{axis}{nearest(str(each), valid)}")
    if not given:
        raise UsageError(f"jobs.{job}.{axis} is empty; name at least one of {', '.join(valid)}")


def check_counts(job: str, axis: str, given: Sequence[Any], allowed: range) -> None:
    """Raise ``UsageError`` for a number that is not allowed, and for an axis without any."""
    if not given:
        raise UsageError(f"jobs.{job}.{axis} is empty; name for instance [{max(allowed[0], min(16, allowed[-1]))}]")
    for each in given:
        if type(each) is not int or each not in allowed:  # true and 1.0 equal 1, and would name another case than it
            of = f" in steps of {allowed.step}" if allowed.step > 1 else ""
            raise UsageError(f"jobs.{job}.{axis} has {each}; it goes from {allowed[0]} to {allowed[-1]}{of}")
