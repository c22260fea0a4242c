"""Epilogues of a product on torch devices: their numbers, what they should give, and how the library computes them.

Numbers of B are drawn as a layer's weights are: divided by the power of two nearest the size of a sum of k terms, so that what
an activation takes is of order one, where its curve is, and a bias counts.  Every number keeps its digits, and with them the
power that it takes; only in fp16 can some become subnormal.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch.nn import functional

from backends.torch.data import Operand
from backends.torch.gemm.product import Product
from backends.torch.gemm.sizes import Sizes, a_view, b_view
from backends.torch.gemm.way import Launch
from backends.torch.target import Target
from suite.jobs.gemm.epilogue import Epilogue

BLOCK_ELEMENTS = 1 << 22  # of an operand in float64, or of a part of the product: three of them are held at a time
FUSED, SEPARATE = "fused", "separate launches"

Elementwise = Callable[[torch.Tensor], torch.Tensor]
ACTIVATIONS: dict[str, Elementwise] = {
    "": lambda x: x,
    "relu": functional.relu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
}
IN_PLACE: dict[str, Elementwise] = {
    "relu": torch.relu_,
    "gelu_tanh": partial(torch.ops.aten.gelu_.default, approximate="tanh"),
    "silu": partial(functional.silu, inplace=True),
}
# What a check cannot tell from a right result, beside what it cannot of the product alone: zeros stay zeros, and the constant
# is positive and the same in every column.
NO_BIAS, OTHER_BIAS, NO_ACTIVATION = "a bias left out", "a bias of another column", "an activation left out"


def blind_spots(epilogue: Epilogue, distribution: str) -> list[str]:
    """What a check cannot see of an epilogue on such data."""
    of_bias = {"zeros": [NO_BIAS, OTHER_BIAS], "constant": [OTHER_BIAS]}.get(distribution, []) if epilogue.bias else []
    unseen = distribution == "zeros" or (distribution == "constant" and epilogue.activation == "relu")
    return [*of_bias, *([NO_ACTIVATION] if epilogue.activation and unseen else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights(Operand):
    """B of a product over ``k`` terms that an epilogue follows."""

    k: int

    def refill(self, distribution: str, seed: int) -> None:
        Operand.refill(self, distribution, seed)
        self.data.mul_(weight_factor(self.k, distribution))


def weight_factor(k: int, distribution: str) -> float:
    """The power of two that numbers are drawn times: terms of a constant add up, others cancel."""
    return 2.0 ** -round(math.log2(k if distribution == "constant" else math.sqrt(k)))


class Finished:
    """The contract ``backends.torch.kernel.Formula``: the float64 product of the operands as stored, with its epilogue.

    Tiles are computed on the host.  Behind an activation a projection needs each element: they are computed on the device, in
    float64, whose products are not those that are judged.
    """

    def __init__(self, layout: str, epilogue: Epilogue) -> None:
        self._layout, self._epilogue = layout, epilogue
        self._product = Product(layout)

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        product = self._product.tile(operands[:2], row, column, rows, columns)
        return self._after(product, operands, slice(column, column + columns))

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        if self._epilogue.activation:
            return self._project_elements(operands, vector)
        projection = self._product.project(operands[:2], vector)
        return projection + torch.dot(_bias_of(operands), vector) if self._epilogue.bias else projection

    def expected_size(self, operands: Sequence[Operand], rows: int, columns: int) -> float:
        """Of what goes into the activation: no slope is far above 1, so that its rounding is what comes out."""
        size = self._product.expected_size(operands[:2], rows, columns)
        return math.hypot(size, float(_bias_of(operands).square().mean().sqrt())) if self._epilogue.bias else size

    def _project_elements(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        a, b = a_view(operands[0].data, self._layout), b_view(operands[1].data, self._layout)
        step = max(1, min(math.isqrt(BLOCK_ELEMENTS), BLOCK_ELEMENTS // a.shape[1]))
        projection = vector.new_zeros(a.shape[0])
        for column in range(0, b.shape[1], step):
            of_b = b[:, column : column + step].to(torch.float64)
            signs = vector[column : column + step]
            for row in range(0, a.shape[0], step):
                product = a[row : row + step].to(torch.float64) @ of_b
                elements = self._after(product, operands, slice(column, column + step))
                projection[row : row + step].addmv_(elements, signs)
        return projection

    def _after(self, product: torch.Tensor, operands: Sequence[Operand], columns: slice) -> torch.Tensor:
        if self._epilogue.bias:
            product = product + _bias_of(operands)[columns].to(product.device)
        return ACTIVATIONS[self._epilogue.activation](product)


def _bias_of(operands: Sequence[Operand]) -> torch.Tensor:
    return operands[2].data.to(torch.float64)


class Bound(NamedTuple):
    """How the library computes a product with an epilogue, and how many times it writes the product to read it again: never
    where one launch computes all of it.
    """

    call: str
    passes: int
    bind: Callable[[Sequence[Operand], torch.Tensor], Launch]


def told_of(passes: int) -> str:
    """What a description says of an epilogue by how often the product passes through memory."""
    return SEPARATE if passes else FUSED


def by_library(epilogue: Epilogue, sizes: Sizes, target: Target) -> Bound:
    """Launches allocate nothing."""
    if not (epilogue.bias and fuses(sizes, target)):
        return _separate(epilogue, sizes.layout)
    if not epilogue.activation:
        return Bound("torch.addmm", 0, partial(_addmm, sizes.layout))
    gelu = epilogue.activation == "gelu_tanh"
    return Bound("torch._addmm_activation", 0, partial(_addmm_activation, sizes.layout, gelu))


def fuses(sizes: Sizes, target: Target) -> bool:
    """When torch hands bias and activation to cuBLASLt: by ``isInputCompliesAddmmCudaLt`` in ATen's ``cuda/Blas.cpp``.

    Elsewhere the same calls copy the bias into the output first, and activations follow as launches of their own; on a CPU
    GELU is then that by erf.
    """
    by_cublaslt = target.kind == "cuda" and torch.version.hip is None and os.environ.get("DISABLE_ADDMM_CUDA_LT") != "1"
    return by_cublaslt and min(sizes.m, sizes.n, sizes.k) > 1


def _addmm(layout: str, operands: Sequence[Operand], output: torch.Tensor) -> Launch:
    a, b, bias = operands
    return partial(torch.addmm, bias.data, a_view(a.data, layout), b_view(b.data, layout), out=output)


def _addmm_activation(layout: str, gelu: bool, operands: Sequence[Operand], output: torch.Tensor) -> Launch:
    a, b, bias = operands
    factors = a_view(a.data, layout), b_view(b.data, layout)
    return partial(torch.ops.aten._addmm_activation.out, bias.data, *factors, use_gelu=gelu, out=output)


def _separate(epilogue: Epilogue, layout: str) -> Bound:
    def bind(operands: Sequence[Operand], output: torch.Tensor) -> Launch:
        factors = a_view(operands[0].data, layout), b_view(operands[1].data, layout)
        calls: list[Launch] = [partial(torch.mm, *factors, out=output)]
        if epilogue.bias:
            calls.append(partial(output.add_, operands[2].data))
        if epilogue.activation:
            calls.append(partial(IN_PLACE[epilogue.activation], output))

        def launch() -> None:
            for call in calls:
                call()

        return launch

    names = ["torch.mm", *(["add_"] if epilogue.bias else []), *([epilogue.activation] if epilogue.activation else [])]
    return Bound(", then ".join(names), epilogue.steps, bind)
