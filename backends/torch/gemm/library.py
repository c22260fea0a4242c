"""Which way through a library a format takes on a device.

``torch.mm`` for floating point, ``torch._int_mm`` for int8, torch's scaled products for fp8 and formats with blocks where a
library takes them as they are stored (``scaled``), its own kernels for integer weights (``weight_only``).  What no library
takes is converted to bf16 in every launch, and multiplied there.
"""

from functools import partial
from typing import NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm import integers, scaled, scaled_hip, weight_only
from backends.torch.gemm.operands import quantised_formats, quantised_of
from backends.torch.gemm.sizes import Sizes, a_view, b_view, transposed
from backends.torch.gemm.way import CONVERTED, Bind, Launch, Task, Way
from backends.torch.gemm.widen import Convert, Widener
from backends.torch.hip_target import HIPBLASLT, preferred_blas
from backends.torch.quantise.consumable import consumable
from backends.torch.quantise.formats import Format
from backends.torch.target import Target
from suite.case import Workload
from suite.jobs.emulation import pipe_on_a_cpu
from suite.jobs.fp8 import OCP

WIDE_BYTES = 2
HIP_NAMES = {"cuBLASLt": HIPBLASLT}


def way_of(workload: Workload, target: Target) -> Way:
    """How the product goes; its format is one that the target is not said to miss."""
    way = _way_of(workload, target)
    if target.kind == "cpu" and way.emulation:
        way = way._replace(pipe=_pipe_on_a_cpu(workload, target))
    return way._replace(library=HIP_NAMES.get(way.library, way.library)) if target.is_amd else way


def _way_of(workload: Workload, target: Target) -> Way:
    a, b = quantised_formats(workload, target)
    if a is None and b is None:
        return _plain(workload, target)
    why = _not_as_stored(a, b, target)
    if why is not None:
        return _widened(why, a, b, target)
    if a is None:
        return weight_only.way(workload.format, "hip" if target.is_amd else target.kind)
    if a.name == "int8":
        return integers.scaled(target.kind)
    return scaled_hip.quantised_scales(a) if target.is_amd else scaled.quantised_scales(a, target.architecture)


def _plain(workload: Workload, target: Target) -> Way:
    """Formats whose operands carry one scale at most."""
    if workload.format == "int8":
        return integers.raw(target.kind)
    if workload.format != "fp8_e4m3":
        return Way("torch.mm", _blas(workload.format, target), _mm)
    if target.kind == "cuda":
        return scaled.tensor_scales()
    return Way(
        "torch.addmm on bf16 copies",
        _blas("bf16", target),
        _upcast,
        emulation=target.emulated["fp8_e4m3"] + _bf16(target)[1],
        passing_bytes=_both_wide,
    )


def _pipe_on_a_cpu(workload: Workload, target: Target) -> str | None:
    """By the table that plans go by."""
    pipe = pipe_on_a_cpu("cpu", workload)
    return _bf16(target)[0] if pipe == "bf16" else pipe


def _bf16(target: Target) -> tuple[str, str]:
    """The unit that multiplies bf16, and what is to be said of it where that is not bf16's own."""
    how = target.emulated.get("bf16")
    return ("bf16", "") if how is None else ("fp32", f"; bf16 {how}")


def _not_as_stored(a: Format | None, b: Format | None, target: Target) -> str | None:
    """Why no library multiplies operands in these formats as they are stored."""
    assert b is not None
    if a is None and b.name not in weight_only.TAKEN:
        return "no library multiplies bf16 by weights in this format"
    for each in (b,) if a is None else (a, b):
        shifted = each.scaling.zero_point_dtype is not None
        encoding = target.encoding(each.name) or OCP
        why = consumable(each.name, each.block.name, target.architecture, zero_point=shifted, library=True, encoding=encoding)
        if why is not None:
            return why.partition(";")[0]
    if a is None or a.name == "int8":
        return None
    return scaled.not_offered(a, b) or (scaled_hip.not_offered(a) if target.is_amd else None)


def _widened(why: str, a: Format | None, b: Format | None, target: Target) -> Way:
    passing = partial(_wide_bytes, a is not None, b is not None)
    pipe, of_bf16 = _bf16(target)
    return Way(
        "torch.mm on bf16 copies",
        _blas("bf16", target),
        partial(_through_bf16, a, b),
        emulation=f"{CONVERTED}: {why}{of_bf16}",
        pipe=pipe,
        passing_bytes=passing,
    )


def _wide_bytes(a: bool, b: bool, sizes: Sizes) -> int:
    return WIDE_BYTES * (a * sizes.m + b * sizes.n) * sizes.k


def _both_wide(sizes: Sizes) -> int:
    return _wide_bytes(True, True, sizes)


def _blas(format_name: str, target: Target) -> str:
    """The library that torch hands a product of floating-point numbers to."""
    if target.is_amd:
        return preferred_blas()
    if target.kind == "cuda":
        return f"cuBLAS (preferred: {str(torch.backends.cuda.preferred_blas_library()).rpartition('.')[2]})"
    if format_name in ("fp32", "fp64") and torch.backends.mkl.is_available():
        return "MKL"
    return "oneDNN" if torch.backends.mkldnn.is_available() else "torch's own BLAS"


def _mm(task: Task) -> Bind:
    layout = task.sizes.layout

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        return partial(torch.mm, a_view(a.data, layout), b_view(b.data, layout), out=output)

    return bind


def _upcast(task: Task) -> Bind:
    """fp8 on a CPU: convert both operands into shared bf16 scratch, then a scaled bf16 matmul; torch's fp8 call loops there."""
    sizes = task.sizes
    a_wide = torch.empty(sizes.a_shape, dtype=torch.bfloat16, device=task.device)
    b_wide = torch.empty(sizes.b_shape, dtype=torch.bfloat16, device=task.device)

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        def launch() -> None:
            assert a.scale is not None
            assert b.scale is not None
            a_wide.copy_(a.data)
            b_wide.copy_(b.data)
            factors = (a_view(a_wide, sizes.layout), b_view(b_wide, sizes.layout))
            torch.addmm(output, *factors, beta=0, alpha=float(a.scale) * float(b.scale), out=output)

        return launch

    return bind


def _through_bf16(a_format: Format | None, b_format: Format | None, task: Task) -> Bind:
    """Both operands with what they carry into bf16 scratch that all input sets share, then a bf16 matmul."""
    a_side, b_side = _Side(a_format, task.sizes.a_shape, task.device), _Side(b_format, task.sizes.b_shape, task.device)

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        a_wide, b_wide = a_side.bind(a), b_side.bind(b)
        multiply = partial(torch.mm, a_wide.numbers, transposed(b_wide.numbers), out=output)
        calls: tuple[Launch, ...] = (*a_wide.conversions, *b_wide.conversions, multiply)

        def launch() -> None:
            for call in calls:
                call()

        return launch

    return bind


class _Wide(NamedTuple):
    """An operand in bf16, and what has to be done before each product for it to be there."""

    numbers: torch.Tensor
    conversions: tuple[Convert, ...] = ()


class _Side:
    """One operand of a product in bf16, with scratch where it is stored otherwise."""

    def __init__(self, format_: Format | None, shape: tuple[int, int], device: torch.device) -> None:
        self._widener = Widener(format_, shape, device) if format_ is not None else None
        self._scratch = torch.empty(shape if format_ is not None else (0, 0), dtype=torch.bfloat16, device=device)

    def bind(self, operand: Operand) -> _Wide:
        if self._widener is None:
            return _Wide(operand.data)
        return _Wide(self._scratch, (self._widener.bind(quantised_of(operand), self._scratch),))
