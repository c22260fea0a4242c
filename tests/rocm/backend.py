"""The ROCm backend over a simulated HIP device, for whole runs: everything that it yields is labelled ``simulated``.

Option ``device`` names one of ``tests.rocm.devices``; all others go to the real backend.  Products are computed on the host,
once for each new content of their buffers, so that checks see real results; how long a launch takes follows from the case.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from backends.rocm import RocmBackend
from backends.torch.kernel import TorchKernel
from backends.triton import works
from suite.backend import DeviceInfo, Kernel
from suite.case import Case
from suite.jobs.registry import find
from suite.outcome import Evidence
from tests.rocm.devices import DEVICES
from tests.rocm.hip import Hip

NO_TRITON = "no kernel can be compiled for a simulated device"
FLOP_S = {"fp64": 60e12, "fp32": 100e12, "bf16": 900e12, "fp16": 900e12, "fp8_e4m3": 1600e12, "int8": 1600e12}
WHOLE_UNITS = 304
BYTES_S = 4e12
LAUNCH_S = 5e-6
LARGEST_BYTES = 256 * 2**20


class SimulatedFlush:
    """A flush of which only the size is real."""

    def __init__(self, hip: Hip, size_bytes: int) -> None:
        self._hip, self.size_bytes = hip, size_bytes

    def __call__(self) -> None:
        self._hip.launch(self.size_bytes / BYTES_S, lambda: None)


class SimulatedRocm(RocmBackend):
    """See the module."""

    evidence = Evidence.SIMULATED
    _no_clock = NO_TRITON

    def __init__(self, options: Mapping[str, Any]) -> None:
        simulated = DEVICES[options.get("device", "mi300x")]()
        sys.modules["amdsmi"] = simulated.library()  # type: ignore[assignment]
        self._hip = Hip(simulated.properties)
        self._hip.install()
        works.why_not = lambda: NO_TRITON  # type: ignore[assignment]
        super().__init__({name: value for name, value in options.items() if name != "device"})

    def select(self, index: int) -> DeviceInfo:
        device = super().select(index)
        self._target = replace(self._selected(), device=torch.device("cpu"))
        return device

    def supports(self, case: Case) -> str | None:
        if self._work(case).compulsory_bytes > LARGEST_BYTES:
            return "a simulated device has this host's memory: too little for this case"
        return super().supports(case)

    def prepare(self, case: Case, sets: int, seed: int) -> Kernel:
        kernel = super().prepare(case, sets, seed)
        assert isinstance(kernel, TorchKernel)
        _script(kernel, self._hip, self._launch_s(case))
        return kernel

    @property
    def _flush(self) -> Any:
        from suite.measure.regimes import UNKNOWN_LLC_BYTES

        llc_bytes = self._selected_info().llc_bytes or UNKNOWN_LLC_BYTES
        return SimulatedFlush(self._hip, int(self._flush_factor * llc_bytes))

    def _work(self, case: Case) -> Any:
        return find(case.workload.job).work(case.workload)

    def _launch_s(self, case: Case) -> float:
        work, share = self._work(case), (self._selected_info().visible_units or 0) / WHOLE_UNITS
        rate = FLOP_S.get(case.workload.format, FLOP_S["fp32"]) * share
        return float(max(work.flops / rate, work.compulsory_bytes / (BYTES_S * share), LAUNCH_S))


def _script(kernel: TorchKernel, hip: Hip, launch_s: float) -> None:
    """Have launches take their time on the device, and compute where inputs or output are others than the last time."""
    current: set[int] = set()

    def work(set_index: int, call: Any) -> None:
        if set_index not in current:
            call()
            current.add(set_index)

    def launched(set_index: int, call: Any) -> None:
        hip.launch(launch_s, partial(work, set_index, call))

    def outdating(change: Any) -> Any:
        def changed(*arguments: Any) -> None:
            current.clear()
            change(*arguments)

        return changed

    kernel._launches = tuple(partial(launched, number, call) for number, call in enumerate(kernel._launches))
    kernel.refill = outdating(kernel.refill)  # type: ignore[method-assign]
    kernel.poison = outdating(kernel.poison)  # type: ignore[method-assign]
