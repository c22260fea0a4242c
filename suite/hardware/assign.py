"""Which sheet a device is judged by: the one the user named, else the one its exact name matches."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from suite.errors import UsageError
from suite.hardware.catalogue import load
from suite.hardware.makers import why_not
from suite.hardware.match import Match, match
from suite.hardware.observed import with_reported
from suite.hardware.parts import WHOLE, Part, Unrecognised, part_of, scaled
from suite.hardware.spec import HardwareSpec

if TYPE_CHECKING:  # the contracts import numpy, which reading a sheet does without
    from suite.backend import DeviceInfo


def assign(info: "DeviceInfo", named: str | None, folders: Sequence[str] = ()) -> Match:
    """``named`` is a sheet's id or ``None``; ``folders`` hold the user's own sheets.  What the device reports is laid over it.

    A device that names the partition it is gets its share of a named sheet too.  Raises ``UsageError`` for a name that is no
    sheet's.
    """
    extra = _paths(folders)
    if named is None:
        return match(info, extra)
    spec = load(named, extra)
    part, why = _part(spec, info)
    return Match(with_reported(scaled(spec, part), info), spec.id, "; ".join(filter(None, ("named by the user", why))))


def check_named(info: "DeviceInfo", named: str, folders: Sequence[str] = ()) -> str:
    """A line where a device would be matched to another sheet than the one named, which may be right; else empty.

    Raises ``UsageError`` for a sheet of something that this device cannot be: fractions of its figures would say nothing.
    """
    extra = _paths(folders)
    spec = load(named, extra)
    if reason := why_not(spec, info):
        raise UsageError(f"hardware={named} cannot describe what is measured: {reason}; leave hardware out, or name its own")
    own = match(info, extra)
    if own.hardware is None or own.hardware == spec.id or (own.spec is not None and own.spec.derived):
        return ""
    device = f"{info.backend} device {info.index}"
    return f"{device} is held against hardware={spec.id} as asked; by its {own.reason} it would be {own.hardware}"


def _part(spec: HardwareSpec, info: "DeviceInfo") -> tuple[Part, str]:
    """The share that a device says it is, and in which words; the whole where it says nothing that the sheet knows."""
    if not info.partition:
        return WHOLE, ""
    try:
        part = part_of(spec, info, info.partition.strip())
    except Unrecognised as unknown:
        return WHOLE, f"figures of the whole: {unknown}"
    return part, part.reason


def _paths(folders: Sequence[str]) -> list[Path]:
    return [Path(folder) for folder in folders]
