"""Numbers as a cache's format stores them, and what they are worth."""

from collections.abc import Mapping
from typing import NamedTuple

import torch

from backends.torch.quantise.blocks import Extremes
from backends.torch.quantise.formats import format_of
from suite.jobs.decode.formats import UNSCALED

DTYPES: Mapping[str, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "int8": torch.int8,
}
LARGEST = {"fp8_e4m3": 448.0, "int8": 127.0}  # of the codes


class Storing(NamedTuple):
    """A cache's format, and what shares a scale: ``none``, ``tensor`` or ``token``."""

    format: str
    scaling: str

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.format]

    def scales_for(self, largest: torch.Tensor) -> torch.Tensor:
        """Float32 scales that carry the largest magnitudes of their numbers to the format's largest code; 1 for zeros."""
        wide = largest.to(torch.float64)
        return format_of(self.format).scaling.choose(Extremes(-wide, wide), None).stored

    def codes(self, numbers: torch.Tensor, scales: torch.Tensor | None) -> torch.Tensor:
        """Float32 numbers rounded to the format, ``scales`` (to be broadcast) taken out."""
        if scales is None:
            return numbers.to(self.dtype)
        scaled = numbers / scales
        if self.dtype == torch.int8:
            scaled = scaled.round_()
        return scaled.clamp_(-LARGEST[self.format], LARGEST[self.format]).to(self.dtype)


def storing_of(format_name: str, scaling: str) -> Storing:
    """Numbers of 8 bits have scales, others none."""
    assert (format_name in LARGEST) == (scaling != UNSCALED), (format_name, scaling)
    return Storing(format_name, scaling)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """One-byte types as uint8: gathering and scattering are not offered for all of them."""
    return tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor
