"""How a product goes through a library: the call, what it refuses, and what is multiplied in place of the stored numbers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.sizes import Sizes
from backends.torch.precision import Precision

Launch = Callable[[], Any]
Bind = Callable[[Operand, Operand, torch.Tensor], Launch]

CONVERTED = "operands converted to bf16, then a bf16 matmul"


class Task(NamedTuple):
    """What a launch is made for."""

    sizes: Sizes
    precision: Precision
    device: torch.device


class Way(NamedTuple):
    """One way through a library.

    ``make`` gives what binds launches to buffers; the calls they make allocate nothing that outlives them.  ``refuses`` says
    why sizes cannot be had.  ``emulation`` is what happens to numbers that nothing multiplies as they are stored, empty where
    something does; ``pipe`` is then the unit that multiplies.  ``passing_bytes`` are written within a launch and read again.
    """

    call: str
    library: str
    make: Callable[[Task], Bind]
    refuses: Callable[[Sizes], str | None] = lambda sizes: None
    emulation: str = ""
    pipe: str | None = None
    passing_bytes: Callable[[Sizes], int] = lambda sizes: 0


def multiples(call: str, of: int, **sizes: int) -> str | None:
    """Why a call that takes multiples only does not take these sizes, with the remedy; ``None`` when it does."""
    if not any(size % of for size in sizes.values()):
        return None
    given = " ".join(f"{name}={size}" for name, size in sizes.items())
    padded = " ".join(f"{name}={-(-size // of) * of}" for name, size in sizes.items())
    return f"{call} takes {' and '.join(sizes)} that are multiples of {of}, not {given}; pad to {padded}"
