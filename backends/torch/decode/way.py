"""How decoding goes through a library or a kernel: what it refuses, and how launches are made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from backends.torch.decode.operands import Buffers
from backends.torch.target import Target
from suite.case import Workload
from suite.jobs.decode import Sizes


class Task(NamedTuple):
    """What launches are made for; ``seed`` is that of the data with which a choice may be made."""

    workload: Workload
    sizes: Sizes
    target: Target
    buffers: Sequence[Buffers]
    seed: int


class Made(NamedTuple):
    """A launch for each input set.

    With ``returns`` a launch returns O (batch, q_len, query heads, columns) in a buffer of the library's own; else it writes
    that of its set.  ``renewals``, one for each set where there are any, run after each refill: they lay keys and values, or
    the page table, out as a library wants them.  ``emulation`` is what happens to numbers that nothing multiplies as they are
    stored.
    """

    launches: Sequence[Callable[[], Any]]
    facts: Mapping[str, Any]
    returns: bool = False
    renewals: Sequence[Callable[[], None]] = ()
    emulation: str = ""


class Way(NamedTuple):
    """One implementation: why it cannot compute a workload on a target, and how it is made ready."""

    refuses: Callable[[Workload, Target], str | None]
    make: Callable[[Task], Made]
