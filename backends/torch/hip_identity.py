"""Which AMD device torch has under an index, by what HIP tells of it."""

import hashlib
from typing import Any, NamedTuple

import torch

from backends.host.cpuinfo import machine_uid

# HIP makes a UUID of the letters of the driver's own id; where that has none it holds the letters XX.
NO_UUID = "58580000-0000-0000-0000-000000000000"


class HipIdentity(NamedTuple):
    """``l2_bytes`` is the cache of one die.

    Parts of one package have one address: ``ordinal`` is the device's place among the ``siblings`` that torch sees of them.
    """

    name: str
    architecture: str
    units: int
    memory_bytes: int
    l2_bytes: int | None
    uuid: str | None
    pci_bus_id: str | None
    ordinal: int = 0
    siblings: int = 1

    @property
    def uid(self) -> str:
        """A stable hash that publishes no serial: of the UUID, else of machine and address, and of the part."""
        said = self.uuid or machine_uid(f"{self.name} {self.pci_bus_id}", self.units)
        part = f":{self.ordinal}" if self.siblings > 1 else ""
        return hashlib.sha256(f"rocm:{said}{part}".encode()).hexdigest()[:16]


def identify(index: int) -> HipIdentity:
    """The device of this index, beside all others."""
    addresses = [_address(torch.cuda.get_device_properties(each)) for each in range(torch.cuda.device_count())]
    properties = torch.cuda.get_device_properties(index)
    own = addresses[index]
    return HipIdentity(
        name=str(properties.name),
        architecture=str(properties.gcnArchName).partition(":")[0],
        units=int(properties.multi_processor_count),
        memory_bytes=int(properties.total_memory),
        l2_bytes=int(getattr(properties, "L2_cache_size", 0)) or None,
        uuid=_uuid(properties),
        pci_bus_id=_bus(properties),
        ordinal=addresses[:index].count(own),
        siblings=addresses.count(own),
    )


def _address(properties: Any) -> tuple[str | None, str | None]:
    return _uuid(properties), _bus(properties)


def _uuid(properties: Any) -> str | None:
    said = str(getattr(properties, "uuid", NO_UUID))
    return None if said == NO_UUID else said


def _bus(properties: Any) -> str | None:
    bus = getattr(properties, "pci_bus_id", None)
    return None if bus is None else f"{properties.pci_domain_id:04x}:{bus:02x}:{properties.pci_device_id:02x}.0"
