"""The rungs of the precision ladder that the kernels here take, and which of them takes each.

``gemm`` multiplies numbers as they are stored, with one scale at most for a row; ``quantised`` what has scales along K.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from backends.torch.gemm.sizes import Sizes
from backends.triton.gemm import kernel as gemm
from backends.triton.gemm import port as gemm_port
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers, LaunchedKernel, Shared
from backends.triton.gemm.problem import NUMBERS, Problem
from backends.triton.quantised import kernel as quantised
from backends.triton.quantised import port as quantised_port
from backends.triton.quantised.on_hopper import OTHERS
from backends.triton.quantised.problem import Problem as QuantisedProblem
from suite.case import Case, Workload

__all__ = ["Buffers", "Shared", "not_taken", "prepare", "problem_of", "reason"]


def not_taken(workload: Workload) -> str | None:
    """Why no kernel here is made for zero points of a format that it takes without; ``None`` where one is.  On any device."""
    if workload.format == "int8" and dict(workload.semantics).get("zero_point"):
        return "roofbench's own kernels take int8 without zero points; leave them out, or take the library"
    return None


def problem_of(case: Case) -> Problem | QuantisedProblem:
    """The product as the kernels see it; ``not_taken`` has nothing against its workload."""
    workload, sizes, switches = case.workload, Sizes.of(case.workload), dict(case.switches)
    name, semantics = workload.format, dict(workload.semantics)
    scaling = semantics.get("scaling")
    if name not in NUMBERS or scaling == "block":
        return QuantisedProblem(name, sizes.m, sizes.n, sizes.k, bool(semantics.get("zero_point")))
    promoted = name == "fp8_e4m3" and not switches.get("fp8_fast_accum", False)
    return Problem(name, *sizes, promoted, None if scaling is None else str(scaling))


def reason(
    problem: Problem | QuantisedProblem, switches: Mapping[str, Any], device: Device, *, gluon: bool = False
) -> str | None:
    """Why this product cannot run on a device, or with ``gluon`` by that kernel; ``None`` when it can."""
    if isinstance(problem, QuantisedProblem):
        return quantised_port.reason(problem, switches, device, gluon)
    if gluon:
        return OTHERS
    return gemm_port.reason(problem, switches, device)


def prepare(
    problem: Problem | QuantisedProblem,
    device: Device,
    buffers: Sequence[Buffers],
    shared: Shared,
    seed: int,
    *,
    tuned: bool,
    gluon: bool = False,
) -> LaunchedKernel:
    """Load a kernel on these buffers; with ``tuned``, fill them, try configurations on that data, and load the fastest.

    ``gluon`` is for what ``reason`` has nothing against so.
    """
    if isinstance(problem, QuantisedProblem):
        return quantised.prepare(quantised.Task(problem, device, buffers, gluon), shared, seed, tuned=tuned)
    assert not gluon, OTHERS
    return gemm.prepare(gemm.Task(problem, device, buffers), shared, seed, tuned=tuned)
