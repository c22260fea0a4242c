"""How a step goes through a library or kernels: see ``backends.torch.way``; ``paged`` says where it wants its caches."""

from typing import NamedTuple, TypeAlias

from backends.torch import way
from backends.torch.decode_step.operands import StepBuffers
from suite.jobs.decode_step import Sizes

Task: TypeAlias = way.Task[Sizes, StepBuffers]


class Way(NamedTuple):
    """One implementation, and whether its caches lie in pages; else they are in one piece."""

    way: way.Way[Sizes, StepBuffers]
    paged: bool
