"""What every way of choosing scales offers, and how far off its numbers can be."""

from typing import NamedTuple, Protocol

import torch

from backends.torch.quantise.blocks import Extremes

# Scales in float32 and bfloat16 stay above the subnormal numbers: below, their own rounding would pass that of the elements.
SMALLEST_SCALE = 2.0**-126


class ErrorBound(NamedTuple):
    """How far a stored number can be from the real one, where all numbers of its block are finite.

    The distance is at most the larger of ``roundoff`` times the number's magnitude and ``step`` times the largest magnitude of
    its block, plus the larger of ``tensor_step`` times that of the tensor and ``floor``.
    """

    roundoff: float
    step: float
    floor: float
    tensor_step: float = 0.0

    def of(self, magnitude: torch.Tensor, block_largest: torch.Tensor, tensor_largest: torch.Tensor) -> torch.Tensor:
        """The bound for numbers of these magnitudes, elementwise in float64."""
        beside = (self.tensor_step * tensor_largest).clamp(min=self.floor)
        return torch.maximum(self.roundoff * magnitude, self.step * block_largest) + beside


class Scales(NamedTuple):
    """The scales of a grid of blocks as they are stored, and the code that stands for zero in each, where that is not 0."""

    stored: torch.Tensor
    zero_points: torch.Tensor | None = None


class Scaling(Protocol):
    """How scales are chosen, and what they are worth."""

    @property
    def dtype(self) -> torch.dtype:
        """Of stored scales."""
        ...

    @property
    def zero_point_dtype(self) -> torch.dtype | None:
        """Of stored zero points; ``None`` where zero is always code 0."""
        ...

    @property
    def bound(self) -> ErrorBound: ...

    def tensor_scale(self, whole: Extremes) -> torch.Tensor | None:
        """A float32 scale of the whole tensor (same shape as the extremes), where there is one beside those of the blocks."""
        ...

    def choose(self, blocks: Extremes, tensor_scale: torch.Tensor | None) -> Scales:
        """The scales of blocks with these extremes; NaN where a block has NaN or infinities, or is out of the scale's reach."""
        ...

    def steps(self, stored: torch.Tensor, tensor_scale: torch.Tensor | None) -> torch.Tensor:
        """What one unit of an element is worth, in float64, exactly: a stored scale times the tensor's."""
        ...


def rounded_scale(ideal: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Float64 scales rounded to float32 and then to ``dtype``; 1 where all numbers are zero, NaN where one is not finite."""
    scale = ideal.to(torch.float32).clamp(min=SMALLEST_SCALE)
    scale = torch.where(ideal == 0, torch.ones_like(scale), scale)
    return scale.masked_fill_(~scale.isfinite(), float("nan")).to(dtype)
