"""A stand-in for the ``amdsmi`` package: the calls that telemetry makes, with the answers of an imagined device.

Names, units and errors are those of AMD SMI's Python interface; figures come from tests/data/amd.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from backends.telemetry.amdsmi import AmdsmiDevice

BUS = "0000:c1:00.0"
NOT_SUPPORTED = "AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported"
NO_PERM = "AMDSMI_STATUS_NO_PERM - Permission Denied"
MI300X_TABLE: Mapping[str, Any] = {
    "temperature_edge": "N/A",
    "temperature_hotspot": 61,
    "temperature_mem": 58,
    "current_socket_power": 234,
    "average_socket_power": "N/A",
    "current_gfxclk": 2102,
    "current_gfxclks": [2102, 2101, 2107, 2100, 2102, 2101, 2103, 2100],
    "current_uclk": 1230,
    "pcie_link_width": 16,
    "accumulation_counter": 1000,
    "ppt_residency_acc": 100,
    "prochot_residency_acc": 0,
    "socket_thm_residency_acc": 7,
    "vr_thm_residency_acc": 0,
    "hbm_thm_residency_acc": "N/A",
}


# In KiB.
MI300X_CACHES = (
    {"cache_level": 1, "cache_size": 32, "num_cache_instance": 304},
    {"cache_level": 2, "cache_size": 4096, "num_cache_instance": 8},
    {"cache_level": 3, "cache_size": 262144, "num_cache_instance": 1},
)


class AmdSmiException(Exception):
    pass


class AmdSmiLibraryException(AmdSmiException):
    """Prints itself over several lines, as the library's does."""

    def __init__(self, err_info: str) -> None:
        super().__init__(err_info)
        self.err_info = err_info

    def __str__(self) -> str:
        return f"Error code:\n\t2 | {self.err_info}"


class FakeAmdsmi:
    """An MI300X.  ``refused`` maps functions to the error that they end with; ``without`` names functions that are absent."""

    AmdSmiException = AmdSmiException
    AmdSmiMemoryType = SimpleNamespace(VRAM=0)
    AmdSmiClkType = SimpleNamespace(GFX="gfx", MEM="mem")

    def __init__(
        self,
        *,
        table: Mapping[str, Any] | None = None,
        refused: Mapping[str, str] | None = None,
        without: tuple[str, ...] = (),
        mode: str = "BAREMETAL",
        bus: str = BUS,
        asic: Mapping[str, Any] | None = None,
        partition: tuple[str, str] = ("SPX", "NPS1"),
        caches: Sequence[Mapping[str, int]] = MI300X_CACHES,
        power_cap_w: int = 750,
    ) -> None:
        self.table: dict[str, Any] = {**MI300X_TABLE, **(table or {})}
        self.refused = dict(refused or {})
        self.without = without
        self.mode = mode
        self.bus = bus
        self.asic = {"market_name": "AMD Instinct MI300X", "device_id": "0x74a1", **(asic or {})}
        self.partition = partition
        self.caches = caches
        self.power_cap_w = power_cap_w
        self.count: dict[str, Any] = {"energy_accumulator": 5_000_000, "counter_resolution": 15.3, "timestamp": 1}
        self.processes: list[Any] = []
        self.table_reads = 0

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("amdsmi_"):
            if name in object.__getattribute__(self, "without"):
                raise AttributeError(name)
            said = object.__getattribute__(self, "refused").get(name)
            if said is not None:
                return lambda *_arguments: _fail(said)
        return object.__getattribute__(self, name)

    def amdsmi_init(self) -> None:
        """Nothing to do."""

    def amdsmi_get_processor_handles(self) -> list[str]:
        return ["another", "the device"]

    def amdsmi_get_gpu_device_bdf(self, handle: str) -> str:
        return {"another": "0000:01:00.0", "the device": self.bus.upper()}[handle]

    def amdsmi_get_gpu_metrics_info(self, handle: str) -> dict[str, Any]:
        self.table_reads += 1
        return dict(self.table)

    def amdsmi_get_energy_count(self, handle: str) -> dict[str, Any]:
        return dict(self.count)

    def amdsmi_get_gpu_memory_usage(self, handle: str, kind: int) -> int:
        assert kind == self.AmdSmiMemoryType.VRAM
        return 49_148 << 20

    def amdsmi_get_gpu_process_list(self, handle: str) -> list[Any]:
        return self.processes

    def amdsmi_get_gpu_virtualization_mode(self, handle: str) -> dict[str, Any]:
        return {"mode": SimpleNamespace(name=self.mode)}

    def amdsmi_get_gpu_driver_info(self, handle: str) -> dict[str, Any]:
        return {"driver_name": "amdgpu", "driver_version": "6.10.5", "driver_date": "N/A"}

    def amdsmi_get_gpu_vbios_info(self, handle: str) -> dict[str, Any]:
        return {"version": "N/A"}

    def amdsmi_get_power_cap_info(self, handle: str) -> dict[str, Any]:
        return {"power_cap": self.power_cap_w * 1_000_000, "default_power_cap": self.power_cap_w * 1_000_000}

    def amdsmi_get_clock_info(self, handle: str, kind: str) -> dict[str, Any]:
        return {"clk": 2102, "max_clk": {"gfx": 2102, "mem": 1300}[kind]}

    def amdsmi_get_gpu_compute_partition(self, handle: str) -> str:
        return self.partition[0]

    def amdsmi_get_gpu_memory_partition(self, handle: str) -> str:
        return self.partition[1]

    def amdsmi_get_gpu_asic_info(self, handle: str) -> dict[str, Any]:
        return dict(self.asic)

    def amdsmi_get_gpu_cache_info(self, handle: str) -> dict[str, Any]:
        return {"cache": [dict(each) for each in self.caches]}


def _fail(said: str) -> Any:
    raise AmdSmiLibraryException(said)


def device_of(library: FakeAmdsmi, **options: Any) -> AmdsmiDevice:
    """The device at ``BUS``."""
    found = AmdsmiDevice.find(library, BUS, **options)
    assert found is not None
    return found
