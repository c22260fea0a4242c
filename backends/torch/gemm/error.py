"""What storing operands in a format costs: the exact product of what is stored against that of the numbers before."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from backends.seeds import mixed_seed
from backends.torch.data import Drawn, Operand
from backends.torch.gemm.epilogue import Weights, weight_factor
from backends.torch.gemm.operands import QuantisedOperand
from backends.torch.gemm.product import rows_of
from backends.torch.gemm.sizes import Sizes
from backends.torch.kernel import TorchKernel

STRIP = 64
STRIPS = 2  # of rows of A and of columns of B: 128 x 128 elements of the product
DRAWN_ELEMENTS = 1 << 22  # of an operand that is stored with K as its rows
EXACT = ("fp64", "fp32", "int8")  # drawn as they are stored, and integers that stand for themselves

Rounding = Callable[[torch.Tensor], torch.Tensor]


class Side(NamedTuple):
    """One operand: its stored numbers, those it was made from but for a ``factor``, and whether its rows are along K."""

    stored: Operand
    drawn: Drawn
    transposed: bool
    rows: int
    factor: float

    def sample(self, depth: int, rounding: Rounding) -> tuple[torch.Tensor, torch.Tensor]:
        """Some rows, over ``depth`` numbers along K, as they are stored and as they were drawn; float64, on the host."""
        height = min(STRIP, self.rows)
        starts = dict.fromkeys(round(i * (self.rows - height) / max(1, STRIPS - 1)) for i in range(STRIPS))
        whole = self.drawn.rows(0, depth).t() if self.transposed else None
        stored, drawn = [], []
        for start in starts:
            stop = start + height
            stored.append(rounding(rows_of(self.stored, self.transposed, start, stop)[:, :depth]))
            exact = self.drawn.rows(start, stop)[:, :depth] if whole is None else whole[start:stop]
            drawn.append(exact.cpu().to(torch.float64) * self.factor)
        return torch.cat(stored), torch.cat(drawn)


def quantisation_error(kernel: TorchKernel, format_name: str, sizes: Sizes) -> float | None:
    """norm(C' - C) / norm(C) over sampled tiles of the first input set: C of the float64 data as drawn, C' of what is stored.

    C is the product alone, before any epilogue.

    For tf32 as if the data were rounded to 10 bits of mantissa, to the nearest.  An operand that is stored with K as its rows
    is looked at over as much of K as is quickly drawn.  ``None`` where nothing is rounded, and on data that are all zeros.
    """
    if format_name in EXACT and not any(isinstance(each, QuantisedOperand) for each in kernel.input_sets[0].operands):
        return None
    assert kernel.seed is not None
    sides = _sides(kernel.input_sets[0].operands[:2], sizes, kernel.distribution, kernel.seed)
    depth = min([sizes.k, *(max(1, DRAWN_ELEMENTS // side.rows) for side in sides if side.transposed)])
    rounding = to_tf32 if format_name == "tf32" else _as_it_is
    (a, exact_a), (b, exact_b) = (side.sample(depth, rounding) for side in sides)
    exact = exact_a @ exact_b.t()
    size = float(exact.norm())
    return float((a @ b.t() - exact).norm()) / size if size else None


def _as_it_is(numbers: torch.Tensor) -> torch.Tensor:
    return numbers


def to_tf32(numbers: torch.Tensor) -> torch.Tensor:
    """float32 numbers in float64, rounded to 10 bits of mantissa: to the nearest, ties to even."""
    bits = numbers.to(torch.float32).view(torch.int32)
    rounded = (bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF
    return rounded.view(torch.float32).to(torch.float64)


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
