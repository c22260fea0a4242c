"""Cases of the gemm job by the kernels here: which can run, and how their launches are made."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backends.triton.gemm.call import Matrices, call
from backends.triton.gemm.config import Config, by_descriptors, candidates, default
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import foreign
from backends.triton.gemm.launch import Load, load
from backends.triton.gemm.made import COMPILER_CACHE, Made, tuning_facts
from backends.triton.gemm.problem import NUMBERS, Problem
from backends.triton.gemm.tuning import Candidate, search
from backends.triton.version import triton_version

LARGEST = 2**31 - 1024  # positions are 32-bit, and the last tile passes the edge
BUDGET_S = 60.0
# Settings of the libraries that a case of theirs may name.
NOT_OURS = {
    "emulation": "cuBLAS emulates, this kernel does not",
    "workspace_mib": "workspace_mib is what cuBLAS may use; this kernel uses none",
    "tunable_op": "TunableOp chooses among the libraries' kernels; triton_tuned tries configurations of this one",
    "fp16_accumulation": "this kernel sums fp16 in fp32",
}


def reason(problem: Problem, switches: Mapping[str, Any], device: Device) -> str | None:
    """Why this product cannot run here; ``None`` when it can.  Its format is one of ``NUMBERS``."""
    assert problem.format in NUMBERS, problem.format
    if device.unknown:
        return device.unknown
    for name, why in NOT_OURS.items():
        if switches.get(name):
            return why
    if problem.format == "fp8_e4m3" and not device.has_fp8 and not device.is_amd:
        return f"Triton has no fp8_e4m3 for {device.name}"
    if problem.format == "tf32" and device.is_amd and device.architecture != "gfx942":
        return f"{device.architecture} does not multiply in tf32"
    largest = max(problem.m, problem.n, problem.k)
    return f"this kernel takes sizes up to {LARGEST}, not {largest}" if largest > LARGEST else None


def make(problem: Problem, config: Config, device: Device, sets: Sequence[Matrices], loaded: Load = load) -> Made:
    """Compile and load; one launch writes the ``c`` of one set and allocates nothing."""
    began_s = time.perf_counter()
    ready = [loaded(call(problem, config, device, matrices)) for matrices in sets]
    compile_s = time.perf_counter() - began_s
    facts = {**describe(problem, config, device), **ready[0].facts, "compile_s": compile_s, "compiler_cache": COMPILER_CACHE}
    return Made(tuple(each.launch for each in ready), facts)


def make_default(problem: Problem, device: Device, sets: Sequence[Matrices], loaded: Load = load) -> Made:
    """By the configuration that the model of the device chooses."""
    made = make(problem, default(problem, device), device, sets, loaded)
    return made.knowing({"chosen_by": "a model of the device"})


def make_tuned(
    problem: Problem,
    device: Device,
    sets: Sequence[Matrices],
    trial: Callable[[Config], Candidate],
    loaded: Load = load,
    budget_s: float = BUDGET_S,
) -> Made:
    """By the fastest of several configurations; ``trial`` makes one ready, and refuses what is not right."""
    found = search(candidates(problem, device), trial, budget_s)
    return make(problem, found.best, device, sets, loaded).knowing(tuning_facts(found))


def emulation(facts: Mapping[str, Any], format_name: str) -> str:
    """What a kernel multiplies where that is not the format itself; empty where it is."""
    instructions = facts.get("instructions", [])
    others = foreign(instructions, format_name)
    if others:
        return f"operands converted, then multiplied by {', '.join(others)}"
    return "" if instructions else "multiplied without matrix instructions"


def describe(problem: Problem, config: Config, device: Device) -> dict[str, Any]:
    """How the product is cut, for people and for whoever repeats it."""
    described = by_descriptors(problem, device)
    own = {"slices": config.slices, "flattened": config.flatten, "programs_per_unit": config.resident} if described else {}
    return {
        "library": f"Triton {triton_version()}",
        "loads": "tensor descriptors" if described else f"pointers: {_no_descriptors(problem, device)}",
        "tiles": config.tiles,
        "warps": config.warps,
        "stages": config.stages,
        "group": config.group,
        **own,
    }


def _no_descriptors(problem: Problem, device: Device) -> str:
    return problem.undescribed if device.has_descriptors else f"{device.name} has no tensor descriptors"
