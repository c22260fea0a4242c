"""What a device can really do with memory and with an empty kernel: the base of bounds and empirical roofs.

Read, copy and triad at one size well past the last-level cache, and an empty kernel per dispatch.  Planned first in
every run on a device that has none stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from suite.case import Case, Items, Regime, Workload, items
from suite.settings import JobSettings
from suite.work import Footprint, Work

ACCELERATOR_BYTES = 4 * 2**30
CACHE_MULTIPLE = 8  # of a CPU's last-level cache: enough that what stays cached between passes is under an eighth
MIDDLING_CPU_LLC_BYTES = 32 * 2**20  # where a CPU does not say: up to eight times as much, something is still read from memory
LARGEST_MEMORY_SHARE = 0.25

# How many operands of the working set each operation reads or writes, and the floating-point operations per element.
OPERANDS = {"read": 1, "copy": 2, "triad": 3}
ELEMENT_BYTES = 4


@dataclass
class CalibrationSettings(JobSettings):
    """``bytes`` is the working set of each memory operation, all operands together."""

    name: str = "calibration"
    bytes: int = ACCELERATOR_BYTES


class CalibrationJob:
    """See ``suite.jobs.job.Job``."""

    name = "calibration"
    method_version = 1
    settings_type = CalibrationSettings
    formats = ("fp32",)
    implementations = ("library",)
    usual_regimes: tuple[Regime, ...] = ()

    def check(self, settings: CalibrationSettings) -> None:
        """Nothing to refuse: plan chooses the size."""

    def workloads(self, settings: CalibrationSettings) -> Iterator[Workload]:
        """The memory operations, then the empty kernel."""
        for op in OPERANDS:
            yield Workload("calibration", "fp32", items({"op": op, "bytes": settings.bytes}))
        yield Workload("calibration", "fp32", items({"op": "empty", "bytes": 0}))

    def switches(self, settings: CalibrationSettings, workload: Workload) -> tuple[Items, ...]:
        """None apply."""
        return ((),)

    def misfit(self, case: Case) -> str | None:
        """Nothing: every device has them."""
        return None

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """Bytes read plus bytes written; no arithmetic is counted, so that the memory roof alone judges it."""
        if workload.param("op") == "empty":
            return Work(flops=0, compulsory_bytes=0, pipe=None)
        return Work(flops=0, compulsory_bytes=_elements(workload) * OPERANDS[workload.param("op")] * ELEMENT_BYTES, pipe=None)

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        """The working set once; the reference looks at samples of it."""
        total = self.work(workload).compulsory_bytes
        written = 0 if workload.param("op") in ("read", "empty") else _elements(workload) * ELEMENT_BYTES
        return Footprint(input_bytes=total - written, output_bytes=written, scratch_bytes=64 * 2**20)

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """A copy is exact; a triad rounds twice; a read sums millions of fp32 terms in blocks."""
        return {"copy": 0.0, "triad": 2.0**-22, "read": 1e-3, "empty": 0.0}[workload.param("op")]


def working_set_bytes(memory_bytes: int, llc_bytes: int | None, is_cpu: bool) -> int:
    """The size to calibrate at: 4 GiB, or on a CPU 8x the last-level cache; at most a quarter of memory."""
    wanted = CACHE_MULTIPLE * (llc_bytes or MIDDLING_CPU_LLC_BYTES) if is_cpu else ACCELERATOR_BYTES
    largest = int(memory_bytes * LARGEST_MEMORY_SHARE)
    return (min(wanted, largest) if largest else wanted) // 4096 * 4096


def _elements(workload: Workload) -> int:
    """Elements of one operand."""
    return int(workload.param("bytes")) // (OPERANDS[workload.param("op")] * ELEMENT_BYTES)
