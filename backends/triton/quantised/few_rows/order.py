"""Weights of four bits in the order that ``kernel`` reads: for 16 rows and 128 numbers along K, 512 words of 16 bits.

A word has the numbers of two rows (``h``, 8 apart) and two places along K (``p``, 2 apart), from the low bits up.  Words lie by
``u``, ``g``, ``q``, ``f``, ``s`` and ``e``, as the kernel names them: 16 bytes of a lane, and 512 of a warp, follow each other.

A warp takes a strip of four groups one after the other, so that a lane loads its rows' scales of all four at once: those of a
strip lie by ``g``, group and ``h``.  Four strips are a block.  Blocks along K come first and tiles second: what all programs
read at about the same time lies together, which DRAM is read fastest by.  Of a tile's block, words of the first group of every
strip come first, which four warps read at once.
"""

from dataclasses import dataclass

import torch

from backends.torch.quantise.blocks import spans
from backends.torch.quantise.packing import unpack
from backends.torch.quantise.quantised import Quantised

TILE_ROWS = 16
GROUP_K = 128
BITS = 4
STRIP = 4  # groups
BLOCK_STRIPS = 4
ROW_MULTIPLE = 64  # so that the tiles of a program are whole, whatever its configuration
BLOCK_MULTIPLE = 2  # so that the strips of eight warps are
CHUNK_CODES = 1 << 22  # moved at a time, a byte each before they are packed
_SPLIT = (2, 8, 2, 2, 4, 2, 2, 2)  # h, g | u, f, q, s, p, e


def ordered(codes: torch.Tensor) -> torch.Tensor:
    """Codes (uint8, one a byte, rows x k, whole tiles and groups) as words (int16, tiles x groups x 512)."""
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
    return words.to(torch.int16).view(rows // TILE_ROWS, k // GROUP_K, -1)


def in_blocks(words: torch.Tensor) -> torch.Tensor:
    """``ordered`` words as blocks x tiles x 8192, padded with zeros to whole blocks."""
    by_strips = _whole_blocks(words).transpose(2, 3)  # tiles, blocks, groups of a strip, strips, words
    return by_strips.transpose(0, 1).flatten(2).contiguous()


def by_lanes(per_group: torch.Tensor) -> torch.Tensor:
    """A grid (rows x groups) of whole tiles as blocks x tiles x 256, padded with zeros to whole blocks."""
    rows, groups = per_group.shape
    lanes = per_group.view(rows // TILE_ROWS, 2, 8, groups).permute(0, 3, 2, 1).reshape(-1, groups, TILE_ROWS)
    by_strips = _whole_blocks(lanes).unflatten(4, (8, 2))  # tiles, blocks, strips, groups of a strip, g, h
    return by_strips.permute(1, 0, 2, 4, 3, 5).flatten(2)


def _whole_blocks(of_groups: torch.Tensor) -> torch.Tensor:
    """Tiles x groups x anything as tiles x blocks x strips x groups of a strip x anything, with zeros for what is missing."""
    missing = -of_groups.shape[1] % (BLOCK_STRIPS * STRIP)
    return torch.nn.functional.pad(of_groups, (0, 0, 0, missing)).unflatten(1, (-1, BLOCK_STRIPS, STRIP))


@dataclass(frozen=True, slots=True)
class Ordered:
    """``words`` (int32, blocks x tiles x 4096), ``scales`` and ``zero_points`` (blocks x tiles x 256), padded with zeros."""

    source: Quantised
    words: torch.Tensor
    scales: torch.Tensor
    zero_points: torch.Tensor | None = None

    @classmethod
    def empty(cls, weights: Quantised) -> "Ordered":
        """Buffers for W in w4a16, on its own device."""
        (rows, k), device = weights.shape, weights.data.device
        tiles = (rows + -rows % ROW_MULTIPLE) // TILE_ROWS
        groups = BLOCK_STRIPS * STRIP
        blocks = -(-k // (groups * GROUP_K * BLOCK_MULTIPLE)) * BLOCK_MULTIPLE

        def room(of_group: int, dtype: torch.dtype) -> torch.Tensor:
            return torch.zeros(blocks, tiles, groups * of_group, dtype=dtype, device=device)

        zero_points = None if weights.zero_points is None else room(TILE_ROWS, torch.int16)
        words = room(TILE_ROWS * GROUP_K * BITS // 32, torch.int32)
        return cls(weights, words, room(TILE_ROWS, weights.scales.dtype), zero_points)

    @property
    def tiles(self) -> int:
        return int(self.words.shape[1])

    def fill(self) -> None:
        """Write what W holds now into the same buffers."""
        rows, k = self.source.shape
        for span in spans(rows, TILE_ROWS, max(TILE_ROWS, CHUNK_CODES // k)):
            codes = _whole(unpack(self.source.data.view(torch.uint8)[span.start : span.stop], BITS))
            first = span.start // TILE_ROWS
            words = in_blocks(ordered(codes)).view(torch.int32)
            self.words[: len(words), first : first + words.shape[1]] = words
        _place(self.source.scales, self.scales)
        if self.zero_points is not None:
            assert self.source.zero_points is not None
            _place(self.source.zero_points, self.zero_points)


def _place(per_group: torch.Tensor, out: torch.Tensor) -> None:
    lanes = by_lanes(_whole(per_group))
    out[: len(lanes), : lanes.shape[1]] = lanes


def _whole(rows: torch.Tensor) -> torch.Tensor:
    """With rows of zeros up to a whole tile."""
    missing = -len(rows) % TILE_ROWS
    return torch.cat([rows, rows.new_zeros(missing, rows.shape[1])]) if missing else rows
