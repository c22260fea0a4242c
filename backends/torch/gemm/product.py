"""What a product should be: in float64, of the operands as they are stored."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from backends.torch.check import project
from backends.torch.data import Operand
from backends.torch.gemm.operands import QuantisedOperand
from backends.torch.gemm.sizes import a_view, b_view

# Long double where the host's unit has it, as x86 does with 64 bits of mantissa; elsewhere it is made of many instructions.
WIDEST = np.longdouble if np.finfo(np.longdouble).nmant == 63 else np.float64


class Product:
    """The float64 product of the operands as stored.

    Tiles are multiplied on the host: what judges a device's matrix product must not be another of its matrix products.
    """

    def __init__(self, layout: str) -> None:
        self._layout = layout

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        a, b = operands
        a_mk = rows_of(a, self._layout[0] == "t", row, row + rows)
        b_nk = rows_of(b, self._layout[1] == "n", column, column + columns)
        if a.data.dtype == b.data.dtype == torch.float64:
            return extended(a_mk, b_nk)
        return a_mk @ b_nk.t()

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        a, b = operands
        if isinstance(b, QuantisedOperand):
            b_vector = b.summed(vector)
        else:
            b_vector = b.scaled(project(b_view(b.data, self._layout), vector))
        if isinstance(a, QuantisedOperand):
            return a.times(b_vector)
        return a.scaled(project(a_view(a.data, self._layout), b_vector))

    def expected_size(self, operands: Sequence[Operand], rows: int, columns: int) -> float:
        a, b = operands
        of_a = rows_of(a, self._layout[0] == "t", 0, rows).square().mean(0)
        return math.sqrt(float(of_a @ rows_of(b, self._layout[1] == "n", 0, columns).square().mean(0)))


def extended(a_mk: torch.Tensor, b_nk: torch.Tensor) -> torch.Tensor:
    """The product of float64 by numpy's own loops, with sums in ``WIDEST``.

    On a CPU the library that is judged would otherwise judge itself, and its error come out as nothing.
    """
    a, b = (each.numpy().astype(WIDEST) for each in (a_mk, b_nk))
    return torch.from_numpy(np.einsum("mk,nk->mn", a, b, optimize=False).astype(np.float64))


def rows_of(operand: Operand, transposed: bool, start: int, stop: int) -> torch.Tensor:
    """Rows of a matrix that is stored as it is written or transposed, in float64 on the host."""
    if transposed:
        return operand.scaled(operand.data[:, start:stop].to(torch.float64)).t().cpu()
    return operand.numbers(start, stop).cpu()
