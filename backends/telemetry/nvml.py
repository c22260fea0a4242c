"""NVIDIA's management library: what it says of a device once, and its telemetry."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from backends.host.processes import run_family
from backends.telemetry.nvml_reasons import by_reason
from backends.telemetry.polled import NO_DEVICE_CLOCK, PERIOD_S, EnergyMeter, Gauge, Missing, PolledTelemetry, ReadingLost
from suite.backend import Fact

# The default power reading is a mean over a second: it shows a burst's load only when the burst is over.
POWER_INSTANT_FIELD = 186
# The energy counter steps every 100 ms.
ENERGY_WINDOW_S = 2.0


class Nvml(NamedTuple):
    """The library as loaded, or why it is not there."""

    library: Any | None
    reason: str = ""


class DeviceAddress(NamedTuple):
    """How a runtime names a device: its UUID without prefix, and its PCI bus id where the runtime tells it."""

    uuid: str
    pci_bus_id: str | None


def load_nvml() -> Nvml:
    """Load and initialise the library; needs no device."""
    try:
        import pynvml
    except ImportError:
        return Nvml(None, "NVML is not readable: the package nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Nvml(None, f"NVML is not readable: {error}")
    return Nvml(pynvml)


class NvmlDevice:
    """One device.  Every reader raises ``ReadingLost`` with the library's own reason when the device does not offer it."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._lib = library
        self._handle = handle

    @classmethod
    def find(cls, library: Any, address: DeviceAddress) -> "NvmlDevice | None":
        """Look a device up by UUID (of a GPU or a MIG instance), else by PCI bus id; ``None`` when neither is known."""
        attempts = [
            (library.nvmlDeviceGetHandleByUUID, f"GPU-{address.uuid}"),
            (library.nvmlDeviceGetHandleByUUID, f"MIG-{address.uuid}"),
        ]
        if address.pci_bus_id is not None:
            attempts.append((library.nvmlDeviceGetHandleByPciBusId, address.pci_bus_id))
        for look_up, name in attempts:
            try:
                return cls(library, look_up(name))
            except library.NVMLError:
                continue
        return None

    def driver(self) -> str:
        return _text(self._lib.nvmlSystemGetDriverVersion())

    def sm_clock_hz(self) -> float:
        return float(self._call("nvmlDeviceGetClockInfo", self._lib.NVML_CLOCK_SM)) * 1e6

    def memory_clock_hz(self) -> float:
        return float(self._call("nvmlDeviceGetClockInfo", self._lib.NVML_CLOCK_MEM)) * 1e6

    def max_sm_clock_hz(self) -> float:
        return float(self._call("nvmlDeviceGetMaxClockInfo", self._lib.NVML_CLOCK_SM)) * 1e6

    def max_memory_clock_hz(self) -> float:
        return float(self._call("nvmlDeviceGetMaxClockInfo", self._lib.NVML_CLOCK_MEM)) * 1e6

    def power_w(self) -> float:
        """Instantaneous power of the whole board."""
        field = self._call("nvmlDeviceGetFieldValues", [POWER_INSTANT_FIELD])[0]
        if field.nvmlReturn != self._lib.NVML_SUCCESS:
            raise ReadingLost(f"NVML field {POWER_INSTANT_FIELD}: {self._lib.NVMLError(field.nvmlReturn)}")
        return float(field.value.uiVal) / 1e3

    def power_limit_w(self) -> float:
        return float(self._call("nvmlDeviceGetEnforcedPowerLimit")) / 1e3

    def energy_j(self) -> float:
        """Joules since the driver was loaded."""
        return float(self._call("nvmlDeviceGetTotalEnergyConsumption")) / 1e3

    def temperature_c(self) -> float:
        return float(self._call("nvmlDeviceGetTemperature", self._lib.NVML_TEMPERATURE_GPU))

    def throttle_mask(self) -> float:
        """The driver's clock event reasons as it encodes them; 1 is idle, 4 the software power cap."""
        new, old = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        return float(self._call(new if hasattr(self._lib, new) else old))

    def memory_used_bytes(self) -> float:
        return float(self._call("nvmlDeviceGetMemoryInfo").used)

    def process_ids(self) -> frozenset[int]:
        return frozenset(process.pid for process in self._call("nvmlDeviceGetComputeRunningProcesses"))

    def facts(self) -> dict[str, Fact]:
        """Settings of the device that move a measurement, each measured or unavailable with the reason."""
        readers: dict[str, Callable[[], str | int | float]] = {
            "driver": self.driver,
            "vbios": lambda: _text(self._call("nvmlDeviceGetVbiosVersion")),
            "ecc": lambda: self._on_off("nvmlDeviceGetEccMode"),
            "mig_mode": lambda: self._on_off("nvmlDeviceGetMigMode"),
            "persistence": lambda: "on" if self._call("nvmlDeviceGetPersistenceMode") else "off",
            "power_limit_w": self.power_limit_w,
            "power_limit_default_w": lambda: self._call("nvmlDeviceGetPowerManagementDefaultLimit") / 1e3,
            "max_sm_clock_hz": self.max_sm_clock_hz,
            "max_memory_clock_hz": self.max_memory_clock_hz,
            "pcie_generation": lambda: int(self._call("nvmlDeviceGetCurrPcieLinkGeneration")),
            "pcie_width": lambda: int(self._call("nvmlDeviceGetCurrPcieLinkWidth")),
        }
        return {name: _fact(read) for name, read in readers.items()}

    def _on_off(self, function: str) -> str:
        current, _pending = self._call(function)
        return "on" if current else "off"

    def _call(self, function: str, *arguments: Any) -> Any:
        call = getattr(self._lib, function, None)
        if call is None:
            raise ReadingLost(f"this version of nvidia-ml-py has no {function}")
        try:
            return call(self._handle, *arguments)
        except self._lib.NVMLError as error:
            raise ReadingLost(f"{function}: {error}") from error


def nvml_telemetry(device: NvmlDevice, period_s: float = PERIOD_S, no_clock: str = NO_DEVICE_CLOCK) -> PolledTelemetry:
    """Telemetry of one NVIDIA device; a channel it does not offer is unavailable with the driver's reason.

    ``no_clock`` is why the device's own clock is not read, where it is not.
    """
    gauges: dict[str, Gauge | Missing] = {
        "sm_clock": Gauge(device.sm_clock_hz),
        "memory_clock": Gauge(device.memory_clock_hz),
        "power": Gauge(device.power_w),
        "temperature": Gauge(device.temperature_c),
        "throttle": Gauge(device.throttle_mask),
        "memory_used": Gauge(device.memory_used_bytes),
    }
    energy = EnergyMeter(device.energy_j, ENERGY_WINDOW_S)
    return PolledTelemetry(gauges, energy, lambda: other_processes(device), period_s, derive=by_reason, no_clock=no_clock)


def other_processes(device: NvmlDevice) -> int | None:
    """Compute processes of other runs on the device.

    ``None`` where the driver lists none or lists them by the numbers of another process namespace: then this
    process, which holds a context on the device, is missing from the list.
    """
    try:
        listed = device.process_ids()
    except ReadingLost:
        return None
    return len(listed - run_family()) if os.getpid() in listed else None


def _fact(read: Callable[[], str | int | float]) -> Fact:
    try:
        return Fact.measured(read())
    except ReadingLost as error:
        return Fact.unavailable(str(error))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
