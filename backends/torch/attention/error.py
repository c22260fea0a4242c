"""What storing Q, K and V in a format costs: attention of what is stored against that of the numbers before any rounding."""

from collections.abc import Sequence

import torch

from backends.seeds import mixed_seed
from backends.torch.attention.operands import DTYPES, shapes_of
from backends.torch.attention.reference import Attention
from backends.torch.data import Drawn, Operand
from backends.torch.kernel import TorchKernel
from suite.jobs.attention import Sizes

TILE = 64
TILES = 4
EXACT = ("fp32",)  # drawn as it is stored


def quantisation_error(kernel: TorchKernel, format_name: str, sizes: Sizes) -> float | None:
    """norm(O' - O) / norm(O) over sampled rows of O in float64: O of the data as drawn, O' of what is stored.

    Of a forward pass only.  ``None`` where nothing is rounded, and on data that are all zeros.
    """
    if format_name in EXACT or sizes.is_backward:
        return None
    assert kernel.seed is not None
    stored = kernel.input_sets[0].operands
    exact = _drawn(stored, sizes, kernel.distribution, kernel.seed)
    attention, rows, columns = Attention(sizes), *kernel.output_shape
    height = min(TILE, rows)
    starts = dict.fromkeys(round(i * (rows - height) / max(1, TILES - 1)) for i in range(TILES))
    pairs = [[attention.tile(each, start, 0, height, columns) for each in (stored, exact)] for start in starts]
    size = float(torch.cat([right for _, right in pairs]).norm())
    return float(torch.cat([found - right for found, right in pairs]).norm()) / size if size else None


def _drawn(stored: Sequence[Operand], sizes: Sizes, distribution: str, seed: int) -> list[Operand]:
    """Operands in float32 from the same seeds, which no rotation or scale has touched."""
    found = []
    for index, name in enumerate("qkv"):
        shape = shapes_of(sizes)[name]
        batch, heads, rows, columns = shape
        drawn = Drawn((batch * heads * rows, columns), distribution, mixed_seed(seed, 0, index), stored[index].data.device)
        data = torch.empty(shape, dtype=DTYPES["fp32"], device=stored[index].data.device)
        for place, head in enumerate(data.view(-1, rows, columns)):
            head.copy_(drawn.rows(place * rows, (place + 1) * rows))
        found.append(Operand(data))
    return found
