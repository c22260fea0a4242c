"""Products of plain numbers with what follows them, and products that torch compiles: buffers and launches."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm import compiled
from backends.torch.gemm.epilogue import Finished, Weights, blind_spots, by_library, told_of
from backends.torch.gemm.library import way_of
from backends.torch.gemm.sizes import Sizes
from backends.torch.kernel import InputSet, TorchKernel
from backends.torch.precision import precision_of
from backends.torch.target import FORMATS, Target
from suite.case import Case
from suite.jobs.emulation import PASSING_BYTES
from suite.jobs.gemm.epilogue import epilogue_of


class Buffers(NamedTuple):
    """One input set: A, B and, where the epilogue has one, the bias."""

    operands: tuple[Operand, ...]
    output: torch.Tensor


def is_finished(case: Case) -> bool:
    """Whether a case is made ready here."""
    return case.implementation == "compiled" or bool(epilogue_of(case.workload).steps)


def allocate(case: Case, target: Target) -> Buffers:
    """For a format whose operands carry no scales."""
    sizes, epilogue, numerics = Sizes.of(case.workload), epilogue_of(case.workload), FORMATS[case.workload.format]
    of_b = torch.empty(sizes.b_shape, dtype=numerics.operand, device=target.device)
    operands = [
        Operand.empty(sizes.a_shape, numerics.operand, target.device),
        Weights(of_b, k=sizes.k) if epilogue.steps else Operand(of_b),
        *([Operand.empty((sizes.n,), numerics.output, target.device)] if epilogue.bias else []),
    ]
    output = torch.empty(sizes.m, sizes.n, dtype=numerics.output, device=target.device)
    return Buffers(tuple(operands), output)


def make(case: Case, target: Target, buffers: Sequence[Buffers], described: Mapping[str, Any]) -> TorchKernel:
    """Bind launches to the buffers; compiles where the case is of torch's compiler."""
    workload, sizes, epilogue = case.workload, Sizes.of(case.workload), epilogue_of(case.workload)
    precision = precision_of(workload.format, dict(case.switches))
    formula, execution = Finished(sizes.layout, epilogue), target.execution(workload.format)
    unseen = [*described["check_cannot_see"], *blind_spots(epilogue, workload.distribution)]
    common = {**described, "emulation": target.emulated.get(workload.format, ""), "check_cannot_see": unseen}
    if case.implementation == "compiled":
        built = compiled.build(epilogue, sizes, buffers[0].operands, precision, target)
        sets = [InputSet(*each, compiled.bind(built.function, sizes.layout, each.operands)) for each in buffers]
        told = {**common, **compiled.facts(built, target.kind, epilogue), **_passing(built.program.passes, buffers[0].output)}
        return compiled.CompiledKernel(sets, formula, workload.distribution, execution, precision, told)
    way = by_library(epilogue, sizes, target)
    sets = [InputSet(*each, way.bind(*each)) for each in buffers]
    library = way_of(workload, target).library if way.passes else "cuBLASLt"
    of_way = {"call": way.call, "library": library, "epilogue": told_of(way.passes)}
    told = {**common, **of_way, **_passing(way.passes, buffers[0].output)}
    return TorchKernel(sets, formula, workload.distribution, execution, precision, told)


def _passing(passes: int, output: torch.Tensor) -> dict[str, int]:
    """The product that is written to be read again."""
    return {PASSING_BYTES: passes * int(output.nbytes)} if passes else {}
