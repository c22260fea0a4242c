"""The CPU backend: torch on the processors that this process may use."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from backends.cold import flush_factor
from backends.failures import classify
from backends.host import cgroup, cpuinfo
from backends.host.openmp import cores_at_work, refuse_crowded
from backends.options import read_options
from backends.telemetry.host import cpu_telemetry
from suite.backend import DeviceInfo, Fact, Failure, Kernel, Sampler, Telemetry
from suite.case import Case
from suite.errors import DeviceNotFound, UsageError
from suite.measure.regimes import UNKNOWN_LLC_BYTES
from suite.outcome import Evidence

if TYPE_CHECKING:
    from backends.torch.flush import Flush
    from backends.torch.target import Target

LAUNCHES_AT_MOST = 1 << 16  # of a sample: beyond that the list of input sets takes longer to make than it tells
THREAD_ELEMENTS = 1 << 16  # torch gives a thread 2^15 at least
FULL_SPEED_CBWR = ("", "AUTO", "OFF")

OPTIONS: dict[str, Any] = {"threads": None, "flush_factor": 2.0, "telemetry_period_s": 0.02}


class CpuBackend:
    """Measures the CPU through torch.

    Options: ``threads`` (default: one a physical core that this process may use), ``flush_factor`` (size of the cache
    flush in last-level caches, at least 2), ``telemetry_period_s``.  A launch on a CPU returns when it is done, so the regimes
    ``device`` and ``call`` read the same clock.
    """

    name = "cpu"
    evidence = Evidence.MEASURED

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = read_options(self.name, options, OPTIONS)
        self._flush_factor = flush_factor(self.name, self._options["flush_factor"])
        if find_spec("torch") is None:
            raise DeviceNotFound("backend cpu needs torch, which is not installed; pip install 'roofbench[cpu]'")
        self._cpu = cpuinfo.processors()
        self._threads: int = self._options["threads"] or self._cpu.cores
        _refuse_more(self._threads, self._cpu)
        _refuse_fewer(self._threads, os.environ.get("OMP_THREAD_LIMIT", ""))
        _refuse_branch(os.environ.get("MKL_CBWR", ""))
        self._target: Target | None = None

    def devices(self) -> Sequence[DeviceInfo]:
        cpu = self._cpu
        return (
            DeviceInfo(
                backend=self.name,
                index=0,
                name=cpu.name,
                uid=cpuinfo.machine_uid(cpu.name, self._threads),
                memory_bytes=self._memory_total(),
                architecture=cpu.machine,
                visible_units=cpu.cores,
                max_clock_hz=cpu.max_clock.hz,
                llc_bytes=cpu.llc_bytes,
                isa=cpu.isa,
                details={
                    "clock_source": cpu.max_clock.source,
                    "logical_cpus": str(len(cpu.cpus)),
                    "sockets": str(cpu.sockets),
                    "cpu_quota": "none" if cpu.quota is None else f"{cpu.quota:g}",
                    "guest": "yes" if cpu.guest else "no",
                    "llc_instances": str(cpu.llc_instances),
                    "threads": str(self._threads),
                },
                cold_by="flush",
            ),
        )

    def select(self, index: int) -> DeviceInfo:
        if index != 0:
            raise DeviceNotFound(f"backend cpu has one device, 0, not {index}")
        import torch

        from backends.torch.target import cpu_target

        torch.set_num_threads(self._threads)
        if self._threads > 1:
            # Of so many elements that each thread has some.
            left = cores_at_work(lambda: torch.ones(self._threads * THREAD_ELEMENTS).add_(1))
            refuse_crowded(min(self._threads, len(cpuinfo.places(self._cpu.cpus))), left, os.environ)
        self._target = cpu_target(self._cpu.isa)
        return self.devices()[0]

    def environment(self) -> Mapping[str, Fact]:
        import torch

        from backends.torch.libraries import torch_facts

        return {
            **torch_facts(),
            "torch_cpu_capability": Fact.measured(torch.backends.cpu.get_cpu_capability()),
        }

    def supports(self, case: Case) -> str | None:
        from backends.torch import jobs

        return jobs.reason(case, self._selected())

    def prepare(self, case: Case, sets: int, seed: int) -> Kernel:
        from backends.torch import jobs

        return jobs.prepare(case, self._selected(), sets, seed)

    def sampler(self, kernel: Kernel, case: Case, sample_s: float) -> Sampler:
        """Cold: one launch a sample, caches flushed before each turn over the sets.  Warm: one set, launches grouped."""
        from backends.launches.host_sampler import HostSampler, time_by_host
        from backends.launches.plan import LaunchPlan, estimate_launch_s, plan_launches
        from backends.torch import jobs

        if own := jobs.sampler(case, kernel):
            return own
        details = {"threads": self._threads}
        if case.regime.cache == "cold":
            plan = LaunchPlan(1, kernel.sets, kernel.sets)
            return HostSampler(kernel, plan, self.synchronize, self._flush, details)
        if case.regime.dispatch == "call":
            return HostSampler(kernel, LaunchPlan(1, 1, 1), self.synchronize, details=details)
        kernel.enqueue(0)
        launch_s = estimate_launch_s(time_by_host(kernel, self.synchronize, sets=1), 1, sample_s, LAUNCHES_AT_MOST)
        plan = plan_launches(launch_s, sample_s, sets=1, limit=LAUNCHES_AT_MOST)
        return HostSampler(kernel, plan, self.synchronize, details=details)

    def telemetry(self) -> Telemetry:
        return cpu_telemetry(self._cpu, self._threads, self._options["telemetry_period_s"])

    def memory_free(self) -> int:
        left = cgroup.memory_left_bytes()
        available = cpuinfo.memory_available_bytes()
        return available if left is None else min(available, left)

    def peak_memory_bytes(self) -> int | None:
        """A process's high-water mark cannot be reset, so that it would be the largest case's for all after it."""
        return None

    def synchronize(self) -> None:
        """Nothing to wait for: a CPU launch returns when it is done."""

    def classify(self, error: BaseException) -> Failure:
        return classify(error)

    @cached_property
    def _flush(self) -> "Flush":
        """One buffer for every sampler: filling a new one costs more than a measurement."""
        from backends.torch.flush import Flush

        llc_bytes = self._cpu.llc_bytes or UNKNOWN_LLC_BYTES
        return Flush(self._selected().device, int(self._flush_factor * llc_bytes))

    def _memory_total(self) -> int:
        limit = cgroup.memory_limit_bytes()
        total = cpuinfo.memory_total_bytes()
        return total if limit is None else min(total, limit)

    def _selected(self) -> "Target":
        assert self._target is not None, "select a device first"
        return self._target


def _refuse_more(threads: int, cpu: cpuinfo.Processors) -> None:
    """Threads beyond the logical CPUs take turns, which no mark of a result tells: 64 on two need seven times as long.

    A quota stops all threads once they have used it up together.
    """
    most = cpu.most_threads
    if threads > most:
        cpus = "1 logical CPU" if len(cpu.cpus) == 1 else f"{len(cpu.cpus)} logical CPUs"
        told = cpus if most == len(cpu.cpus) else f"quota of {cpu.quota:g} CPUs"
        raise UsageError(
            f"backends.cpu.options.threads={threads} is more than the {told} that this process may use, on which they would "
            f"take turns; set at most {most}, or leave it out for one a physical core"
        )


def _refuse_fewer(threads: int, limit: str) -> None:
    """OpenMP starts fewer threads than torch asks for under this limit, torch is not told, and its products have holes."""
    if limit.isascii() and limit.isdecimal() and int(limit) < threads:
        raise UsageError(
            f"OMP_THREAD_LIMIT={limit} allows fewer threads than the {threads} that backend cpu uses; unset it, or set "
            f"backends.cpu.options.threads={limit}"
        )


def _refuse_branch(asked: str) -> None:
    """MKL then keeps to the instructions of another processor, whose results it repeats bit by bit: a product takes longer."""
    if asked.strip().upper() not in FULL_SPEED_CBWR:
        raise UsageError(f"MKL_CBWR={asked} keeps MKL from what this CPU can do; unset it, or set MKL_CBWR=AUTO")
