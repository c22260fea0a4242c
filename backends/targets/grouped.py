"""Grouped products as they are launched, on tensors without memory."""

from functools import partial
from typing import Any

from backends.targets.made import Made, empty
from backends.targets.refused import refuse
from backends.triton.gemm.device import Device
from backends.triton.gemm.port import emulation
from backends.triton.gemm.port import reason as plain_reason
from backends.triton.grouped import hopper_call
from backends.triton.grouped.call import Matrices, calls, room_of_list
from backends.triton.grouped.config import candidates
from backends.triton.grouped.problem import BLOCK, ROW, Problem
from suite.jobs.grouped_gemm import Sizes

GLUON = "gluon"


def grouped(device: Device, sizes: tuple[Any, ...], by: str = "", **given: Any) -> Made:
    """The list of tiles, then the product; ``sizes`` as those of the job, ``by`` gluon is the kernel for Hopper."""
    rows = Sizes(*sizes)
    problem = Problem(rows=rows.stored_rows, n=rows.n, k=rows.k, **given)
    if by == GLUON:
        refuse(hopper_call.reason(problem, device))
        return _made(hopper_call.candidates(device)[:1], partial(launched, device, problem, made=hopper_call.calls), problem)
    refuse(plain_reason(problem.plain, {}, device))
    configs = candidates(problem, device)[:1]
    if not configs:
        refuse(f"no configuration of this kernel for {problem.format} has room in {device.shared_bytes} bytes of shared memory")
    return _made(configs, partial(launched, device, problem), problem)


def launched(device: Device, problem: Problem, config: Any, made: Any = calls) -> Any:
    """What one launch calls."""
    b_rows = problem.groups * problem.n
    a, b = (empty(rows, problem.k, kind=problem.format) for rows in (problem.height, b_rows))
    scales: tuple[Any, Any] = (None, None)
    if problem.scales == ROW:
        scales = empty(problem.height, 1), empty(b_rows, 1)
    elif problem.scales == BLOCK:
        scales = empty(problem.k // 128, problem.height), empty(b_rows // 128, problem.k // 128)
    ends, tile_list = (empty(count, kind="int32") for count in (problem.groups, room_of_list(problem, config.block_m)))
    matrices = Matrices(a, b, empty(problem.height, problem.n, kind="bf16"), ends, *scales)
    return made(problem, config, device, matrices, tile_list)


def schedule(device: Device, **given: Any) -> Made:
    """What writes the list of tiles, by itself."""
    made = grouped(device, **given)
    return Made(made.configs, lambda config: made.calls(config)[:1])


def _made(configs: Any, launch: Any, problem: Problem) -> Made:
    return Made(configs, launch, emulation=partial(emulation, format_name=problem.format))
