"""Lists of names and of numbers that a job's settings have: what is refused of them, whichever job it is."""

from collections.abc import Sequence
from typing import Any

from suite.errors import UsageError, nearest
from suite.values import NEITHER_TRUE_NOR_FALSE, not_whole, written


def listed(given: Any) -> list[Any]:
    """A setting of one value or several, as a list."""
    return list(given) if isinstance(given, list | tuple) else [given]


def check_names(job: str, axis: str, given: Sequence[Any], valid: Sequence[str], singular: str = "") -> None:
    """Raise ``UsageError`` for a name that is not valid, and for an axis without any; ``singular`` is what one is called."""
    for each in given:
        if each not in valid:
            named = singular or axis[:-1].replace("_", " ")
            raise UsageError(f"unknown {named} '{written(each)}' in jobs.{job}.{axis}{nearest(str(each), valid)}")
    if not given:
        raise UsageError(f"jobs.{job}.{axis} is empty; name at least one of {', '.join(valid)}")


def check_choices(job: str, axis: str, given: Any, valid: Sequence[str]) -> None:
    """Likewise of a setting that is one name or several and may be left out; null is its default."""
    asked = listed(given)
    if not asked:
        raise UsageError(f"jobs.{job}.{axis} is empty; leave it out for the default")
    check_names(job, axis, [each for each in asked if each is not None] or valid, valid, axis.replace("_", " "))


def check_truths(job: str, axis: str, given: Any) -> None:
    """Raise ``UsageError`` for what is neither true nor false, of a setting that is one of them or a list."""
    asked = listed(given)
    if not asked:
        raise UsageError(f"jobs.{job}.{axis} is empty; leave it out for the default")
    for each in asked:
        if not isinstance(each, bool):
            raise UsageError(f"jobs.{job}.{axis}={written(each)} {NEITHER_TRUE_NOR_FALSE}")


def check_counts(job: str, axis: str, given: Sequence[Any], allowed: range) -> None:
    """Raise ``UsageError`` for a number that is not allowed, and for an axis without any."""
    if not given:
        raise UsageError(f"jobs.{job}.{axis} is empty; name for instance [{max(allowed[0], min(16, allowed[-1]))}]")
    of = f" in steps of {allowed.step}" if allowed.step > 1 else ""
    limits = f"it goes from {allowed[0]} to {allowed[-1]}{of}"
    for each in given:
        if type(each) is not int:  # true and 1.0 equal 1, and would name another case than it
            raise UsageError(f"jobs.{job}.{axis} has {written(each)}, which {not_whole(each)}; {limits}")
        if each not in allowed:
            raise UsageError(f"jobs.{job}.{axis} has {each}; {limits}; write {closest(each, allowed)}")


def closest(given: int, allowed: range) -> int:
    """The number of a range that a given one is nearest to, the lower of two."""
    down = allowed[0] + (given - allowed[0]) // allowed.step * allowed.step
    up = down + allowed.step
    return min(max(down if given - down <= up - given else up, allowed[0]), allowed[-1])
