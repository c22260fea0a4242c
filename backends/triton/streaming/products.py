"""The products of one kind of matrix as a kernel of the suite: plain weights streamed, an input set for each matrix."""

from importlib.metadata import version
from typing import Any

import torch

from backends.torch.data import Operand
from backends.torch.gemm.product import Product as Formula
from backends.torch.gemm.sizes import Sizes as GemmSizes
from backends.torch.kernel import InputSet, TorchKernel
from backends.torch.precision import Precision
from backends.torch.target import FORMATS
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Load, load
from backends.triton.streaming.call import Operands
from backends.triton.streaming.port import Maker, emulation, passing_bytes
from backends.triton.streaming.problem import Problem
from backends.triton.streaming.problem import reason as problem_reason
from suite.case import Case
from suite.jobs.decode_step import Product, sizes_of
from suite.jobs.decode_step.formats import LAYOUT, as_gemm
from suite.jobs.emulation import PASSING_BYTES


def reason(format_name: str, batch: int, product: Product, device: Device) -> str | None:
    """Why this product is not streamed here; ``None`` where it is."""
    return problem_reason(Problem(format_name, batch, product.n, product.k), device)


def prepare(
    case: Case,
    device: Device,
    where: torch.device,
    seed: int,
    product: Product,
    sets: int,
    loaded: Load = load,
    cuda: Any = torch.cuda,
) -> TorchKernel:
    """Compile and load; with ``triton_tuned``, fill the buffers and try configurations on that data."""
    workload = as_gemm(case.workload, sizes_of(case.workload), product)
    sizes, dtype = GemmSizes.of(workload), FORMATS[workload.format].operand
    buffers = [
        (
            Operand.empty(sizes.a_shape, dtype, where),
            Operand.empty(sizes.b_shape, dtype, where),
            torch.empty(sizes.m, sizes.n, dtype=dtype, device=where),
        )
        for _ in range(sets)
    ]
    problem = Problem(workload.format, sizes.m, sizes.n, sizes.k)
    maker = Maker(problem, device, [Operands(b.data, a.data, output) for a, b, output in buffers], loaded)
    if case.implementation == "triton_tuned":
        _filled(buffers, workload.distribution, seed)
        config, made = maker.tuned(cuda)
    else:
        config, made = maker.first()
    input_sets = [InputSet((a, b), output, launch) for (a, b, output), launch in zip(buffers, made.launches, strict=True)]
    told = emulation(made.facts, workload.format)
    passing = passing_bytes(problem, config, device)
    facts = {
        "layout": LAYOUT,
        "operand_dtype": str(dtype).removeprefix("torch."),
        "library": f"Triton {version('triton')}",
        "emulation": told,
        **({PASSING_BYTES: passing} if passing else {}),
        **made.facts,
    }
    execution = "emulated" if told else "native"
    return TorchKernel(input_sets, Formula(LAYOUT), workload.distribution, execution, Precision(), facts)


def _filled(buffers: Any, distribution: str, seed: int) -> None:
    for number, (a, b, _) in enumerate(buffers):
        for place, operand in enumerate((a, b)):
            operand.refill(distribution, seed + 2 * number + place)
