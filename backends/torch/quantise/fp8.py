"""8-bit floats with float32 scales: of the tensor, of each row, of 1x128 or of 128x128 blocks.

The scale carries the largest magnitude of its block to the element's largest number, 448 or 57344.  Sources: NVIDIA Transformer
Engine documentation, "FP8 Current Scaling" and "FP8 Blockwise Scaling" (whose block scales are powers of two by default; these
are not), and DeepSeek-V3 technical report, section 3.3.2 (1x128 for activations, 128x128 for weights).

A block of zeros has scale 1.  A block with NaN or an infinity has scale NaN, so that all of it is NaN: what went wrong before
is not hidden by saturation.
"""

from dataclasses import dataclass

import torch

from backends.torch.quantise.blocks import Extremes
from backends.torch.quantise.elements import SmallFloat
from backends.torch.quantise.scaling import SMALLEST_SCALE, ErrorBound, Scales, rounded_scale


@dataclass(frozen=True, slots=True)
class Float32Scaling:
    """See ``scaling.Scaling``."""

    element: SmallFloat
    dtype: torch.dtype = torch.float32
    zero_point_dtype: torch.dtype | None = None

    @property
    def bound(self) -> ErrorBound:
        half_step = self.element.smallest / 2
        return ErrorBound(
            roundoff=self.element.roundoff,
            step=half_step / self.element.largest * (1 + 2.0**-24),
            floor=half_step * SMALLEST_SCALE,
        )

    def tensor_scale(self, whole: Extremes) -> None:
        return None

    def choose(self, blocks: Extremes, tensor_scale: torch.Tensor | None) -> Scales:
        return Scales(rounded_scale(blocks.magnitude / self.element.largest, self.dtype))

    def steps(self, stored: torch.Tensor, tensor_scale: torch.Tensor | None) -> torch.Tensor:
        return stored.to(torch.float64)
