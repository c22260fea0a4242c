"""Which sheet a device is judged by: the one the user named, else the one its exact name matches."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from suite.hardware.catalogue import load
from suite.hardware.match import Match, match
from suite.hardware.observed import with_reported

if TYPE_CHECKING:  # the contracts import numpy, which reading a sheet does without
    from suite.backend import DeviceInfo


def assign(info: "DeviceInfo", named: str | None, folders: Sequence[str] = ()) -> Match:
    """``named`` is a sheet's id or ``None``; ``folders`` hold the user's own sheets.  What the device reports is laid over it.

    Raises ``UsageError`` for a name that is no sheet's.
    """
    extra = [Path(folder) for folder in folders]
    if named is None:
        return match(info, extra)
    spec = load(named, extra)
    return Match(with_reported(spec, info), spec.id, "named by the user")
