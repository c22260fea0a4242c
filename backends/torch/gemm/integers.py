"""int8 through ``torch._int_mm``: exact sums in int32, and what scales make of them."""

from functools import partial
from typing import Any

import torch

from backends.torch.data import Operand
from backends.torch.gemm.operands import quantised_of
from backends.torch.gemm.sizes import Sizes, a_view, b_view, transposed
from backends.torch.gemm.way import Bind, Launch, Task, Way, multiples

INT_MM = "torch._int_mm"
SUMS_BYTES = 8  # of an element of the product: int32, then fp32


def raw(kind: str) -> Way:
    """Integers by integers."""
    return Way(INT_MM, _library(kind), _raw, _refuses(kind))


def scaled(kind: str) -> Way:
    """The same sums, times the scales of rows or tensors, to bf16."""
    return Way(f"{INT_MM}, then scales", _library(kind), _scaled, _refuses(kind), passing_bytes=_sums_bytes)


def _sums_bytes(sizes: Sizes) -> int:
    return SUMS_BYTES * sizes.m * sizes.n


def _library(kind: str) -> str:
    if kind == "cuda":
        return "cuBLASLt"
    return "oneDNN" if torch.backends.mkldnn.is_available() else "torch's own BLAS"


def _refuses(kind: str) -> Any:
    return _refused_on_cuda if kind == "cuda" else (lambda sizes: None)


def _refused_on_cuda(sizes: Sizes) -> str | None:
    if sizes.m <= 16:
        return f"{INT_MM} takes more than 16 rows, not m={sizes.m}; pad to m=17"
    return multiples(INT_MM, 8, n=sizes.n, k=sizes.k)


def _raw(task: Task) -> Bind:
    layout = task.sizes.layout

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        return partial(torch._int_mm, a_view(a.data, layout), b_view(b.data, layout), out=output)

    return bind


def _scaled(task: Task) -> Bind:
    """Sums, and what they are worth in fp32, are in scratch that all input sets share."""
    shape = (task.sizes.m, task.sizes.n)
    sums = torch.empty(shape, dtype=torch.int32, device=task.device)
    worth = torch.empty(shape, dtype=torch.float32, device=task.device)

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        a_scales, b_scales = quantised_of(a).scales, quantised_of(b).scales.t()
        columns = transposed(b.data)

        def launch() -> None:
            torch._int_mm(a.data, columns, out=sums)
            torch.mul(sums, a_scales, out=worth)
            torch.mul(worth, b_scales, out=output)

        return launch

    return bind
