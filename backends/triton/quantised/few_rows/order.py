"""Weights of four bits in the order that ``kernel`` reads: for 16 rows and 128 numbers along K, 512 words of 16 bits.

A word has the numbers of two rows (``h``, 8 apart) and two places along K (``p``, 2 apart), from the low bits up.  Words lie by
``u``, ``g``, ``q``, ``f``, ``s`` and ``e``, as the kernel names them: 16 bytes of a lane, and 512 of a warp, follow each other.
Scales and zero points of a tile's rows lie by ``g`` and ``h``, group after group.
"""

from dataclasses import dataclass

import torch

from backends.torch.quantise.blocks import spans
from backends.torch.quantise.packing import unpack
from backends.torch.quantise.quantised import Quantised

TILE_ROWS = 16
GROUP_K = 128
BITS = 4
ROW_MULTIPLE = 64  # so that the tiles of a program are whole, whatever its configuration
CHUNK_CODES = 1 << 22  # moved at a time, a byte each before they are packed
_SPLIT = (2, 8, 2, 2, 4, 2, 2, 2)  # h, g | u, f, q, s, p, e


def ordered(codes: torch.Tensor) -> torch.Tensor:
    """Codes (uint8, one a byte, rows x k, whole tiles and groups) as words (int16, rows x k / 4)."""
    rows, k = codes.shape
    assert (rows % TILE_ROWS, k % GROUP_K) == (0, 0), f"{rows} x {k} codes are no whole blocks of {TILE_ROWS} x {GROUP_K}"
    h, g, *along = _SPLIT
    blocks = codes.view(rows // TILE_ROWS, h, g, k // GROUP_K, *along)
    #        0 tile 1 h 2 g 3 group 4 u 5 f 6 q 7 s 8 p 9 e
    blocks = blocks.permute(8, 1, 0, 3, 4, 2, 6, 5, 7, 9)
    words = torch.zeros(blocks.shape[2:], dtype=torch.int32, device=codes.device)
    for p in range(2):
        for row in range(2):
            words |= blocks[p, row].to(torch.int32) << (BITS * (2 * p + row))
    return words.to(torch.int16).view(rows, k // 4)


def by_lanes(per_block: torch.Tensor) -> torch.Tensor:
    """A grid (rows x blocks along K) as tiles x blocks x 16, rows of a tile in the order that lanes want them."""
    rows, blocks = per_block.shape
    return per_block.view(rows // TILE_ROWS, 2, 8, blocks).permute(0, 3, 2, 1).reshape(rows // TILE_ROWS, blocks, TILE_ROWS)


@dataclass(frozen=True, slots=True)
class Ordered:
    """``words`` (int32, padded rows x k / 8), ``scales`` and ``zero_points`` (tiles x groups x 16), padded with zeros."""

    source: Quantised
    words: torch.Tensor
    scales: torch.Tensor
    zero_points: torch.Tensor | None = None

    @classmethod
    def empty(cls, weights: Quantised) -> "Ordered":
        """Buffers for W in w4a16, on its own device."""
        (rows, k), device = weights.shape, weights.data.device
        padded = rows + -rows % ROW_MULTIPLE

        def per_block(of: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
            return torch.zeros(padded // TILE_ROWS, of.shape[1], TILE_ROWS, dtype=dtype, device=device)

        words = torch.zeros(padded, k * BITS // 32, dtype=torch.int32, device=device)
        zero_points = None if weights.zero_points is None else per_block(weights.zero_points, torch.int16)
        return cls(weights, words, per_block(weights.scales, weights.scales.dtype), zero_points)

    def fill(self) -> None:
        """Write what W holds now into the same buffers."""
        rows, k = self.source.shape
        for span in spans(rows, TILE_ROWS, max(TILE_ROWS, CHUNK_CODES // k)):
            stop = span.start + (span.stop - span.start + -(span.stop - span.start) % TILE_ROWS)
            codes = unpack(self.source.data.view(torch.uint8)[span.start : span.stop], BITS)
            self.words[span.start : stop] = ordered(_whole(codes)).view(torch.int32)
        _place(self.source.scales, self.scales)
        if self.zero_points is not None:
            assert self.source.zero_points is not None
            _place(self.source.zero_points, self.zero_points)


def _place(per_block: torch.Tensor, out: torch.Tensor) -> None:
    lanes = by_lanes(_whole(per_block))
    out[: len(lanes)] = lanes


def _whole(rows: torch.Tensor) -> torch.Tensor:
    """With rows of zeros up to a whole tile."""
    missing = -len(rows) % TILE_ROWS
    return torch.cat([rows, rows.new_zeros(missing, rows.shape[1])]) if missing else rows
