"""AMD's management library: what it says of a device, once or again and again.

Names and units are those of AMD SMI's Python interface (py-interface/README.md of ROCm/amdsmi, releases 6.0 to 7.1).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from backends.telemetry.gauges import ReadingLost, Shared
from suite.backend import Fact

Told = TypeVar("Told")

# What the firmware's table holds where it has no value: all ones, as wide as the field.  Newer libraries say "N/A".
NO_VALUE = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
NOTHING = (None, "", "N/A")  # in the place of a text, or of all that a function tells
# The energy accumulator has 64 bits since version 1.1 of the firmware's table, and had 32 in 1.0.
WRAPS_AT = 2**32
# How long each limit was active and what that is counted in, both by the firmware.  amdsmi_get_violation_status divides
# the same numbers, but sleeps 100 ms between two looks at them.
RESIDENCY = {
    "sw_power_cap": "ppt_residency_acc",
    "prochot": "prochot_residency_acc",
    "socket_thermal": "socket_thm_residency_acc",
    "vr_thermal": "vr_thm_residency_acc",
    "hbm_thermal": "hbm_thm_residency_acc",
}
# The same for each compute die (table version 1.8): its clock below the host's limit, for power or for heat.
DIE_RESIDENCY = {
    "xcd_power": "xcp_stats.gfx_below_host_limit_ppt_acc",
    "xcd_thermal": "xcp_stats.gfx_below_host_limit_thm_acc",
}
SAMPLES = "accumulation_counter"
NOT_A_PART = "the driver reports it for the whole package, not for one part of it"
NO_PERMISSION_REMEDY = "; add the user to the groups render and video"


class Amdsmi(NamedTuple):
    """The library as loaded, or why it is not there."""

    library: Any | None
    reason: str = ""


def load_amdsmi() -> Amdsmi:
    """Load and initialise the library; needs no device."""
    try:
        import amdsmi
    # The package looks for libamd_smi.so as it is imported, and in some releases falls over its own report of not finding it.
    except (ImportError, OSError, KeyError, AttributeError) as error:
        return Amdsmi(
            None, f"AMD SMI is not readable: its Python package amdsmi does not load ({error or type(error).__name__})"
        )
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as error:
        return Amdsmi(None, f"AMD SMI is not readable: {_said(error)}")
    return Amdsmi(amdsmi)


class AmdsmiDevice:
    """One device.  Every reader raises ``ReadingLost`` with the library's own reason when the device does not offer it.

    ``part`` says that the device is a part of a package (a GCD of an MI250X, a CPX partition): power and energy are the
    package's, and not read.  ``xcds`` are the compute dies whose clocks count; ``None`` for all that report one.
    """

    def __init__(self, library: Any, handle: Any, part: str | None = None, xcds: Sequence[int] | None = None) -> None:
        self._lib = library
        self._handle = handle
        self._part = part
        self._xcds = xcds
        self._table: Callable[[], Mapping[str, Any]] = Shared(self._read_table)

    @classmethod
    def find(
        cls, library: Any, pci_bus_id: str, part: str | None = None, xcds: Sequence[int] | None = None
    ) -> "AmdsmiDevice | None":
        """Look a device up by its PCI bus id; ``None`` when the library does not list it."""
        try:
            handles = library.amdsmi_get_processor_handles()
        except library.AmdSmiException:
            return None
        for handle in handles:
            try:
                said = library.amdsmi_get_gpu_device_bdf(handle)
            except library.AmdSmiException:
                continue  # a network card, a lost GPU: it hides none of the others
            if said not in NOTHING and _bus(said) == _bus(pci_bus_id):
                return cls(library, handle, part, xcds)
        return None

    def xcd_clocks_hz(self) -> list[float]:
        """The clock of each compute die that runs; of the whole device where the table has one clock only."""
        clocks = self._table().get("current_gfxclks")
        listed = list(clocks) if isinstance(clocks, list | tuple) else []
        chosen = listed if self._xcds is None else [listed[index] for index in self._xcds if index < len(listed)]
        running = [float(clock) * 1e6 for clock in chosen if _is_number(clock) and clock > 0]
        return running or [self._entry("current_gfxclk") * 1e6]

    def dies(self) -> int:
        """How many compute dies of the package report a clock, at rest or not."""
        clocks = self._table().get("current_gfxclks")
        return sum(_is_number(clock) for clock in clocks) if isinstance(clocks, list | tuple) else 1

    def sm_clock_hz(self) -> float:
        clocks_hz = self.xcd_clocks_hz()
        return sum(clocks_hz) / len(clocks_hz)

    def sm_clock_spread_hz(self) -> float:
        clocks_hz = self.xcd_clocks_hz()
        return max(clocks_hz) - min(clocks_hz)

    def memory_clock_hz(self) -> float:
        return self._entry("current_uclk") * 1e6

    def power_w(self) -> float:
        """Power of the socket at the moment."""
        self._whole()
        return self._entry("current_socket_power")

    def average_power_w(self) -> float:
        """The firmware's mean, over a time that it does not tell; what chips before MI300 offer."""
        self._whole()
        return self._entry("average_socket_power")

    def energy_j(self) -> float:
        """Joules since the driver was loaded or the GPU was reset; starts again at ``energy_wrap_j``."""
        counter, resolution_uj = self._energy_count()
        return counter * resolution_uj * 1e-6

    def energy_wrap_j(self) -> float | None:
        """Where a 32-bit accumulator starts again; ``None`` where the counter is beyond that already or not offered."""
        try:
            counter, resolution_uj = self._energy_count()
        except ReadingLost:
            return None
        return WRAPS_AT * resolution_uj * 1e-6 if counter < WRAPS_AT else None

    def temperature_c(self) -> float:
        return self._entry("temperature_edge")

    def hotspot_temperature_c(self) -> float:
        return self._entry("temperature_hotspot")

    def memory_temperature_c(self) -> float:
        return self._entry("temperature_mem")

    def residency(self, reason: str) -> tuple[float, float]:
        """Samples in which a limit was active, and samples in all, both since some moment; of dies the mean over them."""
        samples = self._entry(SAMPLES)
        if reason in RESIDENCY:
            return self._entry(RESIDENCY[reason]), samples
        dies = [float(count) for row in self._table().get(DIE_RESIDENCY[reason]) or [] for count in row if _is_number(count)]
        if not dies:
            raise ReadingLost(f"this driver's table has no {DIE_RESIDENCY[reason]}")
        return sum(dies) / len(dies), samples

    def memory_used_bytes(self) -> float:
        kinds = getattr(self._lib, "AmdSmiMemoryType", None)
        if kinds is None:
            raise ReadingLost("this version of amdsmi has no AmdSmiMemoryType")
        return float(self._call("amdsmi_get_gpu_memory_usage", kinds.VRAM))

    def process_ids(self) -> frozenset[int]:
        """Compute processes on the device; releases before 6.2 list them as structures, later ones as mappings."""
        listed = self._call("amdsmi_get_gpu_process_list")
        pids = [entry["pid"] if isinstance(entry, Mapping) else entry.pid for entry in listed]
        if any(pid in NOTHING for pid in pids):
            raise ReadingLost("amdsmi_get_gpu_process_list: the driver gives no pid of a process")
        return frozenset(int(pid) for pid in pids)

    def driver(self) -> str:
        return self._told("amdsmi_get_gpu_driver_info", "driver_version")

    def compute_partition(self) -> str:
        """Into how many devices the package is split: ``SPX``, ``CPX`` and others."""
        return self._mode("amdsmi_get_gpu_compute_partition")

    def memory_partition(self) -> str:
        """Over how many shares of memory addresses are interleaved: ``NPS1``, ``NPS4`` and others."""
        return self._mode("amdsmi_get_gpu_memory_partition")

    def virtualization(self) -> str:
        """``baremetal``, or ``guest`` for a virtual function."""
        mode = self._call("amdsmi_get_gpu_virtualization_mode")["mode"]
        if mode in NOTHING:
            raise ReadingLost("amdsmi_get_gpu_virtualization_mode: the driver gives no mode")
        return str(mode.name).lower()

    def power_limit_w(self) -> float:
        """Of the socket."""
        return self._figure("amdsmi_get_power_cap_info", "power_cap") * 1e-6

    def max_sm_clock_hz(self) -> float:
        return self._max_clock_hz("GFX")

    def max_memory_clock_hz(self) -> float:
        return self._max_clock_hz("MEM")

    def pci_device_id(self) -> str:
        """``0x74a1``; releases before 6.2 give a number."""
        said = self._call("amdsmi_get_gpu_asic_info").get("device_id")
        text = f"0x{said:04x}" if _is_number(said) else str(said).lower()
        if not text.startswith("0x"):
            raise ReadingLost(f"amdsmi_get_gpu_asic_info: the driver gives no device_id ({said})")
        return text

    def memory_side_cache_bytes(self) -> float:
        """The cache of the third level, in front of the memory: AMD's Infinity Cache, the package's whole."""
        caches = self._call("amdsmi_get_gpu_cache_info").get("cache") or []
        sizes = [_number(each.get("cache_size"), "cache_size") for each in caches if each.get("cache_level") == 3]
        if not sizes:
            raise ReadingLost("amdsmi_get_gpu_cache_info lists no cache of the third level")
        return max(sizes) * 1024

    def facts(self) -> dict[str, Fact]:
        """Settings of the device that move a measurement, each measured or unavailable with the reason."""
        readers: dict[str, Callable[[], str | int | float]] = {
            "driver": self.driver,
            "vbios": lambda: self._told("amdsmi_get_gpu_vbios_info", "version"),
            "compute_partition": self.compute_partition,
            "memory_partition": self.memory_partition,
            "virtualization": self.virtualization,
            "power_limit_w": self.power_limit_w,
            "power_limit_default_w": lambda: self._figure("amdsmi_get_power_cap_info", "default_power_cap") * 1e-6,
            "max_sm_clock_hz": self.max_sm_clock_hz,
            "max_memory_clock_hz": self.max_memory_clock_hz,
            "pcie_width": lambda: int(self._entry("pcie_link_width")),
        }
        return {name: _fact(read) for name, read in readers.items()}

    def _read_table(self) -> Mapping[str, Any]:
        table: Mapping[str, Any] = self._call("amdsmi_get_gpu_metrics_info")
        return table

    def _entry(self, name: str) -> float:
        """One number of the table that the firmware keeps."""
        return _number(self._table().get(name), name)

    def _energy_count(self) -> tuple[float, float]:
        """The accumulator and microjoules in one of its counts."""
        self._whole()
        count = self._call("amdsmi_get_energy_count")
        # Releases before 6.3 call the accumulator "power".
        counter = count.get("energy_accumulator", count.get("power"))
        return _number(counter, "energy_accumulator"), _number(count.get("counter_resolution"), "counter_resolution")

    def _whole(self) -> None:
        if self._part is not None:
            raise ReadingLost(f"{NOT_A_PART} ({self._part})")

    def _max_clock_hz(self, kind: str) -> float:
        kinds = getattr(self._lib, "AmdSmiClkType", None)
        if kinds is None:
            raise ReadingLost("this version of amdsmi has no AmdSmiClkType")
        return _number(self._call("amdsmi_get_clock_info", getattr(kinds, kind)).get("max_clk"), "max_clk") * 1e6

    def _mode(self, function: str) -> str:
        said = str(self._call(function)).strip()
        if said in ("", "UNKNOWN"):
            raise ReadingLost(f"{function}: the driver gives none")
        return said

    def _figure(self, function: str, key: str) -> float:
        return _number(self._call(function).get(key), key)

    def _told(self, function: str, key: str) -> str:
        value = str(self._call(function).get(key, "N/A"))
        if value in ("", "N/A"):
            raise ReadingLost(f"{function}: the driver gives no {key}")
        return value

    def _call(self, function: str, *arguments: Any) -> Any:
        call = getattr(self._lib, function, None)
        if call is None:
            raise ReadingLost(f"this version of amdsmi has no {function}")
        try:
            said = call(self._handle, *arguments)
        except self._lib.AmdSmiException as error:
            raise ReadingLost(f"{function}: {_said(error)}{self._in_a_guest(function)}") from error
        if said in NOTHING:
            raise ReadingLost(f"{function}: the driver gives none")
        return said

    def _in_a_guest(self, function: str) -> str:
        """A guest's virtual function lacks what bare metal offers: worth a word where a reading is refused."""
        asks = "amdsmi_get_gpu_virtualization_mode"
        if function == asks or not hasattr(self._lib, asks):
            return ""
        try:
            return " (a virtual function in a guest)" if self.virtualization() == "guest" else ""
        except ReadingLost:
            return ""


def told(device: AmdsmiDevice | str, read: Callable[[AmdsmiDevice], Told]) -> Told | None:
    """One reading of a device; ``None`` where there is no device, or where it does not offer it."""
    if isinstance(device, str):
        return None
    try:
        return read(device)
    except ReadingLost:
        return None


def _said(error: Exception) -> str:
    """A library's error in one line, with the remedy where there is one."""
    said = " ".join(str(getattr(error, "err_info", None) or error).split())
    return said + (NO_PERMISSION_REMEDY if "NO_PERM" in said else "")


def _bus(bus_id: str) -> tuple[int, ...]:
    """Domain, bus, device and function, whatever the width that a domain is written in."""
    return tuple(int(part, 16) for part in bus_id.replace(".", ":").split(":"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value not in NO_VALUE


def _number(value: Any, name: str) -> float:
    if not _is_number(value):
        raise ReadingLost(f"{name} is not offered: the driver's table says {'nothing' if value is None else value}")
    return float(value)


def _fact(read: Callable[[], str | int | float]) -> Fact:
    try:
        return Fact.measured(read())
    except ReadingLost as error:
        return Fact.unavailable(str(error))
