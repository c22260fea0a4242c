"""One grouped product as the kernels see it."""

from typing import NamedTuple

from backends.triton.gemm.problem import NUMBERS, Numbers
from backends.triton.gemm.problem import Problem as Plain

SCALED_BLOCK = 128  # numbers along K, and rows of B, that share a scale of blocks
ROW, BLOCK, NONE = "row", "block", "none"


class Problem(NamedTuple):
    """C[row, n] = A[row, k] B[group of the row, n, k]^T; ``rows`` of each group, in order, some of them perhaps 0.

    ``scales`` are ``none``, ``row`` (of A each row, of B each row of each group) or ``block`` (of A 1x128, of B 128x128);
    ``promoted`` sums at most 128 products of fp8 before they are added up in fp32.
    """

    format: str
    rows: tuple[int, ...]
    n: int
    k: int
    promoted: bool = False
    scales: str = NONE

    @property
    def height(self) -> int:
        return sum(self.rows)

    @property
    def groups(self) -> int:
        return len(self.rows)

    @property
    def numbers(self) -> Numbers:
        return NUMBERS[self.format]

    @property
    def plain(self) -> Plain:
        """The product that this would be with one B, whose rows and tiles take as much room."""
        scaling = ROW if self.scales == BLOCK else self.scales
        return Plain(self.format, self.height, self.n, self.k, "nt", self.promoted or self.scales == BLOCK, scaling)
