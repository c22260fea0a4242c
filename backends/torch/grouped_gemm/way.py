"""How a grouped product goes through a library or a kernel: what it refuses, and how launches are made."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from backends.torch.grouped_gemm.operands import Buffers
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.grouped_gemm import Sizes


class Task(NamedTuple):
    """What launches are made for; ``seed`` is that of the data with which a choice may be made.

    ``fast_accum`` sums fp8 with scales of rows in the tensor core's short accumulator.
    """

    workload: Workload
    sizes: Sizes
    target: Target
    buffers: Sequence[Buffers]
    seed: int
    fast_accum: bool = False


class Way(NamedTuple):
    """One implementation: why it cannot compute a workload on a target, and how it is made ready."""

    refuses: Callable[[Workload, Target], str | None]
    make: Callable[[Task], Made]
