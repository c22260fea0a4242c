"""The CUDA backend: torch on NVIDIA devices, with the driver's management library for clocks and power."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from backends.telemetry.clocked import ClockedTelemetry
from backends.telemetry.nvidia import nvml_telemetry
from backends.telemetry.nvml import Nvml, NvmlDevice, load_nvml, told
from backends.telemetry.others import DeviceAddress
from backends.torch import gpu
from suite.backend import DeviceInfo, Fact, Telemetry
from suite.errors import DeviceNotFound
from suite.telemetry import NoTelemetry

OPTIONS = gpu.OPTIONS


class CudaBackend(gpu.TorchGpu):
    """Measures one NVIDIA device through torch; options as ``TorchGpu`` has them."""

    name = "cuda"

    def devices(self) -> Sequence[DeviceInfo]:
        import torch

        if torch.version.cuda is None or not torch.cuda.is_available():
            return ()
        return tuple(self._describe(index) for index in range(torch.cuda.device_count()))

    def select(self, index: int) -> DeviceInfo:
        import torch

        from backends.torch.precision import place_tuning_results
        from backends.torch.target import cuda_target

        found = self.devices()
        if not 0 <= index < len(found):
            raise DeviceNotFound(f"backend cuda has no device {index}: torch sees {len(found)} CUDA device(s)")
        torch.cuda.set_device(index)
        place_tuning_results()
        self._capability = torch.cuda.get_device_capability(index)
        self._target = cuda_target(index, self._capability)
        self._device = found[index]
        return self._device

    def environment(self) -> Mapping[str, Fact]:
        from backends.torch.libraries import cuda_facts, torch_facts

        device = self._nvml_device(self._selected_info().index)
        settings = device.facts() if isinstance(device, NvmlDevice) else {"driver": Fact.unavailable(device)}
        return {**torch_facts(), **cuda_facts(self._capability), **settings}

    def telemetry(self) -> Telemetry:
        device = self._nvml_device(self._selected_info().index)
        driver: Telemetry
        if isinstance(device, NvmlDevice):
            driver = nvml_telemetry(device, self._options["telemetry_period_s"], self._no_clock)
        else:
            driver = NoTelemetry(device)
        return driver if self._no_clock else ClockedTelemetry(driver, self._clock)

    @cached_property
    def _nvml(self) -> Nvml:
        return load_nvml()

    def _nvml_device(self, index: int) -> NvmlDevice | str:
        """The driver's handle of a device, or why there is none."""
        if self._nvml.library is None:
            return self._nvml.reason
        found = NvmlDevice.find(self._nvml.library, _address(index))
        return found or f"NVML does not know the device with torch's index {index}"

    def _describe(self, index: int) -> DeviceInfo:
        import torch

        properties = torch.cuda.get_device_properties(index)
        nvml = self._nvml_device(index)
        partition = partition_of(properties.name)
        return DeviceInfo(
            backend=self.name,
            index=index,
            name=properties.name,
            uid=hashlib.sha256(f"cuda:{properties.uuid}".encode()).hexdigest()[:16],
            memory_bytes=properties.total_memory,
            architecture=f"sm_{properties.major}{properties.minor}",
            visible_units=properties.multi_processor_count,
            max_clock_hz=told(nvml, NvmlDevice.max_sm_clock_hz),
            max_memory_clock_hz=told(nvml, NvmlDevice.max_memory_clock_hz),
            llc_bytes=properties.L2_cache_size or None,
            power_limit_w=told(nvml, NvmlDevice.power_limit_w),
            pci_bus_id=_address(index).pci_bus_id,
            driver=nvml.driver() if isinstance(nvml, NvmlDevice) else None,
            partition=partition,
            details={"nvml": nvml} if isinstance(nvml, str) else {},
            places=gpu.PLACES,
        )


def partition_of(name: str) -> str | None:
    """The MIG profile in a device's runtime name (``MIG 1g.18gb``); ``None`` for a whole device."""
    match = re.search(r"\bMIG \d+g\.\d+gb\S*", name)
    return match.group() if match else None


def _address(index: int) -> DeviceAddress:
    import torch

    properties = torch.cuda.get_device_properties(index)
    bus = getattr(properties, "pci_bus_id", None)
    if bus is None:
        return DeviceAddress(str(properties.uuid), None)
    return DeviceAddress(str(properties.uuid), f"{properties.pci_domain_id:08x}:{bus:02x}:{properties.pci_device_id:02x}.0")
