"""The backend ``numpy``: the host's cores through numpy.  Only workers and probes import this file.

It takes from roofbench what any backend on a host may: processors, telemetry, and a sampler by the host's clock.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from backends.failures import classify
from backends.host import cpuinfo
from backends.launches.host_sampler import HostSampler, time_by_host
from backends.launches.plan import LaunchPlan, estimate_launch_s, plan_launches
from backends.telemetry.host import cpu_telemetry
from roofbench_example import operations
from roofbench_example.kernel import NumpyKernel
from suite.backend import DeviceInfo, Fact, Failure, Sampler, Telemetry
from suite.case import Case
from suite.errors import DeviceNotFound, UsageError
from suite.outcome import Evidence

JOBS = ("matvec", "calibration")
LAUNCHES_AT_MOST = 1 << 16


class NumpyBackend:
    """See ``suite.backend.Backend``.  Caches are cold by rotation; a launch returns when it is done."""

    name = "numpy"
    evidence = Evidence.MEASURED

    def __init__(self, options: Mapping[str, Any]) -> None:
        if options:
            raise UsageError(f"has no option '{next(iter(options))}'; it has none at all")
        self._cpu = cpuinfo.processors()
        self._threads = int(os.environ.get("OPENBLAS_NUM_THREADS") or self._cpu.cores)

    def devices(self) -> Sequence[DeviceInfo]:
        cpu = self._cpu
        return (
            DeviceInfo(
                backend=self.name,
                index=0,
                name=cpu.name,
                uid=cpuinfo.machine_uid(cpu.name, self._threads),
                memory_bytes=cpuinfo.memory_total_bytes(),
                architecture=cpu.machine,
                visible_units=cpu.cores,
                max_clock_hz=cpu.max_clock.hz,
                llc_bytes=cpu.llc_bytes,
                isa=cpu.isa,
                details={"platform": "cpu", "threads": str(self._threads)},
            ),
        )

    def select(self, index: int) -> DeviceInfo:
        if index != 0:
            raise DeviceNotFound(f"backend numpy has one device, 0, not {index}")
        return self.devices()[0]

    def environment(self) -> Mapping[str, Fact]:
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return {"numpy": Fact.measured(np.__version__), "blas": Fact.measured(f"{blas['name']} {blas['version']}")}

    def supports(self, case: Case) -> str | None:
        job = case.workload.job
        return None if job in JOBS else f"backend numpy computes {' and '.join(JOBS)}, not {job}"

    def prepare(self, case: Case, sets: int, seed: int) -> NumpyKernel:
        return operations.prepare(case, sets, seed)

    def sampler(self, kernel: NumpyKernel, case: Case, sample_s: float) -> Sampler:
        """Calls: one a sample.  Else launches are grouped, in whole rotations over the sets where caches are to be cold."""
        details = {"threads": self._threads}
        if case.regime.dispatch == "call":
            return HostSampler(kernel, LaunchPlan(1, kernel.sets, kernel.sets), self.synchronize, details=details)
        kernel.enqueue(0)
        trial = time_by_host(kernel, self.synchronize, sets=kernel.sets)
        launch_s = estimate_launch_s(trial, kernel.sets, sample_s, LAUNCHES_AT_MOST)
        plan = plan_launches(launch_s, sample_s, kernel.sets, LAUNCHES_AT_MOST)
        return HostSampler(kernel, plan, self.synchronize, details=details)

    def telemetry(self) -> Telemetry:
        return cpu_telemetry(self._cpu, self._threads)

    def memory_free(self) -> int:
        return cpuinfo.memory_available_bytes()

    def peak_memory_bytes(self) -> int | None:
        """Not counted: a process's high-water mark cannot be reset."""
        return None

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def classify(self, error: BaseException) -> Failure:
        return classify(error)
