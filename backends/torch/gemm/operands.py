"""Operands with scales of their own, as their format stores them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from backends.torch.data import Drawn, Operand
from backends.torch.gemm.sizes import Sizes
from backends.torch.quantise.blocks import Span, spans
from backends.torch.quantise.formats import Format, format_of
from backends.torch.quantise.quantised import CHUNK_ELEMENTS, Quantised, dequantise
from backends.torch.target import Target
from suite.case import Workload
from suite.jobs.gemm.formats import TENSOR, Storage, variant_of


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisedOperand(Operand):
    """A matrix of rows x K in a format with scales; ``data`` are the numbers of ``quantised``, packed as they are there.

    ``arrangements`` run after each refill: they write what a library wants in another order, into buffers of its own.
    """

    quantised: Quantised
    arrangements: list[Callable[[], object]] = field(default_factory=list)

    @classmethod
    def allocated(cls, format_: Format, shape: tuple[int, int], device: torch.device) -> "QuantisedOperand":
        """Allocate the buffers of a format; raises ``UsageError`` for a shape that its blocks do not divide."""
        quantised = Quantised.empty(format_, shape, device)
        return cls(data=quantised.data, quantised=quantised)

    def refill(self, distribution: str, seed: int) -> None:
        self.quantised.fill(Drawn(self.quantised.shape, distribution, seed, self.data.device).rows)
        for arrange in self.arrangements:
            arrange()

    @property
    def buffers(self) -> tuple[torch.Tensor, ...]:
        return self.quantised.buffers

    def numbers(self, start: int, stop: int) -> torch.Tensor:
        return dequantise(self.quantised, torch.float64, Span(start, stop))

    def times(self, vector: torch.Tensor) -> torch.Tensor:
        """The matrix times a float64 vector of K numbers: one for each row."""
        return torch.cat([torch.mv(self.numbers(*span), vector) for span in self._spans()])

    def summed(self, weights: torch.Tensor) -> torch.Tensor:
        """The sum of all rows, each times its float64 weight: K numbers."""
        total = weights.new_zeros(self.quantised.shape[1])
        for span in self._spans():
            total.addmv_(self.numbers(*span).t(), weights[span.start : span.stop])
        return total

    def _spans(self) -> list[Span]:
        rows, k = self.quantised.shape
        return list(spans(rows, self.quantised.format.block.rows or 1, max(1, CHUNK_ELEMENTS // k)))


def quantised_formats(workload: Workload, target: Target) -> tuple[Format | None, Format | None]:
    """How A and B are quantised; ``None`` for one that is plain numbers.

    fp8_e4m3 with one scale a tensor has plain operands, in any layout, wherever a product of those is offered.
    """
    variant = variant_of(workload)
    if workload.format == "fp8_e4m3" and variant.a.block == TENSOR and target.takes_fp8_in_any_layout:
        return None, None
    return _format(variant.a, target.fp8), _format(variant.b, target.fp8)


def allocate(format_: Format | None, dtype: torch.dtype, shape: tuple[int, int], device: torch.device) -> Operand:
    """Buffers of one operand: in a format with scales, or of plain numbers of a type."""
    if format_ is None:
        return Operand.empty(shape, dtype, device)
    return QuantisedOperand.allocated(format_, shape, device)


def quantised_of(operand: Operand) -> Quantised:
    """The parts of an operand that is known to have them."""
    assert isinstance(operand, QuantisedOperand)
    return operand.quantised


def arranged_by(operand: Operand, arrange: Callable[[], object]) -> None:
    """Have ``arrange`` run after each refill of an operand that is known to be quantised."""
    assert isinstance(operand, QuantisedOperand)
    operand.arrangements.append(arrange)


def misfit(workload: Workload, target: Target) -> str | None:
    """Why operands cannot be stored so; ``None`` when they can."""
    sizes, formats = Sizes.of(workload), quantised_formats(workload, target)
    if any(formats) and sizes.layout != "nt":
        return f"operands quantised to {workload.format} lie with K contiguous, as in layout nt, not {sizes.layout}; take nt"
    pairs = zip(formats, (sizes.m, sizes.n), strict=True)
    told = (each.misfit(rows, sizes.k) for each, rows in pairs if each is not None)
    return next((each for each in told if each is not None), None)


def _format(storage: Storage, encoding: str) -> Format | None:
    if not storage.name:
        return None
    return format_of(storage.name, storage.block.name, zero_point=bool(storage.zero_point_bytes), encoding=encoding)
