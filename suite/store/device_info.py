"""Whether what is stored of a device is what a runtime can have reported: JSON takes anything anywhere."""

from collections.abc import Callable, Mapping
from typing import Any

from suite.backend import DeviceInfo
from suite.store.kinds import are_named_texts, are_texts, is_text

MOST = 2**63 - 1  # of bytes and units
MOST_HZ, MOST_W = 1e15, 1e12  # far from any device, and what readers compute of them stays a number


def read_info(stored: Mapping[str, Any]) -> DeviceInfo:
    """A device from its JSON; ``ValueError`` or ``TypeError`` where a field is not of its kind."""
    info = DeviceInfo.from_json(stored)
    for name, fits in _FITS.items():
        value = getattr(info, name)
        if not fits(value):
            raise ValueError(f"info {name} cannot be {str(value)[:40]!r}")
    return info


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST


def _up_to(most: float) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int | float) and 0 <= value <= most


def _or_none(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or fits(value)


_FITS: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("backend", "name", "uid", "cold_by"), is_text),
    **dict.fromkeys(("architecture", "pci_bus_id", "driver", "partition"), _or_none(is_text)),
    **dict.fromkeys(("index", "memory_bytes", "places"), _is_count),
    **dict.fromkeys(("visible_units", "llc_bytes"), _or_none(_is_count)),
    **dict.fromkeys(("max_clock_hz", "max_memory_clock_hz"), _or_none(_up_to(MOST_HZ))),
    "power_limit_w": _or_none(_up_to(MOST_W)),
    "isa": are_texts,
    "details": are_named_texts,
}
