"""Quantised operands in the order that the kernels here read: the same bits, moved after each refill, before anything is timed.

Words.  A row of W is cut along K into blocks of 128 numbers of four bits, or 64 of eight.  A block is 32 words of 16 bits;
word i has numbers i, 32 + i, 64 + i and 96 + i of its block from the low bits up, or numbers i and 32 + i of eight bits.  Each
place in the words is then a run of 32 neighbours along K, and two words beside each other, as a register holds them, give a
pair of neighbours for one mask.  Bits of mxfp4 lie as far from each other as in a bf16, sign 7 above the first of the other
three: one shift and one mask make a number of the first three places.  No fourth has room in a word, so that it is in parts.

Scales.  Blocks along K come first, rows of the matrix second, so that those of a tile lie together; rows are padded with zeros
to a multiple of 16.  Four E8M0 scales that follow each other along K are one word of 32 bits, the first in the low byte.
Zero points have 16 bits, so that 64 of them are the 128 bytes of ``weight_config.DESCRIBED_BYTES``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from backends.torch.quantise.blocks import Span, spans
from backends.torch.quantise.packing import unpack
from backends.torch.quantise.quantised import Quantised
from backends.triton.quantised.exponents import Exponents, extremes, neutral, together

WORD_BITS = 16
BLOCK_WORDS = 32
ROW_MULTIPLE = 16  # of scales: what a tensor descriptor steps over has whole units of 16 bytes
CHUNK_ELEMENTS = 1 << 22  # of numbers moved at a time, a byte each before they are packed
SCALES_PER_WORD = 4

# Of each place in a word: bits of the number there, and how far they are moved.
Places = tuple[tuple[tuple[int, int], ...], ...]
INT4: Places = tuple(((0xF, 4 * place),) for place in range(4))
INT8: Places = (((0xFF, 0),), ((0xFF, 8),))
FP4: Places = (((0x8, 12), (0x7, 6)), ((0x8, 9), (0x7, 3)), ((0x8, 6), (0x7, 0)), ((0xD, 11), (0x2, 9)))


@dataclass(frozen=True, slots=True)
class Prepacked:
    """``words`` (int16, rows x k * bits / 16), ``scales`` and ``zero_points`` (blocks along K x rows, padded).

    Of int8 weights ``scales`` is one line, a scale a row.
    """

    source: Quantised
    words: torch.Tensor
    scales: torch.Tensor
    zero_points: torch.Tensor | None = None

    @classmethod
    def empty(cls, weights: Quantised) -> "Prepacked":
        """Buffers for W in one of w4a16, w8a16 and mxfp4, on its own device."""
        (rows, k), device = weights.shape, weights.data.device
        words = torch.empty(rows, k * weights.format.element.bits // WORD_BITS, dtype=torch.int16, device=device)
        zero_points = None if weights.zero_points is None else _room(weights.zero_points, 1, torch.int16)
        if _is_mx(weights):
            return cls(weights, words, _room(weights.scales, SCALES_PER_WORD, torch.int32), zero_points)
        return cls(weights, words, _room(weights.scales, 1, weights.scales.dtype), zero_points)

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    def fill(self) -> Exponents | None:
        """Write what W holds now into the same buffers; of mxfp4, say which scales that has."""
        bits, places, seen = self.source.format.element.bits, places_of(self.source), []
        for span in self._spans():
            packed = self.source.data.view(torch.uint8)[span.start : span.stop]
            elements = unpack(packed, bits)
            self.words[span.start : span.stop] = in_words(elements, places)
            if _is_mx(self.source):
                scales = neutral(self.source.scales.view(torch.uint8)[span.start : span.stop], elements)
                self.scales[:, span.start : span.stop] = e8m0_words(scales).t()
                seen.append(extremes(scales))
        if seen:
            return together(seen)
        by_blocks(self.source.scales, self.scales)
        if self.zero_points is not None:
            assert self.source.zero_points is not None
            by_blocks(self.source.zero_points, self.zero_points)
        return None

    def _spans(self) -> Iterator[Span]:
        rows, k = self.shape
        return spans(rows, 1, max(1, CHUNK_ELEMENTS // k))


def prepacked(weights: Quantised) -> Prepacked:
    """W in new buffers."""
    made = Prepacked.empty(weights)
    made.fill()
    return made


def places_of(weights: Quantised) -> Places:
    """How the words of W hold its numbers."""
    if _is_mx(weights):
        return FP4
    return INT8 if weights.format.element.bits == 8 else INT4


def in_words(codes: torch.Tensor, places: Places) -> torch.Tensor:
    """Codes (uint8, one a byte, rows x k) to words (int16, rows x k / places)."""
    rows, k = codes.shape
    count = len(places)
    assert k % (count * BLOCK_WORDS) == 0, f"{k} numbers, {count} in a word, are no whole blocks of {count * BLOCK_WORDS}"
    blocks = codes.view(rows, -1, count, BLOCK_WORDS).to(torch.int32)
    words = torch.zeros_like(blocks[:, :, 0])
    for place, moves in enumerate(places):
        for bits, left in moves:
            words |= (blocks[:, :, place] & bits) << left
    return words.to(torch.int16).view(rows, -1)


def from_words(words: torch.Tensor, places: Places) -> torch.Tensor:
    """The inverse of ``in_words``."""
    wide = words.to(torch.int32).view(words.shape[0], -1, BLOCK_WORDS)
    codes = torch.zeros(*wide.shape[:2], len(places), BLOCK_WORDS, dtype=torch.int32, device=words.device)
    for place, moves in enumerate(places):
        for bits, left in moves:
            codes[:, :, place] |= (wide >> left) & bits
    return codes.to(torch.uint8).view(words.shape[0], -1)


def by_blocks(per_block: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """A grid (rows x blocks along K) as blocks x rows, padded."""
    out = _room(per_block, 1, per_block.dtype) if out is None else out
    out[:, : per_block.shape[0]] = per_block.t()
    return out


def e8m0_words(scales: torch.Tensor) -> torch.Tensor:
    """E8M0 scales (uint8, rows x blocks of 32 along K, whole words of four) as words (int32, rows x k / 128)."""
    assert scales.shape[1] % SCALES_PER_WORD == 0, f"{scales.shape[1]} scales in a row are no whole words of four"
    return scales.contiguous().view(torch.int32)


def _room(per_block: torch.Tensor, per_word: int, dtype: torch.dtype) -> torch.Tensor:
    rows, blocks = per_block.shape
    return torch.zeros(blocks // per_word, rows + -rows % ROW_MULTIPLE, dtype=dtype, device=per_block.device)


def _is_mx(weights: Quantised) -> bool:
    return weights.format.name == "mxfp4"
