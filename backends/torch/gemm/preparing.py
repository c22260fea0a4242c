"""A product made ready: buffers, launches, and what is said of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from backends.distributions import BLIND_SPOTS
from backends.torch.data import Operand
from backends.torch.emulated import EmulatedKernel, Emulator
from backends.torch.gemm import finishing
from backends.torch.gemm.error import quantisation_error
from backends.torch.gemm.library import way_of
from backends.torch.gemm.operands import QuantisedOperand, allocate, quantised_formats
from backends.torch.gemm.product import Product
from backends.torch.gemm.refusals import output_type, storing_for
from backends.torch.gemm.sizes import Sizes
from backends.torch.gemm.way import Task, Way
from backends.torch.kernel import InputSet, TorchKernel
from backends.torch.libraries import loaded_library
from backends.torch.precision import precision_of
from backends.torch.target import FORMATS, Target
from suite.case import Case
from suite.jobs.emulation import EXECUTED_PIPE, PASSING_BYTES
from suite.jobs.fp8 import ENCODING

Buffers = Sequence[tuple[Operand, Operand, torch.Tensor]]


def prepare(case: Case, target: Target, sets: int, seed: int) -> TorchKernel:
    """Allocate and fill ``sets`` input sets; raises torch's and Triton's own errors when memory or a compiler gives out."""
    target = storing_for(case, target)
    kernel = _finished_kernel(case, target, sets) if finishing.is_finished(case) else _plain_kernel(case, target, sets, seed)
    kernel.of_inputs = partial(_of_inputs, kernel, case)
    kernel.refill(seed)
    kernel.poison()
    return kernel


def _plain_kernel(case: Case, target: Target, sets: int, seed: int) -> TorchKernel:
    sizes, dtype, output = Sizes.of(case.workload), target.operand(case.workload.format), output_type(case.workload)
    a_format, b_format = quantised_formats(case.workload, target)
    buffers = []
    for _ in range(sets):
        a = allocate(a_format, dtype, sizes.a_shape, target.device)
        b = allocate(b_format, dtype, sizes.b_shape, target.device)
        buffers.append((a, b, torch.empty(sizes.m, sizes.n, dtype=output, device=target.device)))
    if case.implementation == "library":
        return _library_kernel(case, target, buffers)
    return _triton_kernel(case, target, buffers, seed)


def _finished_kernel(case: Case, target: Target, sets: int) -> TorchKernel:
    buffers = [finishing.allocate(case, target) for _ in range(sets)]
    a, b, *_ = buffers[0].operands
    return finishing.make(case, target, buffers, _description(case, target, (a, b, buffers[0].output)))


def _library_kernel(case: Case, target: Target, buffers: Buffers) -> TorchKernel:
    workload, switches, sizes = case.workload, dict(case.switches), Sizes.of(case.workload)
    precision = precision_of(workload.format, switches)
    described = _description(case, target, buffers[0])
    emulator = _emulator(switches, sizes, target)
    if emulator is not None:
        input_sets = [InputSet((a, b), output, emulator.bind(sizes.layout, a, b, output)) for a, b, output in buffers]
        parts = (input_sets, Product(sizes.layout), workload.distribution, "emulated", precision)
        return EmulatedKernel(emulator, *parts, {**described, **_EMULATED_CALL})
    way = way_of(workload, target)
    bind = way.make(Task(sizes, precision, target.device))
    input_sets = [InputSet((a, b), output, bind(a, b, output)) for a, b, output in buffers]
    execution = "emulated" if way.emulation else target.execution(workload.format)
    parts = (input_sets, Product(sizes.layout), workload.distribution, execution, precision)
    return TorchKernel(*parts, {**described, **_call(case, target, way)})


def _triton_kernel(case: Case, target: Target, buffers: Buffers, seed: int) -> TorchKernel:
    from backends.triton import ladder
    from backends.triton.gemm.device import of_torch

    workload = case.workload
    precision = precision_of(workload.format, dict(case.switches))
    described = _description(case, target, buffers[0])
    shared = ladder.Shared(Product(Sizes.of(workload).layout), workload.distribution, precision, described)
    ready = [ladder.Buffers(*each) for each in buffers]
    chosen = {"tuned": case.implementation == "triton_tuned", "gluon": case.implementation == "gluon"}
    return ladder.prepare(ladder.problem_of(case), of_torch(target.device.index), ready, shared, seed, **chosen)


_EMULATED_CALL = {"call": "cublasGemmEx", "library": "cuBLAS"}


def _emulator(switches: dict[str, Any], sizes: Sizes, target: Target) -> Emulator | None:
    name = switches.get("emulation")
    if name is None:
        return None
    return Emulator(str(name), (sizes.m, sizes.n, sizes.k), target.device, loaded_library("libcublas.so"))


def _description(case: Case, target: Target, buffers: tuple[Operand, Operand, torch.Tensor]) -> dict[str, Any]:
    """What every implementation has in common."""
    a, b, output = buffers
    quantised = {name: each.quantised.layout for name, each in (("a", a), ("b", b)) if isinstance(each, QuantisedOperand)}
    return {
        "layout": Sizes.of(case.workload).layout,
        "operand_dtype": _name_of(a.data.dtype),
        **({"b_dtype": _name_of(b.data.dtype)} if b.data.dtype != a.data.dtype else {}),
        "output_dtype": _name_of(output.dtype),
        **({"stored": quantised} if quantised else {}),
        **({ENCODING: encoding} if (encoding := target.encoding(case.workload.format)) else {}),
        "accumulate": FORMATS[case.workload.format].accumulate,
        "reference": "float64",
        "switches_without_effect": _idle_switches(case, target),
        "check_cannot_see": list(BLIND_SPOTS.get(case.workload.distribution, ())),
    }


def _call(case: Case, target: Target, way: Way) -> dict[str, Any]:
    """Whom torch hands the product to, and what that multiplies and moves where it is not the numbers as stored."""
    emulation = way.emulation or target.emulated.get(case.workload.format, "")
    passing_bytes = way.passing_bytes(Sizes.of(case.workload))
    passing = {PASSING_BYTES: passing_bytes} if passing_bytes else {}
    executed = {EXECUTED_PIPE: way.pipe} if way.pipe else {}
    return {"call": way.call, "library": way.library, "emulation": emulation, **executed, **passing}


def _of_inputs(kernel: TorchKernel, case: Case) -> Mapping[str, Any]:
    error = quantisation_error(kernel, case.workload.format, Sizes.of(case.workload))
    return {} if error is None else {"quantisation_error": error}


def _idle_switches(case: Case, target: Target) -> list[str]:
    """Switches that allow what does not happen here: a CPU sums in the format's accumulator, torch has only one kernel for
    TunableOp to choose from anywhere but on ROCm, roofbench's own kernels do not split K, and fp8 is summed in fp32 where it is
    converted, or multiplied by AMD's matrix cores.
    """
    switches = dict(case.switches)
    idle = {name for name, on in switches.items() if on is True and target.kind == "cpu"}
    if switches.get("tunable_op") and torch.version.hip is None:
        idle.add("tunable_op")
    if switches.get("reduced_precision_reduction") and case.implementation in ("triton", "triton_tuned"):
        idle.add("reduced_precision_reduction")
    by_torch = case.implementation == "library" and "emulation" not in switches
    if switches.get("fp8_fast_accum") and by_torch and (target.is_amd or way_of(case.workload, target).pipe is not None):
        idle.add("fp8_fast_accum")
    return sorted(idle)


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
