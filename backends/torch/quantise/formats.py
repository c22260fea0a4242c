"""The formats by name: which element in which blocks with which scales.

``format_of`` finds one.  A format's ``name`` is a rung of the precision ladder; ``block`` says what shares a scale.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch

from backends.torch.quantise.blocks import ROW, ROW_128, SQUARE_128, TENSOR, Block
from backends.torch.quantise.elements import E2M1, E2M3, E3M2, E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, SmallFloat
from backends.torch.quantise.fp8 import Float32Scaling
from backends.torch.quantise.integers import INT4, INT8, INT8_SHIFTED, UINT4, Integer, ShiftedScaling, SymmetricScaling
from backends.torch.quantise.mx import PowerOfTwoScaling
from backends.torch.quantise.nvfp4 import TwoLevelScaling
from backends.torch.quantise.packing import packed_columns
from backends.torch.quantise.scaling import ErrorBound, Scaling
from suite.errors import UsageError, nearest
from suite.jobs.fp8 import FNUZ, OCP

MX_BLOCK = Block(1, 32)
NVFP4_BLOCK = Block(1, 16)
INT4_GROUP = Block(1, 128)


class StoredBytes(NamedTuple):
    """What a quantised matrix takes, part by part."""

    elements: int
    scales: int
    zero_points: int
    tensor_scale: int

    @property
    def total(self) -> int:
        return sum(self)


@dataclass(frozen=True, slots=True)
class Format:
    """One way of storing a matrix of rows x k numbers."""

    name: str
    block: Block
    element: SmallFloat | Integer
    scaling: Scaling
    has_tensor_scale: bool = False

    @property
    def title(self) -> str:
        """Name, block, zero point and FNUZ in a few words, different for every format."""
        beside = " with zero point" if self.scaling.zero_point_dtype else " in FNUZ" if self.element in FNUZ_ELEMENTS else ""
        return f"{self.name} {self.block.name}{beside}"

    @property
    def bound(self) -> ErrorBound:
        return self.scaling.bound

    def misfit(self, rows: int, k: int) -> str | None:
        """Why a matrix of rows x k cannot be stored so, with the remedy; ``None`` when it can."""
        if rows < 1 or k < 1:
            return f"a matrix of {rows} x {k} has no numbers; give sizes of at least 1"
        width = self.block.k
        if width and k % width:
            return f"{self.title} needs a multiple of {width} along K, not k={k}; pad K to {-(-k // width) * width}"
        return None

    def stored_bytes(self, rows: int, k: int) -> StoredBytes:
        """Bytes of a matrix that fits."""
        blocks = _product(self.block.grid(rows, k))
        zero_point_dtype = self.scaling.zero_point_dtype
        return StoredBytes(
            elements=rows * packed_columns(k, self.element.bits),
            scales=blocks * int(self.scaling.dtype.itemsize),
            zero_points=blocks * int(zero_point_dtype.itemsize) if zero_point_dtype else 0,
            tensor_scale=int(torch.float32.itemsize) if self.has_tensor_scale else 0,
        )


def _product(grid: tuple[int, int]) -> int:
    return grid[0] * grid[1]


class Family(NamedTuple):
    """A name's blocks, the usual one first, and how formats of it are made; ``shifted`` those with a zero point."""

    blocks: tuple[Block, ...]
    plain: Callable[[str, Block], Format]
    shifted: Callable[[str, Block], Format] | None = None


def _fp8(element: SmallFloat) -> Family:
    return Family((TENSOR, ROW, ROW_128, SQUARE_128), lambda name, block: Format(name, block, element, Float32Scaling(element)))


def _mx(element: SmallFloat) -> Family:
    return Family((MX_BLOCK,), lambda name, block: Format(name, block, element, PowerOfTwoScaling(element)))


def _nvfp4() -> Family:
    return Family((NVFP4_BLOCK,), lambda name, block: Format(name, block, E2M1, TwoLevelScaling(), has_tensor_scale=True))


def _integer(blocks: tuple[Block, ...], scale_dtype: torch.dtype, symmetric: Integer, shifted: Integer | None = None) -> Family:
    def plain(name: str, block: Block) -> Format:
        return Format(name, block, symmetric, SymmetricScaling(symmetric, scale_dtype))

    def with_zero_point(name: str, block: Block) -> Format:
        assert shifted is not None
        return Format(name, block, shifted, ShiftedScaling(shifted, scale_dtype, shifted.dtype))

    return Family(blocks, plain, with_zero_point if shifted else None)


FAMILIES: Mapping[str, Family] = {
    "fp8_e4m3": _fp8(E4M3),
    "fp8_e5m2": _fp8(E5M2),
    "mxfp8_e4m3": _mx(E4M3),
    "mxfp8_e5m2": _mx(E5M2),
    "mxfp6_e2m3": _mx(E2M3),
    "mxfp6_e3m2": _mx(E3M2),
    "mxfp4": _mx(E2M1),
    "nvfp4": _nvfp4(),
    "int8": _integer((TENSOR, ROW), torch.float32, INT8, INT8_SHIFTED),
    "w8a16": _integer((ROW,), torch.bfloat16, INT8),
    "w4a16": _integer((INT4_GROUP,), torch.bfloat16, INT4, UINT4),
}


# Formats of blocks that MX defines have OCP's elements on every device.
IN_FNUZ: Mapping[str, Family] = {"fp8_e4m3": _fp8(E4M3_FNUZ), "fp8_e5m2": _fp8(E5M2_FNUZ)}
FNUZ_ELEMENTS = (E4M3_FNUZ, E5M2_FNUZ)


def format_of(name: str, block: str | None = None, *, zero_point: bool = False, encoding: str = OCP) -> Format:
    """The format of this name; ``block`` is ``tensor``, ``row`` or rows x k as in ``1x128``, the usual one if left out.

    ``encoding`` is of plain fp8 numbers: ``OCP`` or ``FNUZ``.

    Raises ``UsageError`` for a name, a block or a zero point that there is not.
    """
    if name not in FAMILIES:
        by_element = [each for each in FAMILIES if each.startswith(f"{name}_")]
        remedy = f"; name its elements: {' or '.join(by_element)}" if by_element else nearest(name, FAMILIES)
        raise UsageError(f"unknown number format '{name}'{remedy}")
    family = IN_FNUZ.get(name, FAMILIES[name]) if encoding == FNUZ else FAMILIES[name]
    offered = {each.name: each for each in family.blocks}
    if block is not None and block not in offered:
        raise UsageError(f"{name} has no blocks of {block}, only {' or '.join(offered)}{_other_formats(block)}")
    if zero_point and family.shifted is None:
        others = ", ".join(other for other, each in FAMILIES.items() if each.shifted is not None)
        raise UsageError(f"{name} has no zero point; leave it out, or take one of {others}")
    make = family.shifted if zero_point and family.shifted else family.plain
    return make(name, family.blocks[0] if block is None else offered[block])


def every_format() -> tuple[Format, ...]:
    """Each name with each of its blocks, then with a zero point where there is one."""
    made = []
    for name, family in FAMILIES.items():
        for make in filter(None, (family.plain, family.shifted)):
            made += [make(name, block) for block in family.blocks]
    return tuple(made)


def _other_formats(block: str) -> str:
    names = [name for name, family in FAMILIES.items() if block in (each.name for each in family.blocks)]
    return f"; blocks of {block} have {', '.join(names)}" if names else ""
