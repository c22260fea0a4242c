"""The gradients for Hopper with what they are given: three launches, and room for sums of dQ."""

from typing import Any, NamedTuple

import torch

from backends.triton.attention.call import Gradients, Operands, steps_of
from backends.triton.attention.config import BLOCK_OF_QUERIES as ROWS
from backends.triton.attention.config import HOPPER_KEYS, HopperBackwardConfig
from backends.triton.attention.hopper_blocks import prepare_blocks, round_sums
from backends.triton.attention.problem import LOG2_E, Problem
from backends.triton.gemm.call import Call

# Heads of 128 columns leave a thread 48 registers for all but its sums.  What is spilled is read back before and behind the
# loop; with windows over ragged keys five words of it once a block of queries.
SPARED_WORDS = 16


class Room(NamedTuple):
    """In fp32, for what a pass computes on the way.

    With queries rounded up to whole blocks of ``ROWS``: two numbers a query and head in ``begins``, and in ``sums`` as many as
    dQ has.
    """

    begins: Any
    sums: Any


def room_for(problem: Problem, device: Any) -> Room:
    """New room, on a torch device."""
    rows = problem.batch * problem.q_heads * -(-problem.q_len // ROWS) * ROWS
    return Room(*(torch.empty(rows * each, dtype=torch.float32, device=device) for each in (2, problem.qk_dim)))


def hopper_backward_calls(
    problem: Problem, config: HopperBackwardConfig, operands: Operands, given: Gradients, room: Room
) -> tuple[Call, Call, Call]:
    """Three launches, each of which needs the one before it."""
    from backends.triton.attention.hopper import hopper_described
    from backends.triton.attention.hopper_backward import gradients_on_hopper

    q, k, v, o, lse, *_ = operands
    do, dq, dk, dv, _delta = given
    first, last = problem.bounds
    scale = problem.scale_log2 / LOG2_E
    all_heads = problem.batch * problem.q_heads
    of_rows = {"WIDTH": problem.v_dim, "ROWS": ROWS}
    grid = (-(-problem.q_len // ROWS), all_heads, 1)
    sizes: tuple[Any, ...] = (problem.q_len, problem.q_heads)
    arguments: tuple[Any, ...] = (o, do, lse, *room, *steps_of(o, do), *sizes, scale)
    prepared = Call(prepare_blocks, grid, arguments, of_rows, {"num_warps": 4})
    rounded = Call(round_sums, grid, (room.sums, dq, *steps_of(dq), *sizes, scale), of_rows, {"num_warps": 4})

    tensors = [hopper_described(each, ROWS) for each in (q, k, v, do, dk, dv)]
    sizes = (problem.q_len, problem.kv_len, problem.group, first, last)
    arguments = (*tensors, *room, *sizes, scale, problem.scale_log2)
    constants = {
        "STAGES": config.stages,
        "LEFT": problem.mask.first is not None,
        "RIGHT": problem.mask.last is not None,
        "RAGGED": problem.kv_len % HOPPER_KEYS != 0,
        "REGISTERS": config.registers,
    }
    grid = (-(-problem.kv_len // HOPPER_KEYS), problem.kv_heads, problem.batch)
    return prepared, Call(gradients_on_hopper, grid, arguments, constants, {"num_warps": 4}), rounded
