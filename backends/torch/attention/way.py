"""How attention goes through a library or a kernel: see ``backends.torch.way``."""

from typing import TypeAlias

from backends.torch import way
from backends.torch.attention.operands import Buffers
from suite.jobs.attention import Sizes

Task: TypeAlias = way.Task[Sizes, Buffers]
Way: TypeAlias = way.Way[Sizes, Buffers]
