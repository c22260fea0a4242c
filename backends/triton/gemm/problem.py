"""One product as the kernels see it, and why a kernel cannot have it."""

from typing import NamedTuple

DESCRIPTOR_ALIGNMENT_BYTES = 16  # of every row that a TMA descriptor steps over


class Numbers(NamedTuple):
    """How a format is stored and summed, by Triton's names; ``operand_bytes`` and ``output_bytes`` of one number."""

    operand: str
    output: str
    accumulator: str
    operand_bytes: int
    output_bytes: int


NUMBERS = {
    "tf32": Numbers("fp32", "fp32", "fp32", 4, 4),
    "bf16": Numbers("bf16", "bf16", "fp32", 2, 2),
    "fp16": Numbers("fp16", "fp16", "fp32", 2, 2),
    "int8": Numbers("i8", "i32", "int32", 1, 4),
    "fp8_e4m3": Numbers("fp8e4nv", "bf16", "fp32", 1, 2),
}
SCALED_INT8 = Numbers("i8", "bf16", "int32", 1, 2)
SCALES = ("none", "tensor", "row")


class Problem(NamedTuple):
    """C[m, n] = A[m, k] B[k, n]; ``layout`` says of A and of B whether they are stored as written or transposed (``nt``).

    ``promoted`` sums at most 128 products of fp8 before they are added up in fp32.  ``scaling`` is one of ``SCALES``, or left
    to the format: its numbers have none, all of them one, or each row of A and column of B; those of int8 make its result bf16.
    """

    format: str
    m: int
    n: int
    k: int
    layout: str
    promoted: bool = False
    scaling: str | None = None

    @property
    def scales(self) -> str:
        """One of ``SCALES``: what is asked for, or what the format has of its own."""
        return self.scaling or ("tensor" if self.format == "fp8_e4m3" else "none")

    @property
    def numbers(self) -> Numbers:
        return SCALED_INT8 if self.format == "int8" and self.scales != "none" else NUMBERS[self.format]

    @property
    def a_transposed(self) -> bool:
        return self.layout[0] == "t"

    @property
    def b_transposed(self) -> bool:
        return self.layout[1] == "t"

    @property
    def row_bytes(self) -> dict[str, int]:
        """What one row of each matrix takes, as it is stored."""
        return {
            "A": (self.m if self.a_transposed else self.k) * self.numbers.operand_bytes,
            "B": (self.k if self.b_transposed else self.n) * self.numbers.operand_bytes,
            "C": self.n * self.numbers.output_bytes,
        }

    @property
    def undescribed(self) -> str:
        """Why no tensor descriptor can step over the rows; empty where one can."""
        for name, row_bytes in self.row_bytes.items():
            if row_bytes % DESCRIPTOR_ALIGNMENT_BYTES:
                return f"rows of {name} have {row_bytes} bytes, no multiple of {DESCRIPTOR_ALIGNMENT_BYTES}"
        return ""
