"""Stored numbers to bf16, for a device that does not multiply them as they are: a part of every launch.

Elements of 8 bits and fewer are numbers that bf16 holds exactly, and so are differences of codes and zero points.  Where a
scale is a power of two or bf16 itself the product with it is taken in bf16, elsewhere in fp32; it is rounded once.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch

from backends.torch.quantise.blocks import Block, Span, spans
from backends.torch.quantise.elements import decode
from backends.torch.quantise.formats import Format
from backends.torch.quantise.packing import unpack
from backends.torch.quantise.quantised import Quantised

CHUNK_ELEMENTS = 1 << 22
# Types of scales whose products with elements need no more than bf16 before they are rounded.
IN_BF16 = (torch.float8_e8m0fnu, torch.bfloat16)
# A number looked up, or two of them: integers of its width move its bits.
BITS_OF = {2: torch.int16, 4: torch.int32, 8: torch.int64}

Convert = Callable[[], None]


class Widener:
    """Converts matrices of rows x k in one format; scratch is shared by all that are bound, and by all that are given it."""

    def __init__(self, format_: Format, shape: tuple[int, int], device: torch.device) -> None:
        self._format, (rows, k) = format_, shape
        self.compute = torch.bfloat16 if format_.scaling.dtype in IN_BF16 else torch.float32
        self._spans = list(spans(rows, format_.block.rows or 1, max(1, CHUNK_ELEMENTS // k)))
        largest = max(span.stop - span.start for span in self._spans) * k
        self._numbers = torch.empty(0 if self.compute == torch.bfloat16 else largest, dtype=torch.float32, device=device)
        self._table = _table(format_, self.compute, device)
        self._places = torch.empty(0 if self._table is None else largest, dtype=torch.int32, device=device)
        grid = format_.block.grid(rows, k)
        self._steps = torch.empty(grid, dtype=self.compute, device=device)
        self._zeros = torch.empty(grid if format_.scaling.zero_point_dtype else (0, 0), dtype=self.compute, device=device)

    def bind(self, quantised: Quantised, wide: torch.Tensor) -> Convert:
        """What writes the numbers of ``quantised`` into ``wide`` (rows x k, bf16); it waits for nothing."""
        pieces = [self._piece(quantised, wide, span) for span in self._spans]

        def convert() -> None:
            self._steps.copy_(quantised.scales)
            if quantised.tensor_scale is not None:
                self._steps.mul_(quantised.tensor_scale)
            if quantised.zero_points is not None:
                self._zeros.copy_(quantised.zero_points)
            for piece in pieces:
                piece()

        return convert

    def _piece(self, quantised: Quantised, wide: torch.Tensor, span: Span) -> Convert:
        target = wide[span.start : span.stop]
        numbers = target if self.compute == wide.dtype else self._numbers[: target.numel()].view(target.shape)
        read = self._reader(quantised.data[span.start : span.stop], numbers)
        scales = _parts(numbers, self._steps, self._format.block, span)
        zeros = [] if quantised.zero_points is None else _parts(numbers, self._zeros, self._format.block, span)
        in_place = [partial(part.sub_, each) for part, each in zeros] + [partial(part.mul_, each) for part, each in scales]

        def convert() -> None:
            read()
            for each in in_place:
                each()
            if numbers is not target:
                target.copy_(numbers)

        return convert

    def _reader(self, data: torch.Tensor, numbers: torch.Tensor) -> Convert:
        """Elements as numbers, without their scales."""
        bits, table = self._format.element.bits, self._table
        if table is None:
            return partial(numbers.copy_, data)
        codes = data.view(torch.uint8)
        together = 2 if bits == 4 else 1
        places = self._places[: numbers.numel() // together]
        out = numbers.view(table.dtype).view(-1)

        def read() -> None:
            places.copy_((codes if bits == 4 else unpack(codes, bits)).reshape(-1))
            torch.index_select(table, 0, places, out=out)

        return read


def _table(format_: Format, compute: torch.dtype, device: torch.device) -> torch.Tensor | None:
    """What codes are worth, as integers of the same bits: of two codes in a byte, or of one of 6 bits; ``None`` for bytes."""
    bits = format_.element.bits
    if bits == 8:
        return None
    codes = torch.arange(256 if bits == 4 else 1 << bits, dtype=torch.uint8)
    several = unpack(codes.view(-1, 1), 4) if bits == 4 else codes.view(-1, 1)
    worth = decode(format_.element, several).to(compute)
    return worth.view(BITS_OF[worth.shape[1] * compute.itemsize]).view(-1).to(device)


def _parts(numbers: torch.Tensor, grid: torch.Tensor, block: Block, span: Span) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    """Views of rows of numbers with what their blocks have, to be broadcast; the last rows may fall short of a block."""
    if not any(block):
        return [(numbers, grid)]
    rows, k = numbers.shape
    height = block.rows
    whole = rows // height * height
    first = span.start // height
    width = block.k or k
    parts = []
    if whole:
        views = numbers[:whole].view(whole // height, height, k // width, width)
        parts.append((views, grid[first : first + whole // height, None, :, None]))
    if rows > whole:
        parts.append((numbers[whole:].view(rows - whole, k // width, width), grid[first + whole // height, :, None]))
    return parts
