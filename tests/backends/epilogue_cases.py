"""Cases of products that something follows, and launches of them that are wrong in one way."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

from backends.torch.gemm import a_view, b_view
from backends.torch.kernel import TorchKernel
from suite.case import Case, items
from suite.jobs.gemm import EPILOGUES
from suite.jobs.gemm.epilogue import NONE
from tests.backends.cases import gemm_case
from tests.backends.planted_bugs import BuggyKernel, planted

OFFERED = ("fp32", "tf32", "bf16", "fp16")
ON_CPU = ("fp32", "bf16", "fp16")
FOLLOWED = tuple(name for name in EPILOGUES if name != NONE)
WITH_BIAS = tuple(name for name in FOLLOWED if EPILOGUES[name].bias)
WITH_ACTIVATION = tuple(name for name in FOLLOWED if EPILOGUES[name].activation)

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "": lambda x: x,
    "relu": lambda x: x.clamp(min=0),
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + torch.exp(-x)),
}


def finished_case(
    format_name: str, epilogue: str, m: int, n: int, k: int, implementation: str = "library", **options: Any
) -> Case:
    case = gemm_case(format_name, m, n, k, **options)
    params = items({**dict(case.workload.params), **({} if epilogue == NONE else {"epilogue": epilogue})})
    return replace(case, workload=replace(case.workload, params=params), implementation=implementation)


def other(
    bias: Callable[[torch.Tensor], torch.Tensor], activation: Callable[[torch.Tensor], torch.Tensor]
) -> Callable[[TorchKernel], BuggyKernel]:
    """A kernel with another bias or activation than it should have; without a bias, of zeros in its place."""

    def wrap(kernel: TorchKernel) -> BuggyKernel:
        layout = str(kernel.describe()["layout"])

        def launch(real: TorchKernel, set_index: int) -> None:
            each = real.input_sets[set_index]
            a, b, *biases = (operand.data.to(torch.float64) for operand in each.operands)
            product = a_view(a, layout) @ b_view(b, layout)
            each.output.copy_(activation(product + bias(biases[0] if biases else product.new_zeros(product.shape[1]))))

        return planted(launch)(kernel)

    return wrap


def as_it_is(numbers: torch.Tensor) -> torch.Tensor:
    return numbers


def gelu_by_erf(numbers: torch.Tensor) -> torch.Tensor:
    return functional.gelu(numbers)
