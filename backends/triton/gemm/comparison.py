"""Configurations made ready to be timed on filled buffers, each held against the first one's result."""

from collections.abc import Callable
from typing import Any

import torch
from triton.errors import TritonError

from backends.torch import check
from backends.triton.gemm.fitting import told_by
from backends.triton.gemm.made import Made
from backends.triton.gemm.trials import Trial
from backends.triton.gemm.tuning import Refused

# Sums in another order differ by less than rounding; a tile or a block of K that is missing moves a result by more.
SAME_RESULT = 0.02


class Comparison:
    """Makes trials of configurations; refuses one that does not compile or fit, or whose result is not the first one's.

    ``output`` is what the first launch writes.
    """

    def __init__(self, make: Callable[[Any], Made], output: torch.Tensor, cuda: Any) -> None:
        self._make, self._output, self._cuda = make, output, cuda
        self._signs = check.sign_vector(output.shape[1], 0, output.device)
        self._expected: torch.Tensor | None = None

    def __call__(self, config: Any) -> Trial:
        try:
            made = self._make(config)
        except (TritonError, RuntimeError) as error:  # nothing was launched
            raise Refused(told_by(error)) from error
        self._compare(made)
        return Trial(made.launches, self._cuda)

    def _compare(self, made: Made) -> None:
        """By a projection, which sees every element."""
        check.poison(self._output)
        made.launches[0]()
        found = check.project(self._output, self._signs)
        if self._expected is None:
            self._expected = found
        apart, size = float((found - self._expected).norm()), float(self._expected.norm())
        if not apart <= SAME_RESULT * size:  # written so that NaN fails
            raise Refused(f"its result is {apart / size if size else apart:.3g} away from that of the first configuration")
