"""The kernel with what it is given: constants for a configuration, arguments for one input set, the grid."""

from typing import Any, NamedTuple

from backends.triton.gemm.call import Call
from backends.triton.gemm.dependent import LAUNCH, has_dependent_launches
from backends.triton.gemm.device import Device
from backends.triton.streaming.config import (
    MULTIPLIER,
    REGISTERS,
    RESIDENT,
    Config,
    blocks,
    columns,
    programs,
    sharing,
    tiles,
)
from backends.triton.streaming.gather import gathered
from backends.triton.streaming.kernel import streamed
from backends.triton.streaming.norm import EPSILON, slots
from backends.triton.streaming.problem import RESIDUAL, ROTATED, SWIGLU, Problem
from backends.triton.streaming.resident import resident

GATHERED_AT_ONCE = 1024
PARTS_OF_A_SHARE = 2  # of its first tile, and of its last


class Operands(NamedTuple):
    """Tensors of one input set, contiguous and in one format where nothing else is said.

    ``w`` (n x k), ``x`` (m x k); ``y`` (m x n), where ``end`` is ``swiglu`` m x n / 2, where it is ``rotated`` Q (m, q_heads,
    head_dim).  Of X behind a norm ``squares`` (slots, m, fp32), see ``norm``; of what is added to a ``residual`` (m x n)
    weights ``norm`` (n) of the norm behind it, ``scaled`` (m x n), which is Y times these, and its sums of squares ``left``
    (slots, m, fp32), zero where no program writes.  Of what is ``rotated``: ``k_cache`` and ``v_cache`` (pages, kv_heads,
    page_size, head_dim), ``rotation`` (positions, head_dim, fp32), ``positions`` (m, int32), ``table`` (m x pages, int32, any
    step between rows).
    """

    w: Any
    x: Any
    y: Any
    squares: Any = None
    residual: Any = None
    norm: Any = None
    scaled: Any = None
    left: Any = None
    k_cache: Any = None
    v_cache: Any = None
    rotation: Any = None
    positions: Any = None
    table: Any = None


class Workspace(NamedTuple):
    """``parts`` fp32; ``arrived`` int32, zero before the first launch.

    Launches that may run at the same time need each their own; dependent ones wait before they write.
    """

    parts: Any
    arrived: Any


def workspace_sizes(problem: Problem, config: Config, device: Device) -> Workspace:
    """How many numbers each tensor of a workspace has, one where none is needed."""
    held = tiles(problem, config) * config.split if config.split > 1 else 0
    if config.kernel == RESIDENT:
        held = PARTS_OF_A_SHARE * programs(problem, config, device)
    width = columns(problem, config, device)
    return Workspace(max(1, held * config.rows * width), max(1, tiles(problem, config)))


def streamed_call(
    problem: Problem,
    config: Config,
    device: Device,
    operands: Operands,
    workspace: Workspace,
    *,
    dependent: bool = False,
) -> Call:
    """One launch; ``dependent`` only on devices that have such launches."""
    o, p = operands, problem
    assert not dependent or has_dependent_launches(device), device.name
    assert p.end != RESIDUAL or tiles(p, config) <= slots(p.n, p.m), config.label
    unused = (o.y, workspace.parts, workspace.arrived)  # of any type, fp32, int32
    caches = [o.y if each is None else each for each in (o.k_cache, o.v_cache)]
    steps = [each.stride()[:2] if p.end == ROTATED else (0, 0) for each in caches]
    arguments = (
        o.w,
        o.x,
        unused[1] if o.squares is None else o.squares,
        o.y,
        *(unused[0] if each is None else each for each in (o.residual, o.norm, o.scaled)),
        unused[1] if o.left is None else o.left,
        *caches,
        unused[1] if o.rotation is None else o.rotation,
        unused[2] if o.positions is None else o.positions,
        unused[2] if o.table is None else o.table,
        *workspace,
        p.n,
        p.k,
        p.pairs,
        *steps[0],
        *steps[1],
        0 if o.table is None else o.table.stride(0),
        *([tiles(p, config)] if config.kernel == RESIDENT else []),
    )
    constants = constants_of(problem, config, device, dependent=dependent)
    options: dict[str, Any] = {"num_warps": config.warps, "num_stages": config.ahead if config.kernel != REGISTERS else 1}
    if config.most_registers:
        options["maxnreg"] = config.most_registers
    if dependent:
        options |= LAUNCH
    kernel = resident if config.kernel == RESIDENT else streamed
    return Call(kernel, (programs(problem, config, device), 1, 1), arguments, constants, options)


def constants_of(problem: Problem, config: Config, device: Device, *, dependent: bool) -> dict[str, Any]:
    """What is compiled into the kernel, by the names and in the order of its parameters."""
    whole = problem.k % config.block_k == 0
    stays = config.kernel == RESIDENT
    return {
        "M": problem.m,
        **({} if stays else {"COLUMNS": columns(problem, config, device)}),
        "ROWS": config.rows,
        "BLOCK_K": config.block_k,
        **({"SHARING": sharing(problem, config, device)} if stays else {"SPLIT": config.split}),
        "AHEAD": config.ahead,
        "NORMED": problem.normed,
        "SLOTS": slots(problem.k, problem.m),
        **({} if stays else {"A_BLOCK": slots_a_block(problem, config)}),
        "EPSILON": EPSILON,
        "END": problem.end,
        "PAIRS_OF": {ROTATED: problem.pairs, SWIGLU: -1}.get(problem.end, 0),
        "Q_HEADS": problem.q_heads,
        "KV_HEADS": problem.kv_heads,
        "PAGE": max(1, problem.page_size),
        "WHOLE_K": whole,
        **({} if stays else {"MULTIPLIED": config.kernel == MULTIPLIER}),
        "DEPENDENT": dependent,
    }


def slots_a_block(problem: Problem, config: Config) -> int:
    """How many sums of squares a program adds up with each block of K; 0 where it does not on the way."""
    if not problem.normed or config.kernel != REGISTERS or config.split > 1:
        return 0
    return 1 << (-(-slots(problem.k, problem.m) // blocks(problem, config)) - 1).bit_length()


def gathered_call(embedding: Any, tokens: Any, y: Any, norm: Any, scaled: Any, left: Any) -> Call:
    """Rows of an embedding (rows x width) by ``tokens`` (int32) into ``y`` (tokens x width); the others as in ``Operands``."""
    width = y.shape[1]
    grid = (y.shape[0], -(-width // GATHERED_AT_ONCE), 1)
    options = {"num_warps": 4, "num_stages": 1}
    return Call(gathered, grid, (embedding, tokens, y, norm, scaled, left, width), {"BLOCK": GATHERED_AT_ONCE}, options)
