"""NVIDIA's management library: what it says of a device, once or again and again."""

from collections.abc import Callable
from typing import Any, NamedTuple

from backends.telemetry.gauges import ReadingLost
from backends.telemetry.others import DeviceAddress
from suite.backend import Fact

# Field numbers from nvml.h.  Only ones that never changed: the thermal and brake counters moved from 251 to 269 within the
# drivers 580, so that a library and a driver of different age mean different things by them.
POWER_INSTANT_FIELD = 186
MEMORY_TEMPERATURE_FIELD = 82
PCIE_BYTES_FIELD = {"tx": 197, "rx": 198}
# A module holds a processor and memory beside the GPU: its power is another scope of the same field.
GPU_SCOPE = 0
# nvmlValueType_t: which member of the union a field's value is in.
VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
# nvmlPerfPolicyType_t: what holds the clocks down, below those that applications asked for or below the base clock.
POLICIES = {
    "power": 0,
    "thermal": 1,
    "sync_boost": 2,
    "board_limit": 3,
    "low_utilization": 4,
    "reliability": 5,
    "app_clocks": 10,
    "base_clocks": 11,
}
# nvmlDeviceGetPowerUsage is a mean of a second on every chip after the GA100 (compute capability 8.0).
LAST_INSTANT_CAPABILITY = (8, 0)
NOT_A_PART = "the driver reports it for the whole GPU, not for one MIG instance"


class Nvml(NamedTuple):
    """The library as loaded, or why it is not there."""

    library: Any | None
    reason: str = ""


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
    """One device.  Every reader raises ``ReadingLost`` with the library's own reason when the device does not offer it.

    A MIG instance has memory and processes of its own; clocks, temperatures and throttling are the GPU's, which its
    instances share.  Power, energy and PCIe traffic of one instance are not told apart, so they are not read.
    """

    def __init__(self, library: Any, handle: Any) -> None:
        self._lib = library
        self._handle = handle
        self._gpu = self._whole_gpu()
        self.is_part = self._gpu is not handle

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
        return float(self._call("nvmlDeviceGetClockInfo", self._gpu, self._lib.NVML_CLOCK_SM)) * 1e6

    def memory_clock_hz(self) -> float:
        return float(self._call("nvmlDeviceGetClockInfo", self._gpu, self._lib.NVML_CLOCK_MEM)) * 1e6

    def max_sm_clock_hz(self) -> float:
        return float(self._call("nvmlDeviceGetMaxClockInfo", self._gpu, self._lib.NVML_CLOCK_SM)) * 1e6

    def max_memory_clock_hz(self) -> float:
        return float(self._call("nvmlDeviceGetMaxClockInfo", self._gpu, self._lib.NVML_CLOCK_MEM)) * 1e6

    def power_w(self) -> float:
        """Instantaneous power of the GPU and its memory."""
        return self._field(POWER_INSTANT_FIELD) / 1e3

    def usual_power_w(self) -> float:
        """What ``nvidia-smi`` shows as power draw: see ``usual_power_is_instant``."""
        return float(self._call("nvmlDeviceGetPowerUsage", self._whole())) / 1e3

    def usual_power_is_instant(self) -> bool:
        """Whether the usual reading is of the moment; ``False`` where it is, or may be, a mean of a second."""
        try:
            return tuple(self._call("nvmlDeviceGetCudaComputeCapability", self._gpu)) <= LAST_INSTANT_CAPABILITY
        except ReadingLost:
            return False

    def power_limit_w(self) -> float:
        return float(self._call("nvmlDeviceGetEnforcedPowerLimit", self._whole())) / 1e3

    def energy_j(self) -> float:
        """Joules since the driver was loaded."""
        return float(self._call("nvmlDeviceGetTotalEnergyConsumption", self._whole())) / 1e3

    def temperature_c(self) -> float:
        return float(self._call("nvmlDeviceGetTemperature", self._gpu, self._lib.NVML_TEMPERATURE_GPU))

    def memory_temperature_c(self) -> float:
        return self._field(MEMORY_TEMPERATURE_FIELD)

    def throttle_mask(self) -> float:
        """The driver's clock event reasons as it encodes them; 1 is idle, 4 the software power cap."""
        new, old = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        return float(self._call(new if hasattr(self._lib, new) else old, self._gpu))

    def violation_s(self, policy: str) -> float:
        """Seconds since the driver was loaded in which one of ``POLICIES`` held the clocks down."""
        return float(self._call("nvmlDeviceGetViolationStatus", self._gpu, POLICIES[policy]).violationTime) * 1e-9

    def pcie_total_bytes(self, way: str) -> float:
        """Bytes that crossed PCIe since some moment, ``tx`` from the device or ``rx`` to it; the counter may wrap."""
        self._whole()
        return self._field(PCIE_BYTES_FIELD[way])

    def pcie_bytes_s(self, way: str) -> float:
        """Traffic over the 20 ms that this call takes."""
        counter = {"tx": self._lib.NVML_PCIE_UTIL_TX_BYTES, "rx": self._lib.NVML_PCIE_UTIL_RX_BYTES}[way]
        return float(self._call("nvmlDeviceGetPcieThroughput", self._whole(), counter)) * 1e3

    def memory_used_bytes(self) -> float:
        """What is allocated, as ``nvidia-smi`` shows it: without what the driver reserves, 614 MiB of an idle H200."""
        version = getattr(self._lib, "nvmlMemory_v2", None)
        if version is None:
            raise ReadingLost("this version of nvidia-ml-py has no nvmlMemory_v2")
        return float(self._call("nvmlDeviceGetMemoryInfo", self._handle, version).used)

    def memory_taken_bytes(self) -> float:
        """What is allocated and reserved together: all that drivers tell that have no second version of this call."""
        return float(self._call("nvmlDeviceGetMemoryInfo", self._handle).used)

    def processes_used_bytes(self) -> float:
        """Memory of all compute processes together: what is known where a GPU shares the host's memory."""
        processes = self._call("nvmlDeviceGetComputeRunningProcesses", self._handle)
        if any(process.usedGpuMemory is None for process in processes):
            raise ReadingLost("the driver does not tell the memory of each process")
        return float(sum(process.usedGpuMemory for process in processes))

    def process_ids(self) -> frozenset[int]:
        return frozenset(process.pid for process in self._call("nvmlDeviceGetComputeRunningProcesses", self._handle))

    def facts(self) -> dict[str, Fact]:
        """Settings of the device that move a measurement, each measured or unavailable with the reason."""
        readers: dict[str, Callable[[], str | int | float]] = {
            "driver": self.driver,
            "vbios": lambda: _text(self._call("nvmlDeviceGetVbiosVersion", self._gpu)),
            "ecc": lambda: self._on_off("nvmlDeviceGetEccMode"),
            "mig_mode": lambda: self._on_off("nvmlDeviceGetMigMode"),
            "persistence": lambda: "on" if self._call("nvmlDeviceGetPersistenceMode", self._gpu) else "off",
            "power_limit_w": self.power_limit_w,
            "power_limit_default_w": lambda: self._call("nvmlDeviceGetPowerManagementDefaultLimit", self._whole()) / 1e3,
            "max_sm_clock_hz": self.max_sm_clock_hz,
            "max_memory_clock_hz": self.max_memory_clock_hz,
            "pcie_generation": lambda: int(self._call("nvmlDeviceGetCurrPcieLinkGeneration", self._gpu)),
            "pcie_width": lambda: int(self._call("nvmlDeviceGetCurrPcieLinkWidth", self._gpu)),
        }
        return {name: _fact(read) for name, read in readers.items()}

    def _whole_gpu(self) -> Any:
        """The GPU that a MIG instance is a part of; the device itself where it is no part."""
        try:
            flag = self._call("nvmlDeviceIsMigDeviceHandle", self._handle)
            part = bool(getattr(flag, "value", flag))
            return self._call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", self._handle) if part else self._handle
        except ReadingLost:
            return self._handle

    def _whole(self) -> Any:
        """The GPU's handle, for what is told of whole GPUs only."""
        if self.is_part:
            raise ReadingLost(NOT_A_PART)
        return self._gpu

    def _on_off(self, function: str) -> str:
        current, _pending = self._call(function, self._gpu)
        return "on" if current else "off"

    def _field(self, field: int) -> float:
        """One field value; power fields are of the GPU's scope, which is what is asked for where no scope is named."""
        handle = self._whole() if field == POWER_INSTANT_FIELD else self._gpu
        value = self._call("nvmlDeviceGetFieldValues", handle, [(field, GPU_SCOPE)])[0]
        if value.nvmlReturn != self._lib.NVML_SUCCESS:
            raise ReadingLost(f"NVML field {field}: {self._lib.NVMLError(value.nvmlReturn)}")
        return float(getattr(value.value, VALUE_MEMBERS[value.valueType]))

    def _call(self, function: str, *arguments: Any) -> Any:
        call = getattr(self._lib, function, None)
        if call is None:
            raise ReadingLost(f"this version of nvidia-ml-py has no {function}")
        try:
            return call(*arguments)
        except self._lib.NVMLError as error:
            raise ReadingLost(f"{function}: {error}") from error


def told(device: NvmlDevice | str, read: Callable[[NvmlDevice], float]) -> float | None:
    """One reading of a device; ``None`` where there is no device, or where it does not offer it."""
    if isinstance(device, str):
        return None
    try:
        return read(device)
    except ReadingLost:
        return None


def _fact(read: Callable[[], str | int | float]) -> Fact:
    try:
        return Fact.measured(read())
    except ReadingLost as error:
        return Fact.unavailable(str(error))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
