"""A product of quantised operands as a kernel of the suite: its buffers and its checks are those of every torch kernel."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from backends.triton.gemm.comparison import Comparison
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers, LaunchedKernel, Shared
from backends.triton.gemm.launch import Load, load
from backends.triton.gemm.trials import SETS_AT_MOST
from backends.triton.quantised.port import for_trials, make_default, make_tuned
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.product import Product, product_of
from suite.errors import UsageError


class Task(NamedTuple):
    """What is to be computed, where, and in which buffers: operands of ``QuantisedOperand``, or of bf16 where A is that.

    ``gluon`` takes the kernel of that language.
    """

    problem: Problem
    device: Device
    buffers: Sequence[Buffers]
    gluon: bool = False


class QuantisedKernel(LaunchedKernel):
    """A kernel with what its first data ask of a conversion compiled in.

    Later data that ask for more raise ``UsageError``: launches may stand in a captured graph by then.
    """

    def __init__(self, product: Product, buffers: Sequence[Buffers], shared: Shared, loaded: Load) -> None:
        self.product, self._loaded = product, loaded
        self._made_for = product.conversion
        super().__init__(buffers, shared, make_default(product, loaded), product.emulation)

    def refill(self, seed: int) -> None:
        first = self.seed is None
        super().refill(seed)
        if self.product.takes(self._made_for):
            return
        if not first:
            raise UsageError(
                f"these numbers need the conversion {self.product.conversion.kind}, and the kernel was made for "
                f"{self._made_for.kind} by the numbers that it had first; prepare the case anew, or take implementation library"
            )
        self._made_for = self.product.conversion
        self.adopt(make_default(self.product, self._loaded))

    def close(self) -> None:
        super().close()
        self.product.close()


def prepare(
    task: Task, shared: Shared, seed: int, *, tuned: bool, loaded: Load = load, cuda: Any = torch.cuda
) -> QuantisedKernel:
    """Load a kernel; with ``tuned``, fill the buffers, try configurations on that data, and load the fastest."""
    product = product_of(*task)
    kernel = QuantisedKernel(product, task.buffers, shared, loaded)
    if tuned:
        kernel.refill(seed)
        sets = min(SETS_AT_MOST, len(task.buffers))
        trials = Comparison(for_trials(product, loaded, sets), task.buffers[0].output, cuda)
        kernel.adopt(make_tuned(product, trials, loaded))
    return kernel
