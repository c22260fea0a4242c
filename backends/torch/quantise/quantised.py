"""A matrix in a low-precision format, made and read piece by piece.

Scratch memory stays below ``SCRATCH_BYTES`` whatever the matrix's size, beside the rows that the source itself gives out (at
most ``CHUNK_ELEMENTS`` numbers, or as many rows as a block has).  Every operation is exact or rounds once, so the stored bits
are the same on every device, and do not depend on where the matrix is cut.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from backends.torch.quantise.blocks import TENSOR, Extremes, Span, blocked, extremes, spans, spread
from backends.torch.quantise.elements import decode
from backends.torch.quantise.formats import Format, StoredBytes
from backends.torch.quantise.integers import Integer
from backends.torch.quantise.packing import pack, packed_columns, unpack
from suite.errors import UsageError

CHUNK_ELEMENTS = 1 << 20
SCRATCH_BYTES = 64 * CHUNK_ELEMENTS

# Gives rows start to stop of the matrix, in float32 or float64.  Asked for the whole matrix in order, and a second time where
# a scale is known only once every number has been seen; it must give the same numbers then.
Rows = Callable[[int, int], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Quantised:
    """Stored numbers and what they carry, in buffers that stay where they are when the numbers change.

    ``shape`` is rows x k in numbers.  ``data`` (rows x packed k) is in the type that matrix products take: float8_e4m3fn,
    float8_e5m2, float4_e2m1fn_x2 (two a byte) or int8; uint8 for packed six-bit and four-bit numbers.  ``scales`` and
    ``zero_points`` are one a block, in the grid of ``format.block``; ``tensor_scale`` is float32 and 0-d.  A number is
    (element - zero point) * scale * tensor scale.
    """

    format: Format
    shape: tuple[int, int]
    data: torch.Tensor
    scales: torch.Tensor
    zero_points: torch.Tensor | None = None
    tensor_scale: torch.Tensor | None = None

    @classmethod
    def empty(cls, format_: Format, shape: tuple[int, int], device: torch.device) -> "Quantised":
        """Allocate contiguous buffers; raises ``UsageError`` for a shape that the format's blocks do not divide."""
        rows, k = shape
        reason = format_.misfit(rows, k)
        if reason is not None:
            raise UsageError(reason)
        grid = format_.block.grid(rows, k)
        zero_point_dtype = format_.scaling.zero_point_dtype
        return cls(
            format_,
            (rows, k),
            _empty((rows, packed_columns(k, format_.element.bits)), format_.element.dtype, device),
            _empty(grid, format_.scaling.dtype, device),
            _empty(grid, zero_point_dtype, device) if zero_point_dtype else None,
            _empty((), torch.float32, device) if format_.has_tensor_scale else None,
        )

    @property
    def buffers(self) -> tuple[torch.Tensor, ...]:
        """Everything that a product reads."""
        return tuple(each for each in (self.data, self.scales, self.zero_points, self.tensor_scale) if each is not None)

    @property
    def stored_bytes(self) -> StoredBytes:
        return self.format.stored_bytes(*self.shape)

    @property
    def layout(self) -> dict[str, Any]:
        """How the parts lie, in words and numbers for a record."""
        return {
            "format": self.format.title,
            "element": self.format.element.name,
            "data": _described(self.data),
            "block": list(self.format.block) if self.format.block.k else self.format.block.name,
            "block_axes": ["rows", "k"],
            "scales": _described(self.scales),
            "zero_points": None if self.zero_points is None else _described(self.zero_points),
            "tensor_scale": None if self.tensor_scale is None else _described(self.tensor_scale),
            "stored_bytes": self.stored_bytes.total,
        }

    def fill(self, rows: Rows) -> None:
        """Quantise what ``rows`` gives into the same buffers."""
        if not any(self.format.block) or self.tensor_scale is not None:
            self._set_whole(rows)
        for span in self._row_spans():
            chunk = rows(*span)
            assert chunk.dtype in (torch.float32, torch.float64), f"rows are float32 or float64, not {chunk.dtype}"
            for columns in self._column_spans(span):
                self._set_piece(span, columns, chunk[:, columns.start : columns.stop])

    def _set_whole(self, rows: Rows) -> None:
        """Look at every number, for the scale of the tensor."""
        seen = [extremes(rows(*span), TENSOR) for span in self._row_spans()]
        whole = Extremes(
            torch.stack([each.low.amin() for each in seen]).amin(), torch.stack([each.high.amax() for each in seen]).amax()
        )
        scale = self.format.scaling.tensor_scale(whole)
        if scale is not None:
            assert self.tensor_scale is not None
            self.tensor_scale.copy_(scale)
        if not any(self.format.block):
            self._set_scales(Span(0, 1), Span(0, 1), Extremes(whole.low.view(1, 1), whole.high.view(1, 1)))

    def _set_piece(self, rows: Span, columns: Span, piece: torch.Tensor) -> None:
        block = self.format.block
        grid_rows, grid_columns = self._in_grid(rows, block.rows), self._in_grid(columns, block.k)
        if any(block):
            self._set_scales(grid_rows, grid_columns, extremes(piece, block))
        steps, zeros = self._steps(grid_rows, grid_columns)
        codes = self._encode(piece, spread(steps), None if zeros is None else spread(zeros))
        self._bytes(rows, columns).copy_(pack(codes, self.format.element.bits))

    def _set_scales(self, grid_rows: Span, grid_columns: Span, blocks: Extremes) -> None:
        chosen = self.format.scaling.choose(blocks, self.tensor_scale)
        _bits(_part(self.scales, grid_rows, grid_columns)).copy_(_bits(chosen.stored))
        if self.zero_points is not None:
            _part(self.zero_points, grid_rows, grid_columns).copy_(chosen.zero_points)

    def _encode(self, piece: torch.Tensor, steps: torch.Tensor, zeros: torch.Tensor | None) -> torch.Tensor:
        """Codes of a piece, one a byte.  Where a step is zero or NaN there is no element to choose: code 0."""
        scaled = blocked(piece, self.format.block) / steps
        scaled.masked_fill_(~((steps > 0) & steps.isfinite()), 0.0)
        element = self.format.element
        codes = element.encode(scaled, zeros) if isinstance(element, Integer) else element.encode(scaled)
        return codes.reshape(-1, piece.shape[1])[: piece.shape[0]]

    def _steps(self, grid_rows: Span, grid_columns: Span) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What a unit of an element is worth, and which code is zero, for a part of the grid; float64."""
        steps = self.format.scaling.steps(_part(self.scales, grid_rows, grid_columns), self.tensor_scale)
        if self.zero_points is None:
            return steps, None
        return steps, _part(self.zero_points, grid_rows, grid_columns).to(torch.float64)

    def _read_piece(self, rows: Span, columns: Span) -> torch.Tensor:
        """Numbers of a piece that begins with a block, in float64."""
        block = self.format.block
        codes = unpack(self._bytes(rows, columns), self.format.element.bits)
        steps, zeros = self._steps(self._in_grid(rows, block.rows), self._in_grid(columns, block.k))
        values = blocked(decode(self.format.element, codes), block)
        if zeros is not None:
            values = values - spread(zeros)
        return (values * spread(steps)).view(-1, codes.shape[1])[: codes.shape[0]]

    def _bytes(self, rows: Span, columns: Span) -> torch.Tensor:
        first, last = (packed_columns(column, self.format.element.bits) for column in columns)
        return _bits(self.data)[rows.start : rows.stop, first:last]

    def _row_spans(self) -> Iterator[Span]:
        rows, k = self.shape
        return spans(rows, self.format.block.rows or 1, max(1, CHUNK_ELEMENTS // k))

    def _column_spans(self, rows: Span) -> Iterator[Span]:
        """Whole blocks along K: rows of blocks that are 128 high can be too many numbers at once."""
        k = self.shape[1]
        return spans(k, self.format.block.k or k, max(1, CHUNK_ELEMENTS // (rows.stop - rows.start)))

    def _in_grid(self, span: Span, size: int) -> Span:
        """The blocks that cover a span which begins with one; everything where a block has no end."""
        return Span(span.start // size, -(-span.stop // size)) if size else Span(0, 1)


def quantise(x: torch.Tensor, format_: Format) -> Quantised:
    """Round a matrix (rows x k, float32 or float64, K the axis that a product sums over) to a format, on its own device.

    Raises ``UsageError`` for a shape that the format's blocks do not divide.
    """
    quantised = Quantised.empty(format_, tuple(x.shape), x.device)
    quantised.fill(lambda start, stop: x[start:stop])
    return quantised


def dequantise(quantised: Quantised, dtype: torch.dtype = torch.float64, rows: Span | None = None) -> torch.Tensor:
    """The numbers (rows x k, or a span of the rows) that are stored: exact in float64, rounded by torch to another type."""
    start, stop = rows or (0, quantised.shape[0])
    k, height = quantised.shape[1], quantised.format.block.rows or 1
    out = torch.empty(stop - start, k, dtype=dtype, device=quantised.data.device)
    for span in spans(quantised.shape[0], height, max(1, CHUNK_ELEMENTS // k)):
        wanted = Span(max(span.start, start), min(span.stop, stop))
        if wanted.start >= wanted.stop:
            continue
        for columns in quantised._column_spans(span):
            piece = quantised._read_piece(span, columns)[wanted.start - span.start : wanted.stop - span.start]
            out[wanted.start - start : wanted.stop - start, columns.start : columns.stop] = piece
    return out


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Some types have no allocation of their own on every device; every one of a byte is one of uint8."""
    if dtype.itemsize == 1:
        return torch.empty(shape, dtype=torch.uint8, device=device).view(dtype)
    return torch.empty(shape, dtype=dtype, device=device)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """One-byte types as uint8: copying and slicing are not offered for all of them."""
    return tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor


def _part(grid: torch.Tensor, rows: Span, columns: Span) -> torch.Tensor:
    return grid[rows.start : rows.stop, columns.start : columns.stop]


def _described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
