"""The gradients for Hopper with their middle kernel in float64, for a process of its own that has TRITON_INTERPRET=1.

    python -m tests.backends.triton.attention.hopper_ends     # prints one JSON object: distances of dQ, dK, dV for each problem

Gluon has no interpreter: what is real here is what comes before and after it, and the order in which sums lie.
"""

import json

import torch

from backends.triton.attention.call import Gradients
from backends.triton.attention.call import Operands as Given
from backends.triton.attention.config import BLOCK_OF_QUERIES, HopperBackwardConfig
from backends.triton.attention.hopper_backward_call import Room, hopper_backward_calls, room_for
from backends.triton.attention.problem import FULL, Problem, causal
from tests.backends.triton.attention.reference import Operands, computed, distance, operands, visible
from tests.backends.triton.interpreter import exchange_words_once_a_launch

PROBLEMS = {
    "whole blocks, two sequences": Problem("fp16", 2, 2, 1, 128, 96, 64, 64, FULL),
    "causal, a ragged block": Problem("fp16", 1, 2, 2, 77, 111, 64, 64, causal(77, 111)),
    "queries without keys": Problem("fp16", 1, 4, 2, 111, 70, 128, 128, causal(111, 70)),
    "given scale": Problem("fp16", 1, 1, 1, 70, 40, 64, 64, FULL, scale=0.3),
}


def distances_of(problem: Problem) -> dict[str, float]:
    given = operands(problem, torch.float16, rows_first=True)
    right = computed(problem, *given)
    dq, dk, dv = (torch.full_like(each, float("nan")) for each in (given.q, given.k, given.v))
    lse = right.lse.float().contiguous()
    held = Given(given.q, given.k, given.v, right.o.to(given.q.dtype), lse)
    wanted = Gradients(given.do, dq, dk, dv, lse)
    room = room_for(problem, torch.device("cpu"))
    for each in room:
        each.fill_(float("nan"))
    before, _, after = hopper_backward_calls(problem, HopperBackwardConfig(), held, wanted, room)
    before.kernel[before.grid](*before.arguments, **before.constants)
    middle(problem, given, dk, dv, room)
    after.kernel[after.grid](*after.arguments, **after.constants)
    return {name: distance(*pair) for name, *pair in zip(("dq", "dk", "dv"), (dq, dk, dv), right.gradients, strict=True)}


def middle(problem: Problem, given: Operands, dk: torch.Tensor, dv: torch.Tensor, room: Room) -> None:
    """What ``gradients_on_hopper`` does with its operands."""
    rows, width = BLOCK_OF_QUERIES, problem.qk_dim
    blocks = -(-problem.q_len // rows)
    begins = room.begins.view(problem.batch, problem.q_heads, blocks, 2, rows)
    sums = room.sums.view(problem.batch, problem.q_heads, blocks, rows * width)
    q, do = (torch.nn.functional.pad(each.double(), (0, 0, 0, blocks * rows - problem.q_len)) for each in (given.q, given.do))
    k, v = (each.double().repeat_interleave(problem.group, 1) for each in (given.k, given.v))
    base, delta = (begins[:, :, :, place].reshape(*q.shape[:3], 1).double() for place in (0, 1))
    weights = torch.exp2((q @ k.transpose(2, 3) + base) * problem.scale_log2)
    weights[:, :, : problem.q_len].masked_fill_(~visible(problem), 0.0)
    slopes = weights * (do @ v.transpose(2, 3) + delta)
    shared = (problem.batch, problem.kv_heads, problem.group, problem.kv_len, width)
    dv.copy_((weights.transpose(2, 3) @ do).view(shared).sum(2))
    dk.copy_((slopes.transpose(2, 3) @ q).view(shared).sum(2) * (problem.scale or width**-0.5))
    of_block = (slopes @ k).view(problem.batch, problem.q_heads, blocks, 4, 2, 8, width // 8, 4, 2)
    sums += of_block.permute(0, 1, 2, 6, 3, 5, 7, 4, 8).reshape(sums.shape)  # as ``as_held`` has them


def main() -> None:
    exchange_words_once_a_launch()
    print(json.dumps({name: distances_of(problem) for name, problem in PROBLEMS.items()}))


if __name__ == "__main__":
    main()
