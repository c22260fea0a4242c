"""The kernels with what they are given: constants for a configuration, arguments for one input set, the grid."""

from typing import Any, NamedTuple

from backends.triton.decode.config import REGISTERS, WIDE, Config, at_once
from backends.triton.decode.plan import ITEM_NUMBERS, Plan
from backends.triton.decode.problem import Problem
from backends.triton.decode.registers import decode_by_registers
from backends.triton.decode.staged import decode_staged
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device


class Operands(NamedTuple):
    """Tensors of one input set.

    ``q`` (batch, q_len, q_heads, width + tail) in the format of the cache; beside 8 bits in bf16 or fp16, and then rounded to
    fp16; ``o`` the same with ``width`` columns; ``lse`` (batch, q_len, q_heads) in fp32, contiguous.  ``k`` and ``v`` (pages,
    kv_heads, page_size, columns) with any steps but the last, which is 1; a token's step is the same in both.  ``table``
    (batch, pages of the longest sequence) in int32.  ``k_scale`` and ``v_scale`` in fp32: one number, or (pages, kv_heads,
    page_size).
    """

    q: Any
    k: Any
    v: Any
    o: Any
    lse: Any
    table: Any
    k_scale: Any = None
    v_scale: Any = None


class Workspace(NamedTuple):
    """``items`` int32, as ``Plan.numbers``; ``parts`` and ``parts_lse`` fp32; ``arrived`` int32, zero before the first launch.

    Launches that may run at the same time need each their own.
    """

    items: Any
    parts: Any
    parts_lse: Any
    arrived: Any


def workspace_shapes(problem: Problem, plan: Plan, batch: int) -> Workspace:
    """The shapes of a workspace's tensors."""
    rows = problem.kv_heads * problem.rows
    slots = (batch, plan.most_splits if plan.most_splits > 1 else 0, rows)
    return Workspace((len(plan.items), ITEM_NUMBERS), (*slots, problem.width), slots, (batch, rows))


def decode_call(problem: Problem, config: Config, device: Device, plan: Plan, operands: Operands, workspace: Workspace) -> Call:
    """One launch for all sequences; ``plan`` is for the configuration's block."""
    q, k, v, o, lse, table, *scales = operands
    assert k.stride(2) == v.stride(2), "a token's step is the same in K and V"
    k_scale, v_scale = (lse if each is None else each for each in scales)  # read only where the format has scales
    by_token = problem.scales == "token"
    scale_steps = (k_scale.stride(0), k_scale.stride(1)) if by_token else (0, 0)
    if config.kernel == REGISTERS:  # which takes words of 32 bits
        k, v = (each.view(table.dtype) for each in (k, v))
    steps = (*q.stride()[:3], *o.stride()[:3], *k.stride()[:2], *v.stride()[:2], *scale_steps, table.stride(0))
    numbers = (*steps, problem.kv_heads, plan.most_splits, problem.scale_log2)
    arguments = (q, k, v, o, lse, k_scale, v_scale, table, *workspace, *numbers)
    blocks = -(-problem.rows // config.rows)
    grid = (len(plan.items) * problem.kv_heads * blocks, 1, 1)
    kernel = decode_by_registers if config.kernel == REGISTERS else decode_staged
    constants = constants_of(problem, config, device, k.stride(2))
    return Call(kernel, grid, arguments, constants, {"num_warps": config.warps, "num_stages": config.stages})


def constants_of(problem: Problem, config: Config, device: Device, token_step: int) -> dict[str, Any]:
    """What is compiled into a kernel, by the names and in the order of its parameters."""
    shared = {"TOKEN_STEP": token_step, "GROUP": problem.group, "Q_LEN": problem.q_len, "ROWS": config.rows}
    cache = {"PAGE": problem.page_size, "FORMAT": problem.format, "TOKEN_SCALES": problem.scales == "token"}
    if config.kernel == REGISTERS:
        width = {"BLOCK": config.block, "WIDTH": problem.width}
        return {**shared, **width, **cache, "AT_ONCE": at_once(config, problem), "ASM": not device.is_amd}
    return {
        **shared,
        "BLOCK": config.block,
        "WIDTH": problem.width,
        "TAIL": problem.tail,
        "SHARED": problem.shared_values,
        **cache,
        "AT_ONCE": at_once(config, problem),
        "STAGES": config.stages,
        "ALL_MASKED": problem.width >= WIDE,
    }
