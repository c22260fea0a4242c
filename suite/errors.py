"""What can go wrong for a person who uses roofbench.

    RoofbenchError                exit status 1
    ├── UsageError                exit status 2: bad input, found before anything runs
    │   ├── DeviceNotFound        no such device, or no device for the asked backend
    │   └── StoreUnusable         the store cannot be opened: directory, read-only, locked, newer, not a database
    ├── DeviceBusy                another run holds the device
    ├── StoreWriteFailed          the store stopped taking results (disk full, lost, locked)
    └── WorkerStartFailed         a worker process could not be started at all

A message is one line that names what was given, the limit it broke, and the remedy.  The command line prints
it after ``roofbench: `` and exits with ``exit_status``; anything else that escapes is a bug and keeps its traceback.
"""

import difflib
import re
from collections.abc import Iterable

CLOSE = 0.6  # of 1: difflib's ratio
NAMED_AT_MOST = 3


class RoofbenchError(Exception):
    """Base of every error that is reported as one line instead of a traceback."""

    exit_status = 1


class UsageError(RoofbenchError):
    """The request cannot be carried out as written; nothing was run or created."""

    exit_status = 2


class DeviceNotFound(UsageError):
    """The asked backend or device is not on this machine."""


class StoreUnusable(UsageError):
    """The store cannot be opened for what was asked."""


class DeviceBusy(RoofbenchError):
    """Another roofbench run holds the device's lock."""


class StoreWriteFailed(RoofbenchError):
    """A result could not be committed; everything committed before is intact.

    ``run`` is the run that can go on once the cause is gone; empty where none can.
    """

    run = ""


class WorkerStartFailed(RoofbenchError):
    """A worker process ended or stalled before it could take its first case."""


def nearest(given: str, valid: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest valid name, or a list of all valid names.

    Names that hold what was given, numbers and all, are nearer than one that is spelt alike with other numbers: ``fp4`` is
    nvfp4 or mxfp4, and not fp64.  So are several that begin with it.  A power of two is a width that was meant, and another
    number may be misspelt: ``fp31`` is fp32, and ``int4`` is not int8.  The text is meant to be appended to an error message.
    """
    names = sorted(set(valid) - {given})
    spelt = {name.casefold(): name for name in names}
    plain = given.casefold()
    close = difflib.get_close_matches(plain, spelt, n=1, cutoff=CLOSE)
    held = [name for name in spelt if _holds(name, plain)]
    begun = [name for name in held if name.startswith(plain)]  # too short to be close: fp8 for fp8_e4m3
    if len(begun) > 1:
        likely = [begun]
    elif close and _of_like_numbers(plain, close[0]):
        likely = [close]
    else:
        likely = [begun, held if close else [], [] if _names_a_width(plain) else close]
    for found in likely:
        if 0 < len(found) <= NAMED_AT_MOST:
            return f"; did you mean {' or '.join(repr(spelt[name]) for name in found)}?"
    return f"; choose from: {', '.join(names)}" if names else ""


def _holds(name: str, given: str) -> bool:
    """Whether a name has what was given in it, without cutting a number of it short: mxfp4 has fp4, and fp64 has no fp6."""
    end = "(?![0-9])" if given[-1:].isdigit() else ""
    return bool(given) and re.search(re.escape(given) + end, name) is not None


def _names_a_width(given: str) -> bool:
    return any(number > 1 and number & (number - 1) == 0 for number in _numbers(given))


def _numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"[0-9]{1,9}", text)}


def _of_like_numbers(given: str, name: str) -> bool:
    """Whether two names share a number; those of which one has none are not told apart by numbers."""
    numbers, others = _numbers(given), _numbers(name)
    return not numbers or not others or not numbers.isdisjoint(others)
