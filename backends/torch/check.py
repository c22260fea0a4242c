"""What a check sees of an output: tiles, elements never written, NaN and Inf, and a random projection of the whole.

Outputs are matrices (rows x columns).  Everything goes row block by row block, so that the float64 copies stay small.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from backends.seeds import mixed_seed
from suite.backend import Observed, Probe

# 64 MiB in float64: few enough blocks that threads do not wait for each other more than they work.
BLOCK_ELEMENTS = 1 << 23


class Poison(NamedTuple):
    """A bit pattern that no correct result holds, seen through the integer type of the same width."""

    bits: int
    view: torch.dtype


# Floats: a quiet NaN with a payload that arithmetic does not produce, so that a NaN which a kernel computed is told from
# an element that it never wrote.  int32: the smallest number, out of reach of int8 products for any K below 133,000.
POISON = {
    torch.float64: Poison(0x7FF85EED5EED5EED, torch.int64),
    torch.float32: Poison(0x7FC5EED5, torch.int32),
    torch.bfloat16: Poison(0x7FD5, torch.int16),
    torch.float16: Poison(0x7E55, torch.int16),
    torch.int32: Poison(-(2**31), torch.int32),
}


def poison(output: torch.Tensor) -> None:
    """Overwrite every element of a contiguous output."""
    pattern = POISON[output.dtype]
    output.view(pattern.view).fill_(pattern.bits)


def observe(output: torch.Tensor, probe: Probe) -> Observed:
    """Reduce one output to what a check needs; waits for the device."""
    signs = sign_vector(output.shape[1], probe.seed, output.device)
    projection = project(output, signs)
    tiles = tuple(
        to_numpy(output[row : row + rows, column : column + columns].to(torch.float64))
        for row, column, rows, columns in probe.tiles
    )
    unwritten, nonfinite = _faults(output, projection)
    return Observed(tiles, unwritten, nonfinite, to_numpy(projection))


def project(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """A matrix (rows x columns) of any type times a float64 vector (columns)."""
    projection = vector.new_empty(matrix.shape[0])
    wide = None
    for block, part in zip(row_blocks(matrix), projection.split(block_rows(matrix)), strict=True):
        # One copy buffer for all blocks: fresh pages for each would cost a CPU more than the arithmetic.  A buffer of its
        # own also for float64, whose conversion would give the matrix itself, to be overwritten by the next block.
        wide = block.to(torch.float64, copy=True) if wide is None else wide[: len(block)].copy_(block)
        torch.mv(wide, vector, out=part)
    return projection


def _faults(output: torch.Tensor, projection: torch.Tensor) -> tuple[int, int]:
    """Count elements that still hold the poison, and other NaN and Inf.

    A NaN or Inf anywhere in a row, poison included, makes the row's projection NaN or Inf: other rows need no second look.
    Integers have no NaN, so all of them are compared.
    """
    pattern = POISON[output.dtype]
    suspects = output
    if output.dtype.is_floating_point:
        suspects = output[~torch.isfinite(projection)]
    unwritten = nonfinite = 0
    for block in row_blocks(suspects):
        untouched = block.view(pattern.view) == pattern.bits
        unwritten += int(untouched.sum())
        if block.dtype.is_floating_point:
            nonfinite += int((~torch.isfinite(block) & ~untouched).sum())
    return unwritten, nonfinite


def sign_vector(length: int, seed: int, device: torch.device) -> torch.Tensor:
    """A random vector of +1 and -1 in float64; the same one for an output and for its reference."""
    generator = torch.Generator(device=device).manual_seed(mixed_seed(seed, length))
    return torch.randint(0, 2, (length,), generator=generator, device=device).to(torch.float64) * 2 - 1


def row_blocks(matrix: torch.Tensor) -> Iterator[torch.Tensor]:
    """Views of consecutive rows, at least one row and at most about ``BLOCK_ELEMENTS`` elements each."""
    return iter(matrix.split(block_rows(matrix)))


def block_rows(matrix: torch.Tensor) -> int:
    """Rows of one block."""
    return max(1, BLOCK_ELEMENTS // max(1, int(matrix.shape[1])))


def to_numpy(tensor: torch.Tensor) -> NDArray[np.float64]:
    """A host copy of a float64 tensor; of one that is on the host already too, so that it stays what it was."""
    array: NDArray[np.float64] = tensor.cpu().numpy().copy()
    return array
