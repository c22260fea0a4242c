"""A kernel with what it is given: its constants for a configuration, its arguments for one input set, its grid."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.triton.gemm import kernels
from backends.triton.gemm.config import Config, by_descriptors, count
from backends.triton.gemm.device import Device
from backends.triton.gemm.problem import Problem

ACCUMULATORS = {"fp32": tl.float32, "int32": tl.int32}


class Matrices(NamedTuple):
    """The tensors of one input set, as stored; the scales are float32 on the device, ``None`` where there are none."""

    a: Any
    b: Any
    c: Any
    a_scale: Any = None
    b_scale: Any = None


class Blocks(NamedTuple):
    """Shapes of what one load or store moves, as it is stored."""

    a: list[int]
    b: list[int]
    c: list[int]


class Call(NamedTuple):
    """``kernel[grid](*arguments, **constants, **options)`` computes the product."""

    kernel: Any
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]
    constants: Mapping[str, Any]
    options: Mapping[str, Any]


def call(problem: Problem, config: Config, device: Device, matrices: Matrices) -> Call:
    """Descriptors are made here, once for an input set, and go into every launch by value."""
    constants, options = constants_of(problem, config, device), options_of(config)
    a, b, c, a_scale, b_scale = matrices
    scales = (a, b) if a_scale is None else (a_scale, b_scale)  # read only where the format has scales
    if by_descriptors(problem, device):
        blocks = blocks_of(problem, config)
        described = [TensorDescriptor.from_tensor(*each) for each in zip((a, b, c), blocks, strict=True)]
        arguments = (*described, *scales, problem.m, problem.n, problem.k)
        return Call(kernels.gemm_by_descriptors, grid_of(problem, config, device), arguments, constants, options)
    arguments = (a, b, c, *scales, problem.m, problem.n, problem.k, a.shape[1], b.shape[1])
    return Call(kernels.gemm_by_pointers, grid_of(problem, config, device), arguments, constants, options)


def grid_of(problem: Problem, config: Config, device: Device) -> tuple[int, int, int]:
    """Programs: as many as the device holds at once, where they go through tiles; else one a tile."""
    tiles = count(config.block_m, config.block_n, problem)
    if not by_descriptors(problem, device):
        return tiles, 1, 1
    return min(tiles, device.units * config.resident), 1, 1


def blocks_of(problem: Problem, config: Config) -> Blocks:
    """Shapes that the descriptors are made for."""
    a, b = [config.block_m, config.block_k], [config.block_k, config.block_n]
    return Blocks(
        a[::-1] if problem.a_transposed else a,
        b[::-1] if problem.b_transposed else b,
        [config.block_m, config.block_n // config.slices],
    )


def constants_of(problem: Problem, config: Config, device: Device) -> dict[str, Any]:
    """What is compiled into the kernel, by the names and in the order of its parameters."""
    own = (
        {"SLICES": config.slices, "FLATTEN": config.flatten}
        if by_descriptors(problem, device)
        else {"WHOLE_K": problem.k % config.block_k == 0}
    )
    return {
        "A_TRANSPOSED": problem.a_transposed,
        "B_TRANSPOSED": problem.b_transposed,
        "BLOCK_M": config.block_m,
        "BLOCK_N": config.block_n,
        "BLOCK_K": config.block_k,
        "GROUP": config.group,
        **own,
        "ACC": ACCUMULATORS[problem.numbers.accumulator],
        "PRECISION": "tf32" if problem.format == "tf32" else "ieee",
        "PROMOTED": problem.promoted,
        "SCALES": problem.scales,
    }


def options_of(config: Config) -> dict[str, int]:
    """The compiler's own."""
    return {"num_warps": config.warps, "num_stages": config.stages}
