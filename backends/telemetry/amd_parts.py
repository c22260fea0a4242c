"""Which part of an AMD package a device is: a partition, one of two dies, or all of it."""

from typing import NamedTuple

# An MI250 or MI250X is always two devices (GCDs): by the PCI device ids of the amdgpu driver, or by name where none is told.
GCD_PCI_IDS = ("0x7408", "0x740c")
GCD_NAMES = ("AMD Instinct MI250", "AMD Instinct MI250X")
GCD = "GCD"
DEVICES_OF = {"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4, "CPX": None}  # CPX: as many as the package has dies
WHOLE = ("SPX", "NPS1")


class Modes(NamedTuple):
    """How a package is split: ``SPX`` and ``NPS1`` and others; ``None`` where nothing tells."""

    compute: str | None = None
    memory: str | None = None


def part_of(name: str, pci_device_id: str | None, modes: Modes) -> str | None:
    """``GCD``, ``CPX/NPS4``, ``SPX/NPS4``; ``None`` for a whole package."""
    if pci_device_id in GCD_PCI_IDS or (pci_device_id is None and name in GCD_NAMES):
        return GCD
    said = [mode for mode in modes if mode]
    return None if all(mode in WHOLE for mode in said) else "/".join(said)


def dies_of(modes: Modes, ordinal: int, siblings: int, dies: int) -> tuple[int, ...] | None:
    """Which of a package's compute dies a partition has, by its place among its siblings; ``None`` for all of them.

    Told only where all parts of the package are seen: among some of them, a place says nothing.
    """
    devices = DEVICES_OF.get(modes.compute or "SPX", 1) or dies
    if devices != siblings or devices < 2 or dies % devices:
        return None
    width = dies // devices
    return tuple(range(ordinal * width, (ordinal + 1) * width))
