"""The implementations of the grouped_gemm job on torch devices, by name."""

from functools import partial

from backends.torch.grouped_gemm import library, loop, own
from backends.torch.grouped_gemm.way import Way

WAYS: dict[str, Way] = {
    "library": library.WAY,
    "loop": loop.WAY,
    **{name: Way(partial(own.refuses, name), partial(own.make, name)) for name in own.FORMATS},
}
