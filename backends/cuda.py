"""The CUDA backend: torch on NVIDIA devices, with the driver's management library for clocks and power."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from backends.cold import flush_factor
from backends.failures import classify
from backends.options import read_options
from backends.telemetry.clocked import ClockedTelemetry
from backends.telemetry.nvidia import nvml_telemetry
from backends.telemetry.nvml import Nvml, NvmlDevice, load_nvml, told
from backends.telemetry.others import DeviceAddress
from suite.backend import DeviceInfo, Fact, Failure, Kernel, Sampler, Telemetry
from suite.case import Case
from suite.errors import DeviceNotFound, UsageError
from suite.measure.regimes import COLD_ROTATION, UNKNOWN_LLC_BYTES
from suite.outcome import Evidence, Outcome
from suite.telemetry import NoTelemetry

if TYPE_CHECKING:
    from backends.torch.flush import Flush
    from backends.torch.target import Target
    from backends.triton.device_clock import DeviceClock
    from backends.triton.sample_clock import SampleClock

OPTIONS: dict[str, Any] = {"sampler": "auto", "flush_factor": 2.0, "telemetry_period_s": 0.02}
SAMPLERS = ("auto", "graph", "spin")
# Medians over so many places differ by a quarter of what single places differ by: 0.3 % on an H200, of 1.2 %.
PLACES = 16


class CudaBackend:
    """Measures one NVIDIA device through torch.

    Options: ``sampler`` (``graph``, ``spin`` or ``auto``: a graph, a spin kernel where no graph can be captured),
    ``flush_factor`` (size of the cache flush in last-level caches, where one is used; at least 2), ``telemetry_period_s``.
    """

    name = "cuda"
    evidence = Evidence.MEASURED

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = read_options(self.name, options, OPTIONS)
        self._flush_factor = flush_factor(self.name, self._options["flush_factor"])
        if self._options["sampler"] not in SAMPLERS:
            raise UsageError(f"backends.cuda.options.sampler={self._options['sampler']!r} is none of {', '.join(SAMPLERS)}")
        if find_spec("torch") is None:
            raise DeviceNotFound("backend cuda needs torch, which is not installed; pip install 'roofbench[cuda]'")
        self._device: DeviceInfo | None = None
        self._capability = (0, 0)
        self._target: Target | None = None

    def devices(self) -> Sequence[DeviceInfo]:
        import torch

        if torch.version.cuda is None or not torch.cuda.is_available():
            return ()
        return tuple(self._describe(index) for index in range(torch.cuda.device_count()))

    def select(self, index: int) -> DeviceInfo:
        import torch

        from backends.torch.precision import tune_in_memory
        from backends.torch.target import cuda_target

        found = self.devices()
        if not 0 <= index < len(found):
            raise DeviceNotFound(f"backend cuda has no device {index}: torch sees {len(found)} CUDA device(s)")
        torch.cuda.set_device(index)
        tune_in_memory()
        self._capability = torch.cuda.get_device_capability(index)
        self._target = cuda_target(index, self._capability)
        self._device = found[index]
        return self._device

    def environment(self) -> Mapping[str, Fact]:
        from backends.torch.libraries import cuda_facts, torch_facts

        device = self._nvml_device(self._selected_info().index)
        settings = device.facts() if isinstance(device, NvmlDevice) else {"driver": Fact.unavailable(device)}
        return {**torch_facts(), **cuda_facts(self._capability), **settings}

    def supports(self, case: Case) -> str | None:
        from backends.torch import jobs
        from backends.torch.libraries import blas_workspaces
        from backends.torch.overrides import overridden, workspace_reason

        return (
            jobs.reason(case, self._selected())
            or overridden(case)
            or workspace_reason(dict(case.switches), lambda: blas_workspaces(self._capability)[0])
        )

    def prepare(self, case: Case, sets: int, seed: int) -> Kernel:
        from backends.torch import jobs

        return jobs.prepare(case, self._selected(), sets, seed)

    def sampler(self, kernel: Kernel, case: Case, sample_s: float) -> Sampler:
        """Call: host time of single launches.  Device: graphs, or launches hidden behind a spin kernel.

        Cold rotates over every input set; sets that together are smaller than three last-level caches would find
        their inputs there, so those are timed with a flush between launches instead.  Warm stays with one set: with another one
        in each graph, so that a median is not of one place in memory.
        """
        import torch

        from backends.launches.host_sampler import HostSampler
        from backends.launches.plan import LaunchPlan
        from backends.torch import jobs

        if own := jobs.sampler(case, kernel):
            return own
        sets = kernel.sets if case.regime.cache == "cold" else 1
        flush = self._flush_for(kernel, case)
        if case.regime.dispatch == "call":
            return HostSampler(kernel, LaunchPlan(1, sets, sets), torch.cuda.synchronize, flush)
        if flush is not None:
            return self._spin(kernel, sets, flush, "the input sets fit in three last-level caches")
        if self._options["sampler"] == "spin":
            return self._spin(kernel, sets, None, "asked for by option")
        return self._graph(kernel, case, sample_s)

    def telemetry(self) -> Telemetry:
        device = self._nvml_device(self._selected_info().index)
        driver: Telemetry
        if isinstance(device, NvmlDevice):
            driver = nvml_telemetry(device, self._options["telemetry_period_s"], self._no_clock)
        else:
            driver = NoTelemetry(device)
        return driver if self._no_clock else ClockedTelemetry(driver, self._clock)

    def memory_free(self) -> int:
        """What the driver can still give, and what torch's allocator holds unused."""
        import torch

        device = self._selected().device
        free, _total = torch.cuda.mem_get_info(device)
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))

    def peak_memory_bytes(self) -> int | None:
        import torch

        peak = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return int(peak)

    def synchronize(self) -> None:
        import torch

        torch.cuda.synchronize()

    def classify(self, error: BaseException) -> Failure:
        failure = classify(error)
        if failure.outcome is Outcome.OUT_OF_MEMORY:
            import torch

            torch.cuda.empty_cache()
        return failure

    def _graph(self, kernel: Kernel, case: Case, sample_s: float) -> Sampler:
        from backends.torch.cuda_graph import GraphSampler, Warm

        llc_bytes = self._selected_info().llc_bytes or UNKNOWN_LLC_BYTES
        warm = Warm(kernel.set_bytes < COLD_ROTATION * llc_bytes) if case.regime.cache == "warm" else None
        clock = None if self._no_clock else self._sample_clock
        try:
            return GraphSampler(kernel, kernel.sets, sample_s, clock, warm=warm)
        except RuntimeError as error:
            failure = classify(error)
            if self._options["sampler"] == "graph" or failure.fatal or failure.outcome is Outcome.OUT_OF_MEMORY:
                raise
            self.synchronize()  # a lost context raises here instead of in the fallback
            return self._spin(kernel, 1 if warm else kernel.sets, None, f"no graph: {failure.reason}")

    def _spin(self, kernel: Kernel, sets: int, flush: "Flush | None", why: str) -> Sampler:
        from backends.torch.cuda_spin import SpinSampler

        return SpinSampler(kernel, sets, flush, {"why_spin": why}, works=kernel.set_bytes > 0)

    def _flush_for(self, kernel: Kernel, case: Case) -> "Flush | None":
        """A flush where rotating over the kernel's sets would leave them in the cache."""
        llc_bytes = self._selected_info().llc_bytes or UNKNOWN_LLC_BYTES
        rotation_is_cold = kernel.sets * kernel.set_bytes >= COLD_ROTATION * llc_bytes
        if case.regime.cache == "warm" or kernel.set_bytes == 0 or rotation_is_cold:
            return None
        return self._flush

    @cached_property
    def _flush(self) -> "Flush":
        from backends.torch.flush import Flush

        llc_bytes = self._selected_info().llc_bytes or UNKNOWN_LLC_BYTES
        return Flush(self._selected().device, int(self._flush_factor * llc_bytes))

    @cached_property
    def _no_clock(self) -> str:
        """Why the device's own cycle counter, which a Triton kernel reads, cannot be read here; empty when it can."""
        from backends.triton.works import why_not

        return why_not()

    @cached_property
    def _clock(self) -> "DeviceClock":
        from backends.triton.device_clock import DeviceClock

        return DeviceClock(self._selected_info().visible_units or 1)

    def _sample_clock(self) -> "SampleClock":
        from backends.triton.sample_clock import SampleClock

        return SampleClock(self._selected_info().visible_units or 1)

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
            places=PLACES,
        )

    def _selected(self) -> "Target":
        assert self._target is not None, "select a device first"
        return self._target

    def _selected_info(self) -> DeviceInfo:
        assert self._device is not None, "select a device first"
        return self._device


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
