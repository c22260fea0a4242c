"""fp8, mxfp8 and fp4 as they are stored, through torch's scaled products.

Torch hands them to cuBLASLt, but mxfp4 to MSLK, and fp8 with scales of rows to a CUTLASS kernel of its own, except on sm_90
with a cuBLASLt of 12.9 or later.  What they take, and how scales must lie, is by ATen's ``ScaledBlas.cpp`` and the cuBLAS
documentation, "Narrow Precision Data Types Usage".  Scales in another order than the quantiser's are written into it when the
data is, not in a launch: whoever quantises for these products stores them so.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.operands import arranged_by, quantised_of
from backends.torch.gemm.sizes import Sizes, a_view, b_view
from backends.torch.gemm.way import Bind, Launch, Task, Way, multiples
from backends.torch.quantise.blocks import ROW, ROW_128
from backends.torch.quantise.formats import Format
from backends.torch.quantise.quantised import Quantised
from backends.torch.quantise.swizzle import swizzle, swizzled_bytes

SCALED_MM, SCALED_MM_BLOCKS = "torch._scaled_mm", "torch._scaled_mm_v2"
CUBLASLT, MSLK, CUTLASS = "cuBLASLt", "MSLK", "torch's CUTLASS kernel"
STEP = 16  # of n and k, in every scaled product
PACKED_STEP = 32  # of k where two numbers share a byte: rows of 16 bytes
# cuBLASLt pads scales to fours: of 1x128 blocks along the rows, of 128x128 ones along K.  Torch has the former without padding.
PADDED = 4

# Torch's recipes for scales of blocks take E4M3 on both sides.
ONLY_E4M3 = {"fp8_e5m2": "torch scales blocks of E4M3 only", "mxfp8_e5m2": "torch multiplies mxfp8 of E4M3 only"}


class Recipe(NamedTuple):
    """Numbers of torch's ``ScalingType`` and ``SwizzleType``, one for each level of scales."""

    scaling: list[int]
    swizzle: list[int]


PLAIN, SWIZZLED = 0, 1
RECIPES = {
    "1x128": Recipe([4], [PLAIN]),
    "128x128": Recipe([5], [PLAIN]),
    "1x32": Recipe([3], [SWIZZLED]),
    "1x16": Recipe([2, 0], [SWIZZLED, PLAIN]),
}


def not_offered(a: Format, b: Format) -> str | None:
    """Why torch has no call for two formats that the device takes; ``None`` when it has."""
    if not a.block.k:
        return None
    if a.name in ONLY_E4M3:
        return ONLY_E4M3[a.name]
    return None if hasattr(torch, "_scaled_mm_v2") else f"torch {torch.__version__} has no {SCALED_MM_BLOCKS}"


def tensor_scales() -> Way:
    """fp8 with one scale a tensor, in plain operands."""
    return Way(SCALED_MM, CUBLASLT, _tensor_scaled, _refused_in_any_layout)


def quantised_scales(a: Format, architecture: str) -> Way:
    """fp8 with one scale a tensor or row, or numbers with a scale for each block; ``architecture`` is such as ``sm_90``."""
    library = _library(a, architecture)
    if not a.block.k:
        return by_rows(library)
    if a.element.bits == 4:
        return Way(SCALED_MM_BLOCKS, library, _in_blocks, _refused_packed)
    return Way(SCALED_MM_BLOCKS, library, _in_blocks, _refused_rows if a.block == ROW_128 else _refused_blocks)


def by_rows(library: str) -> Way:
    """fp8 with one scale a tensor or row."""
    return Way(SCALED_MM, library, _by_rows, partial(_refused, SCALED_MM))


def _library(a: Format, architecture: str) -> str:
    """Whom torch hands the product to; which one scales rows on sm_90 depends on the versions it was built and runs with."""
    if a.name == "mxfp4":
        return MSLK
    if a.block != ROW:
        return CUBLASLT
    return f"{CUBLASLT} or {CUTLASS}" if architecture == "sm_90" else CUTLASS


def _refused(call: str, sizes: Sizes) -> str | None:
    return multiples(call, STEP, n=sizes.n, k=sizes.k)


def _refused_blocks(sizes: Sizes) -> str | None:
    return _refused(SCALED_MM_BLOCKS, sizes)


def _refused_rows(sizes: Sizes) -> str | None:
    call = f"{SCALED_MM_BLOCKS} with scales of 1x128 blocks"
    return multiples(call, PADDED, m=sizes.m) or _refused_blocks(sizes)


def _refused_packed(sizes: Sizes) -> str | None:
    call = f"{SCALED_MM_BLOCKS} with two numbers a byte"
    return _refused_blocks(sizes) or multiples(call, PACKED_STEP, k=sizes.k)


def _refused_in_any_layout(sizes: Sizes) -> str | None:
    if sizes.layout != "nt":
        return f"{SCALED_MM} takes both operands with K contiguous (layout nt), not layout {sizes.layout}"
    return _refused(SCALED_MM, sizes)


def _tensor_scaled(task: Task) -> Bind:
    layout = task.sizes.layout

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        return _scaled_mm(task, a_view(a.data, layout), b_view(b.data, layout), a.scale, b.scale, output)

    return bind


def _by_rows(task: Task) -> Bind:
    """Scales of A are m x 1, of B 1 x n; of a tensor they are one number."""

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        of_a, of_b = quantised_of(a), quantised_of(b)
        of_tensor = not any(of_a.format.block)
        scales = (each.scales.view(()) if of_tensor else each.scales for each in (of_a, of_b))
        a_scale, b_scale = scales
        return _scaled_mm(task, a.data, b.data.t(), a_scale, b_scale if of_tensor else b_scale.t(), output)

    return bind


def _scaled_mm(task: Task, a: torch.Tensor, b: torch.Tensor, a_scale: Any, b_scale: Any, output: torch.Tensor) -> Launch:
    return partial(
        torch._scaled_mm,
        a,
        b,
        scale_a=a_scale,
        scale_b=b_scale,
        out_dtype=output.dtype,
        use_fast_accum=task.precision.fp8_fast_accum,
        out=output,
    )


def _in_blocks(task: Task) -> Bind:
    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        of_a, of_b = _arranged(a), _arranged(b)
        recipe_a, recipe_b = (RECIPES[quantised_of(each).format.block.name] for each in (a, b))
        return partial(
            torch.ops.aten._scaled_mm_v2.out,
            a.data,
            b.data.t(),
            of_a,
            *recipe_a,
            of_b,
            *recipe_b,
            None,
            output.dtype,
            out=output,
        )

    return bind


def _arranged(operand: Operand) -> list[torch.Tensor]:
    """Scales in the library's order, kept so from refill to refill."""
    quantised = quantised_of(operand)
    order: Callable[[Quantised], tuple[torch.Tensor, Callable[[], Any]]] = {
        "1x128": _row_blocks,
        "128x128": _square_blocks,
    }.get(quantised.format.block.name, _tiles)
    scales, arrange = order(quantised)
    arranged_by(operand, arrange)
    return [scales] if quantised.tensor_scale is None else [scales, quantised.tensor_scale]


def _row_blocks(quantised: Quantised) -> tuple[torch.Tensor, Callable[[], Any]]:
    """Rows x K blocks with the rows contiguous."""
    turned = torch.empty_like(quantised.scales.t(), memory_format=torch.contiguous_format)
    return turned.t(), lambda: turned.copy_(quantised.scales.t())


def _square_blocks(quantised: Quantised) -> tuple[torch.Tensor, Callable[[], Any]]:
    """K blocks, padded to a multiple of four, x blocks along the rows, with the former contiguous."""
    along_rows, along_k = quantised.scales.shape
    padded = quantised.scales.new_zeros(along_rows, -(-along_k // PADDED) * PADDED)
    return padded.t(), lambda: padded[:, :along_k].copy_(quantised.scales)


def _tiles(quantised: Quantised) -> tuple[torch.Tensor, Callable[[], Any]]:
    """Tiles of 128 rows x 4 blocks, one after the other."""
    size = swizzled_bytes(*quantised.scales.shape)
    line = torch.empty(size, dtype=torch.uint8, device=quantised.scales.device)
    return line.view(quantised.scales.dtype), lambda: line.copy_(swizzle(quantised.scales).view(torch.uint8))
