"""Plain and quantised matrix products as they are launched, on tensors without memory."""

from functools import partial
from typing import Any

import torch

from backends.targets.made import Made, empty
from backends.targets.refused import refuse
from backends.torch.data import Operand
from backends.torch.gemm.operands import allocate, quantised_formats
from backends.torch.target import Target
from backends.triton.gemm.call import Matrices, call
from backends.triton.gemm.config import default
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers
from backends.triton.gemm.port import emulation, reason
from backends.triton.gemm.problem import Problem
from backends.triton.quantised.port import reason as quantised_reason
from backends.triton.quantised.problem import Problem as QuantisedProblem
from backends.triton.quantised.product import product_of
from suite.case import Workload, items

META = torch.device("meta")
STORED = {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16", "i8": "int8", "i32": "int32", "fp8e4nv": "fp8_e4m3"}


def plain(device: Device, **given: Any) -> Made:
    """By the configuration that the model of the device chooses; ``given`` makes a ``Problem``."""
    problem = Problem(**given)
    refuse(reason(problem, {}, device))
    config = default(problem, device)
    return Made([config], lambda each: [call(problem, each, device, matrices(problem))], emulation=_emulation(problem.format))


def matrices(problem: Problem) -> Matrices:
    """Operands, result and scales of one input set."""
    numbers = problem.numbers
    a_shape = (problem.k, problem.m) if problem.a_transposed else (problem.m, problem.k)
    b_shape = (problem.n, problem.k) if problem.b_transposed else (problem.k, problem.n)
    a, b = (empty(*shape, kind=STORED[numbers.operand]) for shape in (a_shape, b_shape))
    scales = (empty(1), empty(1)) if problem.scales == "tensor" else (empty(problem.m, 1), empty(1, problem.n))
    own = scales if problem.scales != "none" else (None, None)
    return Matrices(a, b, empty(problem.m, problem.n, kind=STORED[numbers.output]), *own)


def quantised(device: Device, scaling: str = "", by: str = "", **given: Any) -> Made:
    """By the first configuration of the model; passes that convert operands come before it.  ``by`` gluon is for Hopper."""
    problem, gluon = QuantisedProblem(**given), by == "gluon"
    refuse(quantised_reason(problem, {}, device, gluon))
    product = product_of(problem, device, [buffers(problem, scaling)], gluon)
    return Made(product.configs()[:1], lambda config: product.calls(config)[0], emulation=product.emulation)


def buffers(problem: QuantisedProblem, scaling: str = "") -> Buffers:
    """Operands as a backend allocates them, in a format's own storage."""
    semantics: dict[str, Any] = {"zero_point": True} if problem.zero_point else {"scaling": scaling} if scaling else {}
    sizes: dict[str, Any] = {"m": problem.m, "n": problem.n, "k": problem.k, "layout": "nt"}
    workload = Workload("gemm", problem.format, items(sizes), "normal", items(semantics))
    # Hopper's encoding is OCP's, which is what these kernels read wherever they run.
    a_format, b_format = quantised_formats(workload, Target(META, "cuda", {}, {}, "sm_90"))
    a: Operand = allocate(a_format, torch.bfloat16, (problem.m, problem.k), META)
    b: Operand = allocate(b_format, torch.bfloat16, (problem.n, problem.k), META)
    return Buffers(a, b, empty(problem.m, problem.n, kind="bf16"))


def to_bf16(device: Device, **given: Any) -> Made:
    """The pass that converts an operand of mxfp8, by itself."""
    made = quantised(device, **given)
    return Made(made.configs, lambda config: made.calls(config)[:1])


def _emulation(format_name: str) -> "partial[str]":
    return partial(emulation, format_name=format_name)
