"""Which physical cores a process may use: a launcher may have bound it to a few of them."""

import os
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> frozenset[str]:
    """A name for each, the same in every process of the host: the logical CPUs that the core has, as the kernel lists them."""
    return frozenset(_core_of(cpu, root) for cpu in os.sched_getaffinity(0))


def _core_of(cpu: int, root: Path) -> str:
    try:
        return (root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text().strip() or str(cpu)
    except OSError:  # without a topology every logical CPU counts as a core
        return str(cpu)
