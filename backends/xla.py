"""The XLA backend: JAX on whatever platform it finds, CPU, GPU or TPU."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from backends.cold import flush_factor
from backends.failures import classify
from backends.host import arithmetic, cgroup, cpuinfo
from backends.host.cuda_driver import CudaIdentity, DriverSilent, identify
from backends.options import read_options
from backends.telemetry.host import cpu_telemetry
from backends.telemetry.nvidia import nvml_telemetry
from backends.telemetry.nvml import Nvml, NvmlDevice, load_nvml, told
from backends.telemetry.others import DeviceAddress
from suite.backend import DeviceInfo, Fact, Failure, Kernel, Sampler, Telemetry
from suite.case import Case
from suite.errors import DeviceNotFound, UsageError
from suite.measure.regimes import COLD_ROTATION, UNKNOWN_LLC_BYTES
from suite.outcome import Evidence
from suite.telemetry import NoTelemetry

if TYPE_CHECKING:
    import jax

    from backends.jax.flush import Flush
    from backends.jax.kernel import XlaKernel
    from backends.jax.target import Target

OPTIONS: dict[str, Any] = {"platform": "auto", "flush_factor": 2.0, "telemetry_period_s": 0.02}
NO_CLOCK = "no counter of the device's own cycles is read beside XLA's stream"
# A turn over the sets is written out in the program: beyond this, compiling takes longer than it tells.
SETS_IN_A_LOOP = 32
LAUNCHES_AT_MOST = 1 << 16


class XlaBackend:
    """Measures one device through JAX.

    Options: ``platform`` (``cpu``, ``cuda``, ``rocm``, ``tpu``, or ``auto`` for JAX's own choice), ``flush_factor`` (size of
    a CPU's cache flush in last-level caches), ``telemetry_period_s``.  A GPU or TPU is cold by rotation over input sets
    inside one program, a CPU by a flush between launches.
    """

    name = "xla"
    evidence = Evidence.MEASURED

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = read_options(self.name, options, OPTIONS)
        flush_factor(self.name, self._options["flush_factor"])
        if find_spec("jax") is None:
            raise DeviceNotFound("backend xla needs JAX, which is not installed; pip install 'roofbench[xla]'")
        from backends.jax.platform import PLATFORMS

        if self._options["platform"] not in PLATFORMS:
            raise UsageError(f"backends.xla.options.platform={self._options['platform']!r} is none of {', '.join(PLATFORMS)}")
        self._device: jax.Device | None = None
        self._target: Target | None = None
        self._kernels: list[XlaKernel] = []

    def devices(self) -> Sequence[DeviceInfo]:
        return tuple(self._describe(index, device) for index, device in enumerate(self._jax_devices))

    def select(self, index: int) -> DeviceInfo:
        import jax

        from backends.jax.platform import kind_of
        from backends.jax.target import Target

        found = self._jax_devices
        if not 0 <= index < len(found):
            raise DeviceNotFound(f"backend xla has no device {index}: JAX sees {len(found)}")
        self._device = found[index]
        jax.config.update("jax_default_device", self._device)
        identity = _identity(self._device)
        kind, capability = kind_of(self._device), identity.capability if isinstance(identity, CudaIdentity) else None
        self._target = Target(
            kind, capability, tuple(arithmetic.lacking(cpuinfo.processors().isa).items()) if kind == "cpu" else ()
        )
        return self._describe(index, self._device)

    def environment(self) -> Mapping[str, Fact]:
        from backends.jax.libraries import jax_facts

        device = self._nvml_device(self._selected())
        settings = device.facts() if isinstance(device, NvmlDevice) else {}
        return {**jax_facts(self._selected()), **settings}

    def supports(self, case: Case) -> str | None:
        from backends.jax import jobs

        return jobs.reason(case, self._selected_target())

    def prepare(self, case: Case, sets: int, seed: int) -> Kernel:
        from backends.jax import jobs
        from backends.jax.kernel import XlaKernel

        kernel = jobs.prepare(case, self._selected_target(), sets, seed)
        if not isinstance(kernel, XlaKernel):  # it waits for itself, in another process
            return kernel
        self._kernels = [each for each in self._kernels if each.outputs] + [kernel]
        return kernel

    def sampler(self, kernel: Kernel, case: Case, sample_s: float) -> Sampler:
        """Call: host time of single launches.  Device: the slope of a loop inside one program, or of queued calls.

        A CPU is timed as the CPU backend times it, by the host's clock: a loop there is another program than a launch,
        because XLA runs small loops on one thread.
        """
        from backends.jax import collective
        from backends.jax.collective.kernel import XlaCollective
        from backends.jax.kernel import XlaKernel
        from backends.launches.host_sampler import HostSampler, clock_resolution_s
        from backends.launches.plan import LaunchPlan

        if isinstance(kernel, XlaCollective):
            return collective.sampler(kernel)
        assert isinstance(kernel, XlaKernel)
        on_cpu, cold = self._selected_target().kind == "cpu", case.regime.cache == "cold"
        if cold and not on_cpu:
            self._refuse_warm(kernel)
        if on_cpu and not cold and case.regime.dispatch == "device":
            return self._grouped(kernel, sample_s)
        if on_cpu or case.regime.dispatch == "call":
            flush = self._flush if on_cpu and cold else None
            return HostSampler(kernel, LaunchPlan(1, kernel.sets, kernel.sets), kernel.wait_for_latest, flush)
        return self._slope(kernel, sample_s, clock_resolution_s())

    def _refuse_warm(self, kernel: "XlaKernel") -> None:
        """Sets that a cache holds together would be found there, and inside a program nothing can be flushed."""
        llc_bytes = self._describe(0, self._selected()).llc_bytes or UNKNOWN_LLC_BYTES
        if kernel.sets * kernel.set_bytes < COLD_ROTATION * llc_bytes:
            raise NotImplementedError(
                f"cold is not supported: {kernel.sets} input sets of {kernel.set_bytes} bytes fit in {COLD_ROTATION} caches of "
                f"{llc_bytes}, and XLA has no flush"
            )

    def telemetry(self) -> Telemetry:
        device, period_s = self._selected(), self._options["telemetry_period_s"]
        if device.platform == "cpu":
            return cpu_telemetry(self._cpu, self._cpu.cores, period_s)
        found = self._nvml_device(device)
        return NoTelemetry(found) if isinstance(found, str) else nvml_telemetry(found, period_s, NO_CLOCK)

    def memory_free(self) -> int:
        if self._selected().platform == "cpu":
            left, available = cgroup.memory_left_bytes(), cpuinfo.memory_available_bytes()
            return available if left is None else min(available, left)
        stats = self._selected().memory_stats() or {}
        return int(stats.get("bytes_limit", 0)) - int(stats.get("bytes_in_use", 0))

    def peak_memory_bytes(self) -> int | None:
        """JAX's high-water mark cannot be reset, so that it would be the largest case's for all after it."""
        return None

    def synchronize(self) -> None:
        for kernel in self._kernels:
            kernel.wait()

    def classify(self, error: BaseException) -> Failure:
        return classify(error)

    def _grouped(self, kernel: "XlaKernel", sample_s: float) -> Sampler:
        from backends.launches.host_sampler import HostSampler, time_by_host
        from backends.launches.plan import estimate_launch_s, plan_launches

        kernel.enqueue(0)
        timed = time_by_host(kernel, kernel.wait_for_latest, sets=1)
        plan = plan_launches(estimate_launch_s(timed, 1, sample_s, LAUNCHES_AT_MOST), sample_s, 1, LAUNCHES_AT_MOST)
        return HostSampler(kernel, plan, kernel.wait_for_latest)

    def _slope(self, kernel: "XlaKernel", sample_s: float, resolution_s: float) -> Sampler:
        from backends.jax.program import NotALoop
        from backends.jax.slope import HOST_SHARE_AT_MOST, LoopTurns, QueueTurns, SlopeSampler, launch_s

        why = f"a turn over {kernel.sets} sets would not fit one program"
        if kernel.sets <= SETS_IN_A_LOOP:
            try:
                return SlopeSampler(LoopTurns(kernel, launch_s(kernel)), kernel.sets, sample_s, resolution_s)
            except NotALoop as error:
                why = str(error)
        queued = QueueTurns(kernel, why)
        sampler = SlopeSampler(queued, kernel.sets, sample_s, resolution_s)
        share = queued.host_share(max(1, sampler.launches // kernel.sets))
        if share > HOST_SHARE_AT_MOST:
            raise NotImplementedError(
                f"time on the device is not supported here: {why}, and calls are handed over in {share:.0%} of the time that "
                "they take, so that the host would be timed; ask for the dispatch call, or for a larger product"
            )
        return sampler

    def _nvml_device(self, device: "jax.Device") -> NvmlDevice | str:
        """The driver's handle of a device, or why there is none."""
        identity = _identity(device)
        if isinstance(identity, str):
            return identity
        if self._nvml.library is None:
            return self._nvml.reason
        found = NvmlDevice.find(self._nvml.library, DeviceAddress(identity.uuid, identity.pci_bus_id))
        return found or f"NVML does not know the device {identity.pci_bus_id}"

    @cached_property
    def _nvml(self) -> Nvml:
        return load_nvml()

    @cached_property
    def _flush(self) -> "Flush":
        """One buffer for every sampler: filling a new one costs more than a measurement."""
        from backends.jax.flush import Flush

        return Flush(int(self._options["flush_factor"] * (self._cpu.llc_bytes or UNKNOWN_LLC_BYTES)))

    @cached_property
    def _cpu(self) -> cpuinfo.Processors:
        return cpuinfo.processors()

    @cached_property
    def _jax_devices(self) -> "Sequence[jax.Device]":
        from backends.jax.platform import start

        return start(self._options["platform"])

    def _describe(self, index: int, device: "jax.Device") -> DeviceInfo:
        if device.platform == "cpu":
            return self._describe_cpu(index)
        identity = _identity(device)
        stats = device.memory_stats() or {}
        info = DeviceInfo(
            backend=self.name,
            index=index,
            name=str(device.device_kind),
            uid=_uid(device, identity),
            memory_bytes=int(stats.get("bytes_limit", 0)),
            details={"platform": str(device.platform), "process_index": str(device.process_index)},
        )
        if isinstance(identity, str):
            return replace(info, details={**info.details, "driver": identity})
        nvml = self._nvml_device(device)
        return replace(
            info,
            memory_bytes=identity.memory_bytes,
            architecture="sm_{}{}".format(*identity.capability),
            visible_units=identity.units,
            max_clock_hz=told(nvml, NvmlDevice.max_sm_clock_hz),
            max_memory_clock_hz=told(nvml, NvmlDevice.max_memory_clock_hz),
            llc_bytes=identity.l2_bytes or None,
            power_limit_w=told(nvml, NvmlDevice.power_limit_w),
            pci_bus_id=identity.pci_bus_id,
            driver=nvml.driver() if isinstance(nvml, NvmlDevice) else None,
        )

    def _describe_cpu(self, index: int) -> DeviceInfo:
        """The same device as the CPU backend's, so that results of both stand on the same chip."""
        cpu, limit = self._cpu, cgroup.memory_limit_bytes()
        total = cpuinfo.memory_total_bytes()
        return DeviceInfo(
            backend=self.name,
            index=index,
            name=cpu.name,
            uid=cpuinfo.machine_uid(cpu.name, cpu.cores),
            memory_bytes=total if limit is None else min(total, limit),
            architecture=cpu.machine,
            visible_units=cpu.cores,
            max_clock_hz=cpu.max_clock.hz,
            llc_bytes=cpu.llc_bytes,
            isa=cpu.isa,
            details={"platform": "cpu", "clock_source": cpu.max_clock.source, "logical_cpus": str(len(cpu.cpus))},
            cold_by="flush",
        )

    def _selected(self) -> "jax.Device":
        assert self._device is not None, "select a device first"
        return self._device

    def _selected_target(self) -> "Target":
        assert self._target is not None, "select a device first"
        return self._target


def _identity(device: "jax.Device") -> CudaIdentity | str:
    """What the driver says of an NVIDIA device; a reason for every other one."""
    from backends.jax.platform import kind_of

    if kind_of(device) != "cuda":
        return f"nothing is read from a {kind_of(device)} device beside JAX"
    ordinal = device.local_hardware_id
    try:
        return identify(device.id if ordinal is None else int(ordinal))
    except DriverSilent as error:
        return str(error)


def _uid(device: "jax.Device", identity: CudaIdentity | str) -> str:
    """The CUDA backend's for the same chip; of a device without a UUID, its place in the machine."""
    if isinstance(identity, CudaIdentity):
        return hashlib.sha256(f"cuda:{identity.uuid}".encode()).hexdigest()[:16]
    return cpuinfo.machine_uid(f"{device.device_kind}:{device.id}", 0)
