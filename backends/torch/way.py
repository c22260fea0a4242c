"""How a job goes through a library or a kernel: what it refuses, and how launches are made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from backends.torch.target import Target
from suite.case import Workload

Sizes = TypeVar("Sizes")
Buffers = TypeVar("Buffers")


class Task(NamedTuple, Generic[Sizes, Buffers]):
    """What launches are made for; ``seed`` is that of the data with which a choice may be made."""

    workload: Workload
    sizes: Sizes
    target: Target
    buffers: Sequence[Buffers]
    seed: int


class Made(NamedTuple):
    """A launch for each input set.

    With ``returns`` a launch returns its results, in buffers of the library's own; else it writes those of its set and returns
    nothing of meaning.  ``renewals``, one for each set where there are any, run after each refill: they compute what a
    backward pass is given, or lay operands out as a library wants them.  ``emulation`` is what happens to numbers that nothing
    multiplies as they are stored.
    """

    launches: Sequence[Callable[[], Any]]
    facts: Mapping[str, Any]
    returns: bool = False
    renewals: Sequence[Callable[[], None]] = ()
    emulation: str = ""


class Way(NamedTuple, Generic[Sizes, Buffers]):
    """One implementation: why it cannot compute a workload on a target, and how it is made ready."""

    refuses: Callable[[Workload, Target], str | None]
    make: Callable[[Task[Sizes, Buffers]], Made]
