"""CPU kernels that read their operands wrongly, and a backend of such for workers.

``WAYS`` change what one operand is taken for; each names the format it is tried on.  The option ``way`` of ``MisreadingCpu`` is
one of their names.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from backends.cpu import CpuBackend
from backends.torch.gemm.operands import QuantisedOperand
from backends.torch.kernel import TorchKernel
from backends.torch.quantise.quantised import Quantised
from suite.backend import Kernel
from suite.case import Case
from suite.outcome import Evidence
from tests.backends.planted_bugs import BuggyKernel, worth, write

Change = Callable[[Quantised], Quantised]


def misread(change: Change) -> Callable[[TorchKernel], BuggyKernel]:
    """A kernel whose every product is right but for one operand, B if it can be, that is read as ``change`` leaves it.

    One only: what is exchanged along K in both operands alike gives the same product.
    """

    def launch(kernel: TorchKernel, set_index: int) -> None:
        each = kernel.input_sets[set_index]
        a, b = each.operands
        b_read = _changed(b, change)
        a_read = a if b_read is not b else _changed(a, change)
        write(each, worth(a_read) @ worth(b_read).t())

    return lambda kernel: BuggyKernel(kernel, launch)


def _changed(operand: Any, change: Change) -> Any:
    if not isinstance(operand, QuantisedOperand):
        return operand
    changed = change(operand.quantised)
    return operand if changed is operand.quantised else replace(operand, data=changed.data, quantised=changed)


def as_it_is(of: Quantised) -> Quantised:
    return of


def swapped_nibbles(of: Quantised) -> Quantised:
    codes = of.data.view(torch.uint8)
    return replace(of, data=(codes << 4 | codes >> 4).view(of.data.dtype))


def swapped_sixes(of: Quantised) -> Quantised:
    """The three bytes that hold four numbers, read from the last to the first."""
    return replace(of, data=of.data.view(-1, 3).flip(1).reshape(of.data.shape))


def without_zero_points(of: Quantised) -> Quantised:
    return of if of.zero_points is None else replace(of, zero_points=torch.zeros_like(of.zero_points))


def scales_of_the_next_row(of: Quantised) -> Quantised:
    return _moved(of, 0)


def scales_of_the_next_block(of: Quantised) -> Quantised:
    return _moved(of, 1)


def _moved(of: Quantised, axis: int) -> Quantised:
    bits = of.scales.view(torch.uint8) if of.scales.dtype.itemsize == 1 else of.scales
    return replace(of, scales=bits.roll(1, axis).view(of.scales.dtype))


def twice_the_scale(of: Quantised) -> Quantised:
    """That of the first block."""
    scales = of.scales.to(torch.float32)
    scales[0, 0] *= 2
    return replace(of, scales=scales.to(of.scales.dtype))


def without_tensor_scale(of: Quantised) -> Quantised:
    return of if of.tensor_scale is None else replace(of, tensor_scale=torch.ones_like(of.tensor_scale))


WAYS = {
    "as_it_is": as_it_is,
    "swapped_nibbles": swapped_nibbles,
    "without_zero_points": without_zero_points,
    "twice_the_scale": twice_the_scale,
}


class MisreadingCpu(CpuBackend):
    """The CPU backend with every quantised product misread."""

    evidence = Evidence.SIMULATED

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._way = WAYS[options["way"]]
        super().__init__({name: value for name, value in options.items() if name != "way"})

    def prepare(self, case: Case, sets: int, seed: int) -> Kernel:
        kernel = super().prepare(case, sets, seed)
        assert isinstance(kernel, TorchKernel)
        broken: Any = misread(self._way)(kernel)
        return broken
