"""A real backend that fails where it is told to, for runs on real devices.

The option ``plant`` maps a shape, with or without a format, to a fault of ``tests/fake/faults.py`` or of this file:
``{"1024x1024x1024 bf16": "lost_context@measure", "512x512x512": "segfault"}``; ``slower:66167`` makes every launch so many
cycles longer (on a CPU nanoseconds).  All other options go to the real backend.  The
contract gives one kind of evidence to a whole backend, so everything measured through this one is ``simulated``, the sound
cases too: a run with planted faults is never compared with or published as the rest.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suite.backend import Backend, DeviceInfo, Fact, Failure, Kernel, Observed, Probe, Sampler, Telemetry
from suite.case import Case
from suite.outcome import Evidence
from tests.fake.faults import ACTIVE, Fault, fault_of, strike


def lost_context(_: str) -> None:
    """A device-side assertion: every later call in this process fails with the same error."""
    import torch

    values = torch.zeros(1, device="cuda")
    values[torch.full((1,), 1_000_000_000, device="cuda")].sum()
    torch.cuda.synchronize()


def device_hang(_: str) -> None:
    """A kernel that never ends, and a host that waits for it."""
    import torch

    torch.cuda._sleep(2**60)
    torch.cuda.synchronize()


def device_memory(_: str) -> None:
    """Take memory in large blocks until the device has no more."""
    import torch

    blocks = []
    while True:
        free, _total = torch.cuda.mem_get_info()
        blocks.append(torch.empty(max(free // 4, 2**30), dtype=torch.uint8, device="cuda"))


def host_memory(_: str) -> None:
    """Ask for more than any host has; nothing is touched, so that the machine is not brought down."""
    import torch

    torch.empty(2**50, dtype=torch.uint8)


def slower(launch: Callable[[], Any], amount: int) -> Callable[[], Any]:
    """A launch and then ``amount`` cycles of a GPU in which it does nothing, or so many nanoseconds of a CPU."""
    import torch

    def idle() -> None:
        if torch.cuda.is_available():
            torch.cuda._sleep(amount)
            return
        end_ns = time.perf_counter_ns() + amount
        while time.perf_counter_ns() < end_ns:
            pass

    def both() -> Any:
        result = launch()
        idle()
        return result

    return both


ACTIVE.update(lost_context=lost_context, device_hang=device_hang, device_memory=device_memory, host_memory=host_memory)


class Planted:
    """See the module; ``make`` builds the real backend from its options."""

    evidence = Evidence.SIMULATED

    def __init__(self, make: Callable[[Mapping[str, Any]], Backend], options: Mapping[str, Any]) -> None:
        self._plant: Mapping[str, str] = options.get("plant", {})
        self._real = make({name: value for name, value in options.items() if name != "plant"})
        self.name = self._real.name

    def devices(self) -> Sequence[DeviceInfo]:
        return self._real.devices()

    def select(self, index: int) -> DeviceInfo:
        return self._real.select(index)

    def environment(self) -> Mapping[str, Fact]:
        return {**self._real.environment(), "planted_faults": Fact(", ".join(sorted(self._plant)) or "none", "declared")}

    def supports(self, case: Case) -> str | None:
        return self._real.supports(case)

    def prepare(self, case: Case, sets: int, seed: int) -> "PlantedKernel":
        fault = fault_of(case, self._plant)
        strike(fault, "compile")
        kernel: Any = self._real.prepare(case, sets, seed)
        if fault.kind == "slower":
            kernel._launches = tuple(slower(launch, int(fault.argument)) for launch in kernel._launches)
        return PlantedKernel(kernel, fault)

    def sampler(self, kernel: "PlantedKernel", case: Case, sample_s: float) -> "PlantedSampler":
        return PlantedSampler(self._real.sampler(kernel.real, case, sample_s), kernel.fault)

    def telemetry(self) -> Telemetry:
        return self._real.telemetry()

    def memory_free(self) -> int:
        return self._real.memory_free()

    def peak_memory_bytes(self) -> int | None:
        return self._real.peak_memory_bytes()

    def synchronize(self) -> None:
        self._real.synchronize()

    def classify(self, error: BaseException) -> Failure:
        return self._real.classify(error)


class PlantedKernel:
    """The real kernel; a fault in phase ``verify`` strikes when its output is looked at."""

    def __init__(self, real: Kernel, fault: Fault) -> None:
        self.real, self.fault = real, fault

    def observe(self, probe: Probe) -> Observed:
        strike(self.fault, "verify")
        return self.real.observe(probe)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class PlantedSampler:
    """The real sampler; a fault in phase ``measure`` strikes when it is asked for samples."""

    def __init__(self, real: Sampler, fault: Fault) -> None:
        self._real, self._fault = real, fault

    def sample(self, count: int) -> Sequence[int]:
        strike(self._fault, "measure")
        return self._real.sample(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class PlantedCpu(Planted):
    def __init__(self, options: Mapping[str, Any]) -> None:
        from backends.cpu import CpuBackend

        super().__init__(CpuBackend, options)


class PlantedCuda(Planted):
    def __init__(self, options: Mapping[str, Any]) -> None:
        from backends.cuda import CudaBackend

        super().__init__(CudaBackend, options)
