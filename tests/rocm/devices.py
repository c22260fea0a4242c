"""AMD devices as torch and AMD SMI show them, after what they printed on real ones."""

import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.backends.fake_amdsmi import FakeAmdsmi
from tests.rocm.recorded import AMD, agents, static, torch_properties

MIB = 2**20
NO_CACHE: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Simulated:
    """Devices that torch lists, and the library's answers for the first one's package."""

    properties: tuple[SimpleNamespace, ...]
    amdsmi: dict[str, Any] = field(default_factory=dict)

    @property
    def bus(self) -> str:
        first = self.properties[0]
        return f"{first.pci_domain_id:04x}:{first.pci_bus_id:02x}:{first.pci_device_id:02x}.0"

    def library(self) -> FakeAmdsmi:
        return FakeAmdsmi(bus=self.bus, **self.amdsmi)


def at(properties: SimpleNamespace, bdf: str, **changed: Any) -> SimpleNamespace:
    """A device at a PCI address; torch calls the number of the slot ``pci_device_id``."""
    domain, bus, slot = (int(part, 16) for part in bdf.rpartition(".")[0].split(":"))
    place = {"pci_domain_id": domain, "pci_bus_id": bus, "pci_device_id": slot}
    return SimpleNamespace(**{**vars(properties), **place, **changed})


def mi300x() -> Simulated:
    said = static("amd_smi_static_mi300x_head.txt")
    asic = {"market_name": said["MARKET_NAME"], "device_id": said["DEVICE_ID"]}
    return Simulated((at(torch_properties("AMD Instinct MI300X"), said["BDF"]),), {"asic": asic})


def mi300x_guest() -> Simulated:
    """A virtual function: rocminfo in the guest."""
    gpu = next(each for each in agents("rocminfo_mi300x_vf.txt") if each.is_gpu)
    assert gpu.memory_kib is not None
    properties = SimpleNamespace(
        name=gpu.marketing_name,
        gcnArchName=f"{gpu.name}:sramecc+:xnack-",
        total_memory=gpu.memory_kib * 1024,
        multi_processor_count=gpu.compute_units,
        L2_cache_size=4096 * 1024,
        major=9,
        minor=4,
    )
    refused = {"amdsmi_get_power_cap_info": "AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported"}
    library = {"asic": {"market_name": gpu.marketing_name, "device_id": gpu.chip_id}, "mode": "GUEST", "refused": refused}
    return Simulated((at(properties, "0000:05:00.0"),), library)


def mi250x() -> Simulated:
    """One of two dies; the driver has no partitions here, and no UUID."""
    not_offered = "AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported"
    refused = {f"amdsmi_get_gpu_{kind}_partition": not_offered for kind in ("compute", "memory")}
    library = {"asic": {"market_name": "AMD Instinct MI250X", "device_id": "0x7408"}, "refused": refused, "caches": NO_CACHE}
    properties = at(torch_properties("AMD Instinct MI250X"), "0000:2f:00.0", L2_cache_size=8 * MIB)
    return Simulated((properties,), {**library, "table": {"current_gfxclks": [1700]}, "power_cap_w": 560})


def mi350x() -> Simulated:
    """With the number of compute units that was printed: half of a whole one's."""
    said = static("amd_smi_static_mi350x.txt")
    properties = SimpleNamespace(
        name=said["MARKET_NAME"],
        gcnArchName=f"{said['TARGET_GRAPHICS_VERSION']}:sramecc+:xnack-",
        total_memory=294_896 * MIB,
        multi_processor_count=int(said["NUM_COMPUTE_UNITS"]),
        L2_cache_size=4096 * 1024,
        major=9,
        minor=5,
    )
    asic = {"market_name": said["MARKET_NAME"], "device_id": said["DEVICE_ID"]}
    return Simulated((at(properties, said["BDF"]),), {"asic": asic})


def mi300x_cpx() -> Simulated:
    """The first card of a node in CPX/NPS4: eight devices of 38 compute units at one address."""
    text = (AMD / "amd_smi_static_partition_cpx_nps4_64.txt").read_text()
    modes = re.findall(r"COMPUTE_PARTITION: (\w+)\n +MEMORY_PARTITION: (\w+)\n +PARTITION_ID: (\d+)", text)
    card = modes[:8]
    assert [int(number) for *_, number in card] == list(range(8))
    whole = mi300x().properties[0]
    parts = tuple(
        SimpleNamespace(**{**vars(whole), "multi_processor_count": 304 // 8, "total_memory": 49_136 * MIB}) for _ in card
    )
    return Simulated(parts, {**mi300x().amdsmi, "partition": card[0][:2]})


DEVICES = {
    "mi300x": mi300x,
    "mi300x_guest": mi300x_guest,
    "mi250x": mi250x,
    "mi350x": mi350x,
    "mi300x_cpx": mi300x_cpx,
}
