"""The buffers of one input set: operands (batch, heads, rows, columns) as their format stores them, and what is written."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from backends.torch.attention.rotation import rotation_of
from backends.torch.data import FP8_E4M3_MAX, Drawn, Operand
from suite.case import Workload
from suite.jobs.attention import HADAMARD, Sizes, sizes_of
from suite.jobs.attention.formats import scaling_of

DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8_e4m3": torch.float8_e4m3fn,
}
ROTATED = ("q", "k")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledOperand(Operand):
    """e4m3 with one float32 scale for each head of each sequence, equal ones where the whole operand shares a scale.

    ``scales`` is (batch, heads).  With a ``rotation`` (columns x columns, orthogonal) rows are multiplied by it before they are
    rounded.  ``arrangements`` run after each refill.
    """

    scales: torch.Tensor
    shared: bool
    rotation: torch.Tensor | None = None
    arrangements: list[Callable[[], None]] = field(default_factory=list)

    def refill(self, distribution: str, seed: int) -> None:
        """Draws every number twice: a scale is known only once every number that it covers has been seen."""
        largest = torch.stack([head.abs().max() for head in self._drawn(distribution, seed)])
        if self.shared:
            largest = largest.max().expand_as(largest)
        flat = self.scales.view(-1)
        flat.copy_(torch.where(largest > 0, largest / FP8_E4M3_MAX, torch.ones_like(largest)))
        for place, head in enumerate(self._drawn(distribution, seed)):
            self._heads[place].copy_((head / flat[place]).clamp_(-FP8_E4M3_MAX, FP8_E4M3_MAX))
        for arrange in self.arrangements:
            arrange()

    @property
    def buffers(self) -> tuple[torch.Tensor, ...]:
        return self.data, self.scales

    @property
    def _heads(self) -> torch.Tensor:
        return self.data.view(-1, *self.data.shape[2:])

    def _drawn(self, distribution: str, seed: int) -> Iterator[torch.Tensor]:
        """The numbers of each head as they are drawn and rotated, one after the other."""
        batch, heads, rows, columns = self.data.shape
        drawn = Drawn((batch * heads * rows, columns), distribution, seed, self.data.device)
        for start in range(0, batch * heads * rows, rows):
            numbers = drawn.rows(start, start + rows)
            yield numbers if self.rotation is None else numbers @ self.rotation


def worth(operand: Operand, batch: int, head: int, rows: slice = slice(None)) -> torch.Tensor:
    """What rows of one head are worth, in float64 (rows x columns) on their device."""
    numbers = operand.data[batch, head, rows].to(torch.float64)
    return numbers * operand.scales[batch, head].to(torch.float64) if isinstance(operand, ScaledOperand) else numbers


class Buffers(NamedTuple):
    """One input set.

    ``output`` is what a check sees, a matrix; ``results`` are the tensors in it, (batch, heads, rows, columns): O, or the
    gradients of Q, K and V one after the other.  A backward pass is given ``do``, and ``o`` with ``lse`` (batch, heads, rows)
    of a forward pass, which are no operands: they follow from the others.
    """

    q: Operand
    k: Operand
    v: Operand
    do: Operand | None
    output: torch.Tensor
    results: tuple[torch.Tensor, ...]
    o: torch.Tensor
    lse: torch.Tensor

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.q, self.k, self.v) if self.do is None else (self.q, self.k, self.v, self.do)

    @property
    def saved(self) -> tuple[torch.Tensor, ...]:
        """What a launch reads beside its operands."""
        return () if self.do is None else (self.o, self.lse)


def allocate(workload: Workload, device: torch.device) -> Buffers:
    """Contiguous buffers, not filled."""
    sizes, dtype = sizes_of(workload), DTYPES[workload.format]
    shapes = shapes_of(sizes)
    q, k, v = (_operand(name, shapes[name], workload, device) for name in "qkv")
    wide = output_type(workload.format)
    names = result_names(sizes)
    width = width_of(sizes)
    output = torch.empty(sum(math.prod(shapes[name]) for name in names) // width, width, dtype=wide, device=device)
    parts = output.view(-1).split([math.prod(shapes[name]) for name in names])
    results = tuple(part.view(shapes[name]) for name, part in zip(names, parts, strict=True))
    do = Operand.empty(shapes["o"], dtype, device) if sizes.is_backward else None
    o = torch.empty(shapes["o"], dtype=wide, device=device) if sizes.is_backward else results[0]
    lse = torch.empty(shapes["o"][:3], dtype=torch.float32, device=device)
    return Buffers(q, k, v, do, output, results, o, lse)


def shapes_of(sizes: Sizes) -> dict[str, tuple[int, int, int, int]]:
    """(batch, heads, rows, columns) of Q, K, V and O."""
    return {
        "q": (sizes.batch, sizes.num_q_heads, sizes.q_len, sizes.head_dim),
        "k": (sizes.batch, sizes.num_kv_heads, sizes.kv_len, sizes.head_dim),
        "v": (sizes.batch, sizes.num_kv_heads, sizes.kv_len, sizes.v_head_dim),
        "o": (sizes.batch, sizes.num_q_heads, sizes.q_len, sizes.v_head_dim),
    }


def result_names(sizes: Sizes) -> tuple[str, ...]:
    """What is written, in order: O, or a gradient for each of Q, K and V."""
    return ("q", "k", "v") if sizes.is_backward else ("o",)


def width_of(sizes: Sizes) -> int:
    """Columns of the output as a matrix: those of O; of gradients the largest number that divides every row of theirs."""
    return math.gcd(sizes.head_dim, sizes.v_head_dim) if sizes.is_backward else sizes.v_head_dim


def output_type(format_name: str) -> torch.dtype:
    """bf16 where operands have 8 bits, else as they have it."""
    return torch.bfloat16 if format_name == "fp8_e4m3" else DTYPES[format_name]


def _operand(name: str, shape: tuple[int, int, int, int], workload: Workload, device: torch.device) -> Operand:
    scaling = scaling_of(workload)
    data = torch.empty(shape, dtype=DTYPES[workload.format], device=device)
    if scaling is None:
        return Operand(data)
    rotated = name in ROTATED and dict(workload.semantics).get(HADAMARD)
    return ScaledOperand(
        data=data,
        scales=torch.ones(shape[:2], dtype=torch.float32, device=device),
        shared=scaling == "tensor",
        rotation=rotation_of(shape[3], device) if rotated else None,
    )
