"""What storing operands in a format costs the product of a torch kernel's data."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from backends.rounding import EXACT, Numbers, Sampled, depth, relative_error, strips
from backends.seeds import mixed_seed
from backends.torch.check import to_numpy
from backends.torch.data import Drawn, Operand
from backends.torch.gemm.epilogue import Weights, weight_factor
from backends.torch.gemm.operands import QuantisedOperand
from backends.torch.gemm.product import rows_of
from backends.torch.gemm.sizes import Sizes
from backends.torch.kernel import TorchKernel


class Side(NamedTuple):
    """One operand: its stored numbers, those it was made from but for a ``factor``, and whether its rows are along K."""

    stored: Operand
    drawn: Drawn
    transposed: bool
    rows: int
    factor: float

    def sample(self, depth: int) -> Sampled:
        """Some rows, over ``depth`` numbers along K."""
        whole = self.drawn.rows(0, depth).t() if self.transposed else None
        stored, drawn = [], []
        for start, stop in strips(self.rows):
            stored.append(rows_of(self.stored, self.transposed, start, stop)[:, :depth])
            exact = self.drawn.rows(start, stop)[:, :depth] if whole is None else whole[start:stop]
            drawn.append(exact.cpu().to(torch.float64) * self.factor)
        return Sampled(_joined(stored), _joined(drawn))


def quantisation_error(kernel: TorchKernel, format_name: str, sizes: Sizes) -> float | None:
    """As ``backends.rounding`` defines it; ``None`` where nothing is rounded, and on data that are all zeros."""
    if format_name in EXACT and not any(isinstance(each, QuantisedOperand) for each in kernel.input_sets[0].operands):
        return None
    assert kernel.seed is not None
    sides = _sides(kernel.input_sets[0].operands[:2], sizes, kernel.distribution, kernel.seed)
    looked_at = depth(sizes.k, (side.rows for side in sides if side.transposed))
    return relative_error(format_name, *(side.sample(looked_at) for side in sides))


def _joined(strips: Sequence[torch.Tensor]) -> Numbers:
    return to_numpy(torch.cat(list(strips)))


def _sides(operands: Sequence[Operand], sizes: Sizes, distribution: str, seed: int) -> list[Side]:
    shapes, turned = (sizes.a_shape, sizes.b_shape), (sizes.layout[0] == "t", sizes.layout[1] == "n")
    drawn = [
        Drawn(shape, distribution, mixed_seed(seed, 0, index), operand.data.device)
        for index, (operand, shape) in enumerate(zip(operands, shapes, strict=True))
    ]
    return [
        Side(operand, numbers, transposed, rows, _factor(operand, distribution))
        for operand, numbers, transposed, rows in zip(operands, drawn, turned, (sizes.m, sizes.n), strict=True)
    ]


def _factor(operand: Operand, distribution: str) -> float:
    return weight_factor(operand.k, distribution) if isinstance(operand, Weights) else 1.0
