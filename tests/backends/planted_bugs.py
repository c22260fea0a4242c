"""Kernels with a known bug, wrapped around the real ones: a check that passes any of them is worth nothing.

``BUGS`` lists (name, wrap); ``wrap(kernel)`` takes a ``TorchKernel`` of the gemm job and returns a kernel of the same contract
whose every launch is wrong in one way.  All of them run on the device, can be captured in a graph, and work for every
format.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm import a_view, b_view
from backends.torch.kernel import InputSet, TorchKernel

DROPPED_K = 32
TILE = 16
WRONG_SCALE = 1.1
# An int32 output cannot hold NaN: a number far outside what the product can be stands for it.
WRONG_INTEGER = 1 << 30


class BuggyKernel:
    """A kernel whose launches are replaced by ``launch(kernel, set_index)``; everything else is the real one's."""

    def __init__(self, real: TorchKernel, launch: Callable[[TorchKernel, int], None]) -> None:
        self.real = real
        self._launch = launch

    def enqueue(self, set_index: int) -> None:
        self._launch(self.real, set_index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Bug(NamedTuple):
    name: str
    wrap: Callable[[TorchKernel], BuggyKernel]


def factors(layout: str, each: InputSet) -> tuple[torch.Tensor, torch.Tensor]:
    """A as m x k and B as k x n, by what their stored numbers are worth."""
    a, b = (worth(operand) for operand in each.operands)
    return a_view(a, layout), b_view(b, layout)


def worth(operand: Operand) -> torch.Tensor:
    return operand.numbers(0, operand.data.shape[0])


def write(each: InputSet, product: torch.Tensor) -> None:
    each.output.copy_(product)


def wrong_transpose(layout: str, kernel: TorchKernel, set_index: int) -> None:
    """B is read in the other storage order: its rows taken for its columns."""
    each = kernel.input_sets[set_index]
    a_mk, b_kn = factors(layout, each)
    k, n = b_kn.shape
    storage = worth(each.operands[1]).reshape(-1)
    misread = storage.view(k, n) if layout[1] == "t" else storage.view(n, k).t()
    write(each, a_mk @ misread)


def unwritten_tile(kernel: TorchKernel, set_index: int) -> None:
    """The last tile is never stored: what stood there before still stands there."""
    output = kernel.input_sets[set_index].output
    before = output[-TILE:, -TILE:].clone()
    kernel.enqueue(set_index)
    output[-TILE:, -TILE:] = before


def stale_output(kernel: TorchKernel) -> BuggyKernel:
    """The results of the data that it is planted among are given out ever after, whatever the inputs have become.

    They are computed here: a plant that kept what its first launch gives would be right in the first check.
    """
    kept = []
    for set_index, each in enumerate(kernel.input_sets):
        kernel.enqueue(set_index)
        kept.append(each.output.clone())

    def launch(real: TorchKernel, set_index: int) -> None:
        real.input_sets[set_index].output.copy_(kept[set_index])

    return BuggyKernel(kernel, launch)


def wrong_scale(kernel: TorchKernel, set_index: int) -> None:
    """Every result is a tenth too large; integers twice as large."""
    output = kernel.input_sets[set_index].output
    kernel.enqueue(set_index)
    output.mul_(WRONG_SCALE if output.dtype.is_floating_point else 2)


def truncated_k(layout: str, kernel: TorchKernel, set_index: int) -> None:
    """The last block of K is left out."""
    each = kernel.input_sets[set_index]
    a_mk, b_kn = factors(layout, each)
    k = a_mk.shape[1]
    kept = k - DROPPED_K if k > DROPPED_K else k // 2
    write(each, a_mk[:, :kept] @ b_kn[:kept])


def not_a_number(kernel: TorchKernel, set_index: int) -> None:
    """One element, far from the corner that is always sampled, is NaN."""
    output = kernel.input_sets[set_index].output
    kernel.enqueue(set_index)
    value = float("nan") if output.dtype.is_floating_point else WRONG_INTEGER
    output[output.shape[0] // 2, output.shape[1] // 3].fill_(
        value
    )  # a value assigned would be a copy from the host: no graph takes it


def destroyed_input(kernel: TorchKernel, set_index: int) -> None:
    """Both an operand and the output are zero: right, by what is left of the inputs."""
    each = kernel.input_sets[set_index]
    each.operands[0].data.view(torch.uint8).zero_()
    each.output.zero_()


def planted(launch: Callable[[TorchKernel, int], None]) -> Callable[[TorchKernel], BuggyKernel]:
    return lambda kernel: BuggyKernel(kernel, launch)


def with_layout(launch: Callable[[str, TorchKernel, int], None]) -> Callable[[TorchKernel], BuggyKernel]:
    """The layout is asked for beforehand: describing a kernel draws numbers anew, which no graph takes."""
    return lambda kernel: BuggyKernel(kernel, partial(launch, str(kernel.describe()["layout"])))


BUGS = [
    Bug("wrong transpose", with_layout(wrong_transpose)),
    Bug("unwritten tile", planted(unwritten_tile)),
    Bug("stale output", stale_output),
    Bug("wrong scale", planted(wrong_scale)),
    Bug("truncated K", with_layout(truncated_k)),
    Bug("destroyed input", planted(destroyed_input)),
    Bug("NaN", planted(not_a_number)),
]
