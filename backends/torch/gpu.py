"""A GPU that torch calls ``cuda``, NVIDIA's or AMD's: how its cases are made ready, timed and told apart when they fail.

``backends/cuda.py`` and ``backends/rocm.py`` say what differs: which devices there are, what they can, and who reads their
clock and power.
"""

from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from backends.cold import flush_factor
from backends.failures import classify
from backends.options import read_options
from suite.backend import DeviceInfo, Failure, Kernel, Sampler
from suite.case import Case
from suite.errors import DeviceNotFound, UsageError
from suite.measure.regimes import COLD_ROTATION, UNKNOWN_LLC_BYTES
from suite.outcome import Evidence, Outcome

if TYPE_CHECKING:
    from backends.torch.flush import Flush
    from backends.torch.target import Target
    from backends.triton.device_clock import DeviceClock
    from backends.triton.sample_clock import SampleClock

OPTIONS: dict[str, Any] = {"sampler": "auto", "flush_factor": 2.0, "telemetry_period_s": 0.02}
SAMPLERS = ("auto", "graph", "spin")
# Medians over so many places that have nothing to do with each other differ by a quarter of what single places do.
PLACES = 16


class TorchGpu:
    """What ``suite.backend.Backend`` asks for and torch does alike on GPUs of both makers.

    Options: ``sampler`` (``graph``, ``spin`` or ``auto``: a graph, a spin kernel where no graph can be captured),
    ``flush_factor`` (size of the cache flush in last-level caches, where one is used; at least 2), ``telemetry_period_s``.
    """

    name = ""
    evidence = Evidence.MEASURED
    defaults: Mapping[str, Any] = OPTIONS

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = read_options(self.name, options, self.defaults)
        self._flush_factor = flush_factor(self.name, self._options["flush_factor"])
        if self._options["sampler"] not in SAMPLERS:
            raise UsageError(
                f"backends.{self.name}.options.sampler={self._options['sampler']!r} is none of {', '.join(SAMPLERS)}"
            )
        if find_spec("torch") is None:
            remedy = f"pip install 'roofbench[{self.name}]'"
            raise DeviceNotFound(f"backend {self.name} needs torch, which is not installed; {remedy}")
        self._device: DeviceInfo | None = None
        self._capability = (0, 0)
        self._target: Target | None = None

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

    def _selected(self) -> "Target":
        assert self._target is not None, "select a device first"
        return self._target

    def _selected_info(self) -> DeviceInfo:
        assert self._device is not None, "select a device first"
        return self._device
