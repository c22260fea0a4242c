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
from collections.abc import Iterable

BEGUN_AT_MOST = 3


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

    The text is meant to be appended to an error message.
    """
    names = sorted(set(valid) - {given})
    spelt = {name.casefold(): name for name in names}
    plain = given.casefold()
    close = difflib.get_close_matches(plain, spelt, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{spelt[close[0]]}'?"
    begun = [name for name in names if plain and name.casefold().startswith(plain)]
    if 0 < len(begun) <= BEGUN_AT_MOST:  # too short to be close: fp8 for fp8_e4m3
        return f"; did you mean {' or '.join(map(repr, begun))}?"
    return f"; choose from: {', '.join(names)}" if names else ""
