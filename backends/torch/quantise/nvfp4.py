"""NVIDIA's nvfp4: E2M1 in blocks of 16 along K, an E4M3 scale for each block, and a float32 scale for the tensor.

Source: NVIDIA Transformer Engine documentation, "NVFP4" (scaling factor computation), and "Pretraining Large Language Models
with NVFP4" (arXiv 2509.25149): the tensor's scale is its largest magnitude / (448 * 6); a block's is (its largest magnitude
/ 6) / the tensor's scale, rounded to the nearest E4M3 number; an element is x / (block scale * tensor scale), rounded to the
nearest E2M1 number and clamped to 6.  Blocks are one-dimensional; the 16x16 ones of training recipes are not done here.

Quotients are taken in float64 and rounded once.  Kernels of Transformer Engine multiply by float32 reciprocals instead, which
can tip a tie.  A block whose scale rounds to zero (largest magnitude at most 1 / 458752 of the tensor's) is stored as zeros.  A
tensor of zeros has scale 1.  With NaN or an infinity anywhere the tensor's scale is NaN, and so is every number.
"""

from dataclasses import dataclass

import torch

from backends.torch.quantise.blocks import Extremes
from backends.torch.quantise.elements import E2M1, E4M3, decode
from backends.torch.quantise.scaling import SMALLEST_SCALE, ErrorBound, Scales, rounded_scale


@dataclass(frozen=True, slots=True)
class TwoLevelScaling:
    """See ``scaling.Scaling``."""

    dtype: torch.dtype = torch.float8_e4m3fn
    zero_point_dtype: torch.dtype | None = None

    @property
    def bound(self) -> ErrorBound:
        """A block's scale is off by up to ``E4M3.roundoff`` of itself, which widens the steps, or by half its smallest step,
        which is a fraction of the tensor's scale and can clamp the block's largest numbers.
        """
        half_step, scale_error = E2M1.smallest / 2, E2M1.largest * E4M3.smallest / 2
        return ErrorBound(
            roundoff=E2M1.roundoff,
            step=half_step / E2M1.largest * (1 + E4M3.roundoff) * (1 + 2.0**-22),
            floor=scale_error * SMALLEST_SCALE,
            tensor_step=scale_error / (E4M3.largest * E2M1.largest) * (1 + 2.0**-22),
        )

    def tensor_scale(self, whole: Extremes) -> torch.Tensor:
        return rounded_scale(whole.magnitude / (E4M3.largest * E2M1.largest), torch.float32)

    def choose(self, blocks: Extremes, tensor_scale: torch.Tensor | None) -> Scales:
        assert tensor_scale is not None
        scales = blocks.magnitude / E2M1.largest / tensor_scale.to(torch.float64)
        return Scales(E4M3.encode(scales).view(self.dtype))

    def steps(self, stored: torch.Tensor, tensor_scale: torch.Tensor | None) -> torch.Tensor:
        assert tensor_scale is not None
        return decode(E4M3, stored.view(torch.uint8)) * tensor_scale.to(torch.float64)
