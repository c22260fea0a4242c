"""The precision ladder: how each format stores its operands, which unit multiplies it, and what rounds.

Operands are matrices of rows x K, K being the axis that a product sums over: A as m x k, B as n x k.  What a scale covers is
consecutive rows by consecutive numbers along K.

``fp8_e5m2`` and ``mxfp8_e5m2`` have A in E5M2 and B in E4M3: a gradient times a weight, as in the HYBRID recipe of NVIDIA's
Transformer Engine.  No recipe multiplies E5M2 by E5M2, and cuBLASLt does not (cuBLAS documentation, cublasLtMatmul, table of
supported types).

Sources of the others: OCP Microscaling Formats (MX) Specification v1.0 (blocks of 32 with a power of two); NVIDIA Transformer
Engine documentation, "NVFP4"; DeepSeek-V3 technical report, section 3.3.2 (``block``: A in 1x128, B in 128x128).  ``w8a16`` has
one bf16 scale for each row of B, ``w4a16`` one for each group of 128 along K; ``mxfp4a16`` multiplies bf16 by mxfp4 weights, as
mixtures of experts are shipped.
"""

from collections.abc import Mapping
from typing import NamedTuple

from suite.case import Items, Workload, items


class Block(NamedTuple):
    """The numbers that share a scale, ``rows`` x ``k`` of them; 0 stands for all there are."""

    rows: int
    k: int

    @property
    def name(self) -> str:
        return {(0, 0): "tensor", (1, 0): "row"}.get(self, f"{self.rows}x{self.k}")

    def covering(self, rows: int, k: int) -> int:
        """How many blocks a matrix of rows x k has."""
        return -(-rows // (self.rows or rows)) * -(-k // (self.k or k))


TENSOR, ROW, ROW_128, SQUARE_128 = Block(0, 0), Block(1, 0), Block(1, 128), Block(128, 128)


class Storage(NamedTuple):
    """How one operand is stored: ``bits`` a number, and for each block a scale and perhaps a zero point.

    ``name`` is that of the number format, for whoever quantises; empty where numbers have no scales.
    """

    bits: int
    name: str = ""
    block: Block = TENSOR
    scale_bytes: int = 0
    zero_point_bytes: int = 0
    tensor_scale_bytes: int = 0

    def elements_bytes(self, rows: int, k: int) -> int:
        """The numbers alone; of 4 and 6 bits they lie packed."""
        return -(-rows * k * self.bits // 8)

    def beside_bytes(self, rows: int, k: int) -> int:
        """What the numbers carry: scales and zero points."""
        return self.block.covering(rows, k) * (self.scale_bytes + self.zero_point_bytes) + self.tensor_scale_bytes

    def stored_bytes(self, rows: int, k: int) -> int:
        return self.elements_bytes(rows, k) + self.beside_bytes(rows, k)


class Variant(NamedTuple):
    """One way of scaling a format.

    ``roundoff`` is the unit roundoff of the output; ``rounded`` counts the operands whose numbers bf16 does not hold exactly
    once their scales are applied, which is what a device without the format's unit does.  ``shifted`` is the operand (``a`` or
    ``b``) that can have zero points, and what it then stores.
    """

    a: Storage
    b: Storage
    output_bytes: int = 2
    roundoff: float = 2.0**-8
    rounded: int = 0
    shifted: tuple[str, Storage] | None = None

    def with_zero_points(self) -> "Variant":
        assert self.shifted is not None
        operand, storage = self.shifted
        both = self._replace(rounded=2, shifted=None)
        return both._replace(a=storage) if operand == "a" else both._replace(b=storage)

    @property
    def depth(self) -> int:
        """K must be a multiple of it."""
        return max(self.a.block.k, self.b.block.k, 1)

    def misfit(self, name: str, k: int) -> str | None:
        """Why operands of so many numbers along K cannot be stored so, with the remedy; ``None`` when they can."""
        if k % self.depth == 0:
            return None
        padded = -(-k // self.depth) * self.depth
        return f"{name} has scales for every {self.depth} numbers along K, and k={k} is no multiple; pad K to {padded}"


class GemmFormat(NamedTuple):
    """How one format multiplies.

    ``pipe`` is the unit that multiplies it natively; ``variants`` by their scaling, the format's own first, under ``fixed``
    where there is no choice.  ``operand_roundoff`` is that of rounding the operands on the way in, where the hardware does it
    (TF32).
    """

    pipe: str
    variants: Mapping[str, Variant]
    accumulate: str = "fp32"
    operand_roundoff: float = 0.0

    @property
    def input_bytes(self) -> int:
        """Of one number of A, in whole bytes."""
        return -(-next(iter(self.variants.values())).a.bits // 8)

    @property
    def scalings(self) -> tuple[str, ...]:
        """What can be chosen; empty where the format has one way only."""
        return tuple(self.variants) if FIXED not in self.variants else ()


FIXED = "fixed"
NONE = "none"  # numbers as they are: int8 multiplied as integers
SCALINGS = (NONE, "tensor", "row", "block")
BF16 = Storage(16)


def _plain(pipe: str, bits: int, roundoff: float, accumulate: str = "fp32", operand_roundoff: float = 0.0) -> GemmFormat:
    numbers = Storage(bits)
    variant = Variant(numbers, numbers, output_bytes=bits // 8, roundoff=roundoff)
    return GemmFormat(pipe, {FIXED: variant}, accumulate, operand_roundoff)


def _fp8(a: str, b: str = "fp8_e4m3") -> GemmFormat:
    """With float32 scales, which are rounded into the numbers where those are converted to bf16."""
    blocks = {"tensor": (TENSOR, TENSOR), "row": (ROW, ROW), "block": (ROW_128, SQUARE_128)}
    variants = {
        name: Variant(Storage(8, a, of_a, scale_bytes=4), Storage(8, b, of_b, scale_bytes=4), rounded=2)
        for name, (of_a, of_b) in blocks.items()
    }
    # Both in one type, a scale of the tensor is applied to the sums, but on a GPU without fp8, which rounds it into the
    # numbers.  That is held to the same tolerance: 1200 verdicts of an Ampere target came to 0.0054 of 0.0085 at most.
    if a == b:
        variants["tensor"] = variants["tensor"]._replace(rounded=0)
    return GemmFormat("fp8", variants)


def _mx(pipe: str, bits: int, a: str, b: str) -> GemmFormat:
    """A power of two for every 32 numbers: bf16 holds what they are worth exactly."""
    of_a, of_b = (Storage(bits, name, Block(1, 32), scale_bytes=1) for name in (a, b))
    return GemmFormat(pipe, {FIXED: Variant(of_a, of_b)})


def _int8() -> GemmFormat:
    """Raw integers with an exact result in int32, or real quantisation with float32 scales and a result in bf16."""
    variants = {NONE: Variant(Storage(8), Storage(8), output_bytes=4, roundoff=0.0)}
    for block in (TENSOR, ROW):
        plain = Storage(8, "int8", block, scale_bytes=4)
        variants[block.name] = Variant(plain, plain, shifted=("a", plain._replace(zero_point_bytes=1)))
    return GemmFormat("int8", variants, "int32")


def _weight_only(b: Storage, rounded: int, shifted: Storage | None = None) -> GemmFormat:
    return GemmFormat("bf16", {FIXED: Variant(BF16, b, rounded=rounded, shifted=("b", shifted) if shifted else None)})


_NVFP4 = Storage(4, "nvfp4", Block(1, 16), scale_bytes=1, tensor_scale_bytes=4)
_W4 = Storage(4, "w4a16", Block(1, 128), scale_bytes=2)

FORMATS: dict[str, GemmFormat] = {
    "fp64": _plain("fp64", 64, 2.0**-53, "fp64"),
    "fp32": _plain("fp32", 32, 2.0**-24),
    "tf32": _plain("tf32", 32, 2.0**-24, operand_roundoff=2.0**-10),
    "bf16": _plain("bf16", 16, 2.0**-8),
    "fp16": _plain("fp16", 16, 2.0**-11),
    "int8": _int8(),
    "fp8_e4m3": _fp8("fp8_e4m3"),
    "fp8_e5m2": _fp8("fp8_e5m2"),
    "mxfp8_e4m3": _mx("fp8", 8, "mxfp8_e4m3", "mxfp8_e4m3"),
    "mxfp8_e5m2": _mx("fp8", 8, "mxfp8_e5m2", "mxfp8_e4m3"),
    "mxfp6_e2m3": _mx("fp6", 6, "mxfp6_e2m3", "mxfp6_e2m3"),
    "mxfp6_e3m2": _mx("fp6", 6, "mxfp6_e3m2", "mxfp6_e3m2"),
    "mxfp4": _mx("fp4", 4, "mxfp4", "mxfp4"),
    "nvfp4": GemmFormat("fp4", {FIXED: Variant(_NVFP4, _NVFP4, rounded=2)}),
    "w8a16": _weight_only(Storage(8, "w8a16", ROW, scale_bytes=2), rounded=1),
    "w4a16": _weight_only(_W4, rounded=1, shifted=_W4._replace(zero_point_bytes=1)),
    "mxfp4a16": _weight_only(Storage(4, "mxfp4", Block(1, 32), scale_bytes=1), rounded=0),
}
# The formats that today's devices and models share, measured where none are named.
USUAL = ("fp64", "fp32", "tf32", "bf16", "fp16", "int8", "fp8_e4m3")


def semantics_of(name: str, scaling: str, zero_point: bool) -> Items:
    """What a workload says of how its numbers are scaled; ``scaling`` is one of the format's, or ``fixed``.

    What a format has no choice of is not said: it is part of its name.
    """
    chosen = {"scaling": scaling} if scaling not in (FIXED, NONE) else {}
    shifted = {"zero_point": True} if zero_point else {}
    return items({"accumulate": FORMATS[name].accumulate, **chosen, **shifted})


def variant_of(workload: Workload) -> Variant:
    """How a workload's operands are stored; raises ``KeyError`` for a scaling that its format does not have.

    A workload that says nothing of its scaling has its format's own.
    """
    variants, semantics = FORMATS[workload.format].variants, dict(workload.semantics)
    scaling = semantics.get("scaling")
    variant = next(iter(variants.values())) if scaling is None else variants[str(scaling)]
    return variant.with_zero_points() if semantics.get("zero_point") else variant


def scalings_of(name: str, zero_points: tuple[bool, ...], asked: tuple[str | None, ...]) -> tuple[tuple[str, bool], ...]:
    """The scalings of a format among those asked for, each with and without zero points as asked, without repeats.

    What the format does not have leaves it as it is; ``None`` asks for its own.
    """
    fmt = FORMATS[name]
    own = next(iter(fmt.variants))
    fitting = [own if each is None else each for each in asked if each is None or each in fmt.variants] or [own]
    pairs = [(each, shift) for each in fitting for shift in zero_points]
    return tuple(dict.fromkeys((each, shift and fmt.variants[each].shifted is not None) for each, shift in pairs))
