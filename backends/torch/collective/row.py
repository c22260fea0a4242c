"""One rank's output reduced to what a check needs, and the same of what it should be, on the rank's own device.

Both go through a row in the same blocks.  What should stand there repeats, so that one block of it is drawn on the processor
and compared with all: of gigabytes the processor would draw for minutes, while every rank waits.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from backends.seeds import mixed_seed
from backends.torch.collective.buffers import POISONS, ROOT
from backends.torch.collective.orders import Row
from suite.collectives.data import PERIOD, Inputs, repeating
from suite.collectives.message import Message
from suite.collectives.part import Part

BLOCK_ELEMENTS = 8 * PERIOD  # at a time in float64; whole periods, so that all blocks of a stretch should hold the same


def observed(received: torch.Tensor, given: Message, slices: Sequence[Part], seed: int) -> Row:
    """What stands in ``received`` now."""
    pattern, floating = POISONS[received.dtype], received.dtype.is_floating_point
    projection, unwritten, nonfinite = 0.0, 0, 0
    for stretch in repeating(given):
        for part in blocks(stretch):
            block = received[part.start : part.stop]
            wide = block.to(torch.float64)
            projection += float(torch.dot(wide, _signs(part, seed, wide.device)))
            untouched = block.view(pattern.view) == pattern.bits
            unwritten += int(untouched.sum())
            if floating:
                nonfinite += int((~torch.isfinite(wide) & ~untouched).sum())
    return Row(tuple(_numbers(received, part) for part in slices), projection, unwritten, nonfinite)


def expected(inputs: Inputs, rank: int, slices: Sequence[Part], seed: int, device: torch.device) -> Row:
    """What should stand there, by arithmetic alone."""
    projection = 0.0
    for part, values in _expected_blocks(inputs, rank, device):
        projection += float(torch.dot(values, _signs(part, seed, device)))
    return Row(tuple(inputs.received(rank, part, ROOT) for part in slices), projection)


def count_wrong(received: torch.Tensor, inputs: Inputs, rank: int) -> int:
    """Elements of the whole that are not exactly what they should be; NaN never is."""
    return sum(
        int((received[part.start : part.stop].to(torch.float64) != values).sum())
        for part, values in _expected_blocks(inputs, rank, received.device)
    )


def blocks(stretch: Part) -> Iterator[Part]:
    """Neighbouring parts of a stretch, each small enough for a copy in float64."""
    for start in range(stretch.start, stretch.stop, BLOCK_ELEMENTS):
        yield Part(start, min(BLOCK_ELEMENTS, stretch.stop - start))


def _expected_blocks(inputs: Inputs, rank: int, device: torch.device) -> Iterator[tuple[Part, torch.Tensor]]:
    """Every block of a row with what should stand in it, in float64 on ``device``."""
    for stretch in repeating(inputs.message):
        first = Part(stretch.start, min(BLOCK_ELEMENTS, stretch.elements))
        values = torch.from_numpy(inputs.received(rank, first, ROOT)).to(device)
        for part in blocks(stretch):
            yield part, values[: part.elements]


def _numbers(received: torch.Tensor, part: Part) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = received[part.start : part.stop].to(torch.float64).cpu().numpy()
    return numbers


def _signs(part: Part, seed: int, device: torch.device) -> torch.Tensor:
    """+1 and -1 in float64, the same for an output and for what it should be, as both are drawn on one device."""
    generator = torch.Generator(device).manual_seed(mixed_seed(seed, part.start))
    return torch.randint(0, 2, (part.elements,), generator=generator, device=device).to(torch.float64) * 2 - 1
