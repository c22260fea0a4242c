"""The fixed list of 20 matrix products that the parts on economy and repeatability go through."""

from typing import NamedTuple

TINY_DIVISOR = 64
TINY_LEAST = 16


class Gemm(NamedTuple):
    """C[m, n] = A[m, k] B[k, n] in one format, B stored as a Linear layer keeps its weight."""

    format: str
    m: int
    n: int
    k: int

    @property
    def title(self) -> str:
        return f"{self.format} {self.m}x{self.n}x{self.k}"

    def scaled(self, tiny: bool) -> "Gemm":
        """The product itself, or one a laptop finishes at once."""
        return Gemm(self.format, *(_tiny(size) for size in self[1:])) if tiny else self


def square(format_name: str, side: int) -> Gemm:
    """A cube: m = n = k."""
    return Gemm(format_name, side, side, side)


# Compute-bound in every format, then weight streaming, then two that are hardly longer than their launch; the longest
# come first, so that a part that runs out of time has lost the cheapest to repeat.
TWENTY = (
    square("bf16", 8192),
    square("fp8_e4m3", 8192),
    square("int8", 8192),
    Gemm("bf16", 4096, 14336, 4096),
    Gemm("bf16", 4096, 4096, 14336),
    square("bf16", 4096),
    square("fp16", 4096),
    square("fp8_e4m3", 4096),
    square("int8", 4096),
    square("tf32", 4096),
    square("fp32", 2048),
    square("fp64", 2048),
    Gemm("bf16", 16, 28672, 8192),
    Gemm("bf16", 16, 8192, 8192),
    Gemm("bf16", 1, 8192, 8192),
    Gemm("bf16", 64, 14336, 4096),
    Gemm("fp8_e4m3", 16, 8192, 8192),
    square("bf16", 2048),
    square("bf16", 1024),
    square("bf16", 512),
)


def _tiny(size: int) -> int:
    return min(size, max(TINY_LEAST, size // TINY_DIVISOR))
