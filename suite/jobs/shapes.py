"""GEMM shapes that the field uses: the projections of named models at tensor parallelism 1.

Each pair is (K, N): the input width and the output width of one weight matrix, in the order qkv, attention output,
gate-up, down, and the vocabulary projection where the model has one worth measuring.  Sizes follow from the models'
published configurations.
"""

import re
from typing import NamedTuple

from suite.errors import UsageError, nearest

LARGEST_SIZE = 2**31 - 1


class Shape(NamedTuple):
    """The sizes of one product: C[m, n] = A[m, k] B[k, n]."""

    m: int
    n: int
    k: int

    @property
    def flops(self) -> float:
        """Operations of the product: a multiplication and an addition for each of m n k."""
        return 2.0 * self.m * self.n * self.k


MODEL_PROJECTIONS: dict[str, tuple[tuple[int, int], ...]] = {
    "llama-3-8b": ((4096, 6144), (4096, 4096), (4096, 28672), (14336, 4096), (4096, 128256)),
    "llama-3.3-70b": ((8192, 10240), (8192, 8192), (8192, 57344), (28672, 8192), (8192, 128256)),
    "llama-3.1-405b": ((16384, 18432), (16384, 16384), (16384, 106496), (53248, 16384)),
    "qwen2.5-72b": ((8192, 10240), (8192, 8192), (8192, 59136), (29568, 8192)),
    "deepseek-v3": (
        (7168, 2112),
        (7168, 576),
        (1536, 24576),
        (512, 32768),
        (16384, 7168),
        (7168, 4096),
        (2048, 7168),
    ),
}


def parse_shape(text: str) -> Shape:
    """Read ``MxNxK``, as in ``4096x4096x4096``; a single number is a square."""
    if not re.fullmatch(r"-?\d+(x-?\d+x-?\d+)?", str(text).strip()):
        raise UsageError(f"shape '{text}' is not MxNxK; write for instance 4096x4096x4096, or 4096 for a square")
    sizes = [int(size) for size in str(text).strip().split("x")]
    shape = Shape(*sizes) if len(sizes) == 3 else Shape(sizes[0], sizes[0], sizes[0])
    for name, size in shape._asdict().items():
        if not 1 <= size <= LARGEST_SIZE:
            raise UsageError(f"shape '{text}' has {name}={size}; sizes go from 1 to {LARGEST_SIZE}")
    return shape


def model_shapes(model: str, m: int) -> tuple[Shape, ...]:
    """The products of one named model for ``m`` tokens."""
    if model not in MODEL_PROJECTIONS:
        raise UsageError(f"unknown model '{model}' in jobs.gemm.models{nearest(model, MODEL_PROJECTIONS)}")
    if not 1 <= m <= LARGEST_SIZE:
        raise UsageError(f"jobs.gemm.m has {m}; tokens go from 1 to {LARGEST_SIZE}")
    return tuple(Shape(m, n, k) for k, n in MODEL_PROJECTIONS[model])
