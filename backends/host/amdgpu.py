"""What the kernel's driver says of an AMD device in its files, where AMD SMI is not there to ask."""

from pathlib import Path

DEVICES = Path("sys/bus/pci/devices")
NOTHING = ("", "N/A", "UNKNOWN")


class DriverFiles:
    """Files of the device at a PCI address (``0000:c1:00.0``); what cannot be read is ``None``."""

    def __init__(self, pci_bus_id: str, root: Path = Path("/")) -> None:
        self._folder = root / DEVICES / pci_bus_id.lower()

    def pci_device_id(self) -> str | None:
        return self._read("device")

    def compute_partition(self) -> str | None:
        return self._read("current_compute_partition")

    def memory_partition(self) -> str | None:
        return self._read("current_memory_partition")

    def _read(self, name: str) -> str | None:
        try:
            said = (self._folder / name).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return None if said in NOTHING else said
