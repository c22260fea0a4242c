"""A stand-in for ``pynvml``: the calls that telemetry makes, with the answers of an imagined device."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from backends.telemetry.nvml import NvmlDevice
from backends.telemetry.others import DeviceAddress

BOARD, INSTANCE = "the whole GPU", "a MIG instance"
UNSIGNED, UNSIGNED_LONG_LONG = 1, 3  # nvmlValueType_t


class NVMLError(Exception):
    """As in the library: an error knows its number and says it in words."""

    SAID: Mapping[int, str] = {
        2: "Invalid Argument",
        3: "Not Supported",
        4: "Insufficient Permissions",
        15: "GPU is lost",
        26: "Requested functionality has been deprecated",
        999: "Unknown Error",
    }

    def __init__(self, number: int) -> None:
        super().__init__(self.SAID.get(number, "Not Found"))


def refuse(number: int) -> Callable[..., Any]:
    """A function of the library that fails with one error whatever it is asked."""

    def call(*_arguments: Any) -> Any:
        raise NVMLError(number)

    return call


class FakeNvml:
    """An H100 under load.  ``fields`` are values by (field, scope); ``mig`` looks up an instance instead of a GPU.

    ``without`` names functions that this version of the package lacks; other keywords replace a function.
    """

    NVMLError = NVMLError
    NVML_SUCCESS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 0, 1, 2, 0
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1
    nvmlMemory_v2 = 0x2000028  # noqa: N815
    RESERVED_BYTES = 614 << 20

    def __init__(
        self,
        *,
        mig: bool = False,
        fields: Mapping[tuple[int, int], float] | None = None,
        without: tuple[str, ...] = (),
        **functions: Any,
    ) -> None:
        self.mig = mig
        self.without = without
        self.calls: list[tuple[str, Any]] = []
        self.fields = {(186, 0): 691_000, (82, 0): 54, (197, 0): 0, (198, 0): 0} if fields is None else dict(fields)
        self.energy_mj = 1_000_000
        self.violation_ns: dict[int, int] = {}
        self.pids: list[Any] = [SimpleNamespace(pid=1, usedGpuMemory=1 << 20)]
        for name, function in functions.items():
            setattr(self, name, function)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml"):
            if name in object.__getattribute__(self, "without"):
                raise AttributeError(name)
            function = object.__getattribute__(self, name)
            if not callable(function):
                return function

            def called(*arguments: Any) -> Any:
                self.calls.append((name, arguments[0] if arguments else None))
                return function(*arguments)

            return called
        return object.__getattribute__(self, name)

    def nvmlDeviceGetHandleByUUID(self, uuid: Any) -> Any:  # noqa: N802
        if uuid != ("MIG-abc" if self.mig else "GPU-abc"):
            raise NVMLError(6)
        return INSTANCE if self.mig else BOARD

    def nvmlDeviceGetHandleByPciBusId(self, bus: Any) -> Any:  # noqa: N802
        if bus != "00000000:1b:00.0":
            raise NVMLError(6)
        return BOARD

    def nvmlDeviceIsMigDeviceHandle(self, handle: Any) -> Any:  # noqa: N802
        return handle == INSTANCE

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: Any) -> Any:  # noqa: N802
        assert handle == INSTANCE
        return BOARD

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: Any) -> Any:  # noqa: N802
        return {self.NVML_CLOCK_SM: 1755, self.NVML_CLOCK_MEM: 2619}[kind]

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, kind: Any) -> Any:  # noqa: N802
        return {self.NVML_CLOCK_SM: 1980, self.NVML_CLOCK_MEM: 2619}[kind]

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: Any) -> Any:  # noqa: N802
        return [self._field(field) for field in fields]

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> Any:  # noqa: N802
        return 627_320

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> Any:  # noqa: N802
        return (9, 0)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any) -> Any:  # noqa: N802
        return 700_000

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> Any:  # noqa: N802
        return self.energy_mj

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: Any) -> Any:  # noqa: N802
        return 61

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> Any:  # noqa: N802
        return 4

    def nvmlDeviceGetViolationStatus(self, handle: Any, policy: Any) -> Any:  # noqa: N802
        return SimpleNamespace(referenceTime=1, violationTime=self.violation_ns.get(policy, 0))

    def nvmlDeviceGetPcieThroughput(self, handle: Any, counter: Any) -> Any:  # noqa: N802
        return {self.NVML_PCIE_UTIL_TX_BYTES: 3_000, self.NVML_PCIE_UTIL_RX_BYTES: 7_000}[counter]

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int | None = None) -> Any:  # noqa: N802
        assert version in (None, self.nvmlMemory_v2)
        return SimpleNamespace(used=(1 << 30) + (0 if version else self.RESERVED_BYTES))

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> Any:  # noqa: N802
        return self.pids

    def nvmlSystemGetDriverVersion(self) -> Any:  # noqa: N802
        return b"580.01"

    def nvmlDeviceGetMigMode(self, handle: Any) -> Any:  # noqa: N802
        return (1, 1)

    def _field(self, asked: Any) -> Any:
        field, scope = asked
        if (field, scope) not in self.fields:
            return SimpleNamespace(nvmlReturn=3, valueType=0, value=SimpleNamespace(dVal=0.0))
        value = self.fields[field, scope]
        wide = value >= 1 << 32
        kind, member = (UNSIGNED_LONG_LONG, "ullVal") if wide else (UNSIGNED, "uiVal")
        return SimpleNamespace(nvmlReturn=0, valueType=kind, value=SimpleNamespace(**{member: value}))


def device_of(library: FakeNvml) -> NvmlDevice:
    """The device that the library knows by UUID."""
    found = NvmlDevice.find(library, DeviceAddress("abc", None))
    assert found is not None
    return found
