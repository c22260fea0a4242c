"""One rank's output reduced to what a check needs, and the same of what it should be."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from backends.seeds import mixed_seed
from backends.torch.collective.buffers import POISONS, ROOT, blocks
from backends.torch.collective.orders import Row
from suite.collectives.data import Inputs, wrong_elements
from suite.collectives.part import Part


def observed(received: torch.Tensor, slices: Sequence[Part], seed: int) -> Row:
    """What stands in ``received`` now."""
    pattern, floating = POISONS[received.dtype], received.dtype.is_floating_point
    projection, unwritten, nonfinite = 0.0, 0, 0
    for part in blocks(received.numel()):
        block = received[part.start : part.stop]
        wide = block.to(torch.float64)
        projection += float(torch.dot(wide, _signs(part, seed).to(wide.device)))
        untouched = block.view(pattern.view) == pattern.bits
        unwritten += int(untouched.sum())
        if floating:
            nonfinite += int((~torch.isfinite(wide) & ~untouched).sum())
    return Row(tuple(_numbers(received, part) for part in slices), projection, unwritten, nonfinite)


def expected(inputs: Inputs, rank: int, slices: Sequence[Part], seed: int) -> Row:
    """What should stand there, by arithmetic alone."""
    projection = 0.0
    for part in blocks(inputs.message.receive_elements):
        projection += float(torch.dot(torch.from_numpy(inputs.received(rank, part, ROOT)), _signs(part, seed)))
    return Row(tuple(inputs.received(rank, part, ROOT) for part in slices), projection)


def count_wrong(received: torch.Tensor, inputs: Inputs, rank: int) -> int:
    """Elements of the whole that are not exactly what they should be."""
    return sum(wrong_elements(_numbers(received, part), inputs.received(rank, part, ROOT)) for part in blocks(received.numel()))


def _numbers(received: torch.Tensor, part: Part) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = received[part.start : part.stop].to(torch.float64).cpu().numpy()
    return numbers


def _signs(part: Part, seed: int) -> torch.Tensor:
    """+1 and -1 in float64, the same for an output and for what it should be."""
    generator = torch.Generator().manual_seed(mixed_seed(seed, part.start))
    return torch.randint(0, 2, (part.elements,), generator=generator).to(torch.float64) * 2 - 1
