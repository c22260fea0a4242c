"""Inputs of a stated distribution, written in place from a seed.

Values are drawn in float32 (float64 for float64 operands) and rounded to the operand's type, so that one seed means the
same numbers in every format.  Drawing goes chunk by chunk, each from a seed of its own: scratch memory stays bounded
whatever the operand's size.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from backends.distributions import CONSTANT, INT8_FACTOR, INT8_MAX, OUTLIER_FACTOR, OUTLIER_SHARE
from backends.seeds import mixed_seed

CHUNK_ELEMENTS = 1 << 22
CHUNKS_AT_ONCE = 4  # of those that are kept as they were drawn: 64 MiB
FP8_E4M3_MAX = 448.0
# What is stored with one scale a tensor, and the largest number of the type.
LARGEST_SCALED = {torch.float8_e4m3fn: FP8_E4M3_MAX, torch.float8_e4m3fnuz: 240.0}

Result = TypeVar("Result")
Draw = Callable[[torch.Tensor, torch.Generator], Any]


def _draw_outliers(out: torch.Tensor, generator: torch.Generator) -> None:
    out.normal_(generator=generator)
    chance = torch.empty_like(out).uniform_(generator=generator)
    out.mul_((chance < OUTLIER_SHARE) * (OUTLIER_FACTOR - 1) + 1)


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda out, generator: out.normal_(generator=generator),
    "uniform": lambda out, generator: out.uniform_(-1.0, 1.0, generator=generator),
    "integer": lambda out, generator: out.random_(-1, 2, generator=generator),
    "zeros": lambda out, generator: out.zero_(),
    "constant": lambda out, generator: out.fill_(CONSTANT),
    "outliers": _draw_outliers,
}


@dataclass(frozen=True, slots=True)
class Operand:
    """One input in its buffer: the stored numbers, and the float32 scale (0-d, same device) that fp8 numbers carry."""

    data: torch.Tensor
    scale: torch.Tensor | None = None

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> "Operand":
        """Allocate a contiguous buffer, with a scale where the type needs one."""
        scale = torch.ones((), dtype=torch.float32, device=device) if dtype in LARGEST_SCALED else None
        return cls(torch.empty(shape, dtype=dtype, device=device), scale)

    def refill(self, distribution: str, seed: int) -> None:
        """Write fresh numbers of ``distribution`` into the same buffer."""
        draw = DISTRIBUTIONS[distribution]
        if self.scale is not None:
            _fill_scaled(self.data, self.scale, draw, seed)
        elif self.data.dtype == torch.int8:
            factor = INT8_FACTOR[distribution]
            _fill_rounded(self.data, lambda x: x.mul_(factor).round_().clamp_(-INT8_MAX, INT8_MAX), draw, seed)
        else:
            _fill_rounded(self.data, lambda x: x, draw, seed)

    def scaled(self, product: torch.Tensor) -> torch.Tensor:
        """A float64 product with the stored numbers, times the scale they carry."""
        return product if self.scale is None else product * self.scale.to(product)

    @property
    def buffers(self) -> tuple[torch.Tensor, ...]:
        """Everything that a launch reads."""
        return (self.data,) if self.scale is None else (self.data, self.scale)

    def numbers(self, start: int, stop: int) -> torch.Tensor:
        """What rows of the buffer are worth, in float64 and exactly."""
        return self.scaled(self.data[start:stop].to(torch.float64))


class Drawn:
    """The numbers of an operand before any rounding: a matrix of a distribution, in float32, drawn as rows are asked for.

    They are those that ``Operand.refill`` writes for the same shape and seed.  Chunks drawn last are kept, so that asking in
    order draws each once.
    """

    def __init__(self, shape: tuple[int, int], distribution: str, seed: int, device: torch.device) -> None:
        self._shape, self._draw, self._seed, self._device = shape, DISTRIBUTIONS[distribution], seed, device
        self._kept, self._first = torch.empty(0, device=device), 0

    def rows(self, start: int, stop: int) -> torch.Tensor:
        """Rows ``start`` to ``stop``; the caller may not write to them."""
        columns = self._shape[1]
        parts, at, end = [], start * columns, stop * columns
        while at < end:
            part = self._from(at)[: end - at]
            parts.append(part)
            at += len(part)
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).view(stop - start, columns)

    def _from(self, element: int) -> torch.Tensor:
        """Elements from one on, as far as they are kept."""
        if not self._first <= element < self._first + len(self._kept):
            chunk = element // CHUNK_ELEMENTS
            self._first = chunk * CHUNK_ELEMENTS
            at_once = min(CHUNKS_AT_ONCE, torch.get_num_threads()) if self._device.type == "cpu" else 1
            count = min(at_once * CHUNK_ELEMENTS, self._shape[0] * self._shape[1] - self._first)
            self._kept = torch.empty(count, dtype=torch.float32, device=self._device)
            _each_chunk(self._kept, lambda index, part: self._draw(part, self._generator(chunk + index)))
        return self._kept[element - self._first :]

    def _generator(self, chunk: int) -> torch.Generator:
        return _generator(self._device, mixed_seed(self._seed, chunk))


def _fill_rounded(data: torch.Tensor, adjust: Callable[[torch.Tensor], torch.Tensor], draw: Draw, seed: int) -> None:
    def fill(index: int, chunk: torch.Tensor) -> None:
        generator = _generator(data.device, mixed_seed(seed, index))
        if chunk.dtype in (torch.float32, torch.float64):
            draw(chunk, generator)
        else:
            chunk.copy_(adjust(_drawn(chunk, draw, generator)))

    _each_chunk(data, fill)


def _fill_scaled(data: torch.Tensor, scale: torch.Tensor, draw: Draw, seed: int) -> None:
    """Quantise to fp8 with one scale that carries the largest magnitude to the format's largest number.

    Every chunk is drawn twice, because the scale is known only once every number has been seen.
    """

    top = LARGEST_SCALED[data.dtype]

    def drawn(index: int, chunk: torch.Tensor) -> torch.Tensor:
        return _drawn(chunk, draw, _generator(data.device, mixed_seed(seed, index)))

    def quantise(index: int, chunk: torch.Tensor) -> None:
        chunk.copy_((drawn(index, chunk) / scale).clamp_(-top, top))

    largest = torch.stack(_each_chunk(data, lambda index, chunk: drawn(index, chunk).abs().max())).max()
    scale.copy_(torch.where(largest > 0, largest / top, torch.ones_like(largest)))
    _each_chunk(data, quantise)


def _each_chunk(data: torch.Tensor, work: Callable[[int, torch.Tensor], Result]) -> list[Result]:
    """Apply ``work`` to every chunk; on a CPU by several threads, because one generator draws on one core only.

    A chunk has its own generator, so the numbers do not depend on how many threads there are.
    """
    chunks = data.view(-1).split(CHUNK_ELEMENTS)
    if data.device.type != "cpu" or len(chunks) == 1:
        return [work(index, chunk) for index, chunk in enumerate(chunks)]
    with ThreadPoolExecutor(max_workers=torch.get_num_threads()) as pool:
        return list(pool.map(work, range(len(chunks)), chunks))


def _generator(device: torch.device, seed: int) -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


def _drawn(like: torch.Tensor, draw: Draw, generator: torch.Generator) -> torch.Tensor:
    wide = torch.empty(like.shape, dtype=torch.float32, device=like.device)
    draw(wide, generator)
    return wide
