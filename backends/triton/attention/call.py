"""The kernels with what they are given: constants for a configuration, arguments for one input set, the grid."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from triton.tools.tensor_descriptor import TensorDescriptor

from backends.triton.attention.backward import key_gradients, query_gradients, row_products
from backends.triton.attention.config import (
    CACHED_BYTES,
    HOPPER_BLOCK,
    HOPPER_ROWS,
    BackwardConfig,
    Config,
    HopperConfig,
    chunk_of,
)
from backends.triton.attention.forward import forward
from backends.triton.attention.problem import LOG2_E, Problem
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device


class Operands(NamedTuple):
    """Tensors of one input set, (batch, heads, rows, columns) with any steps; ``lse`` is (batch, q_heads, q_len) in fp32.

    ``v`` is (batch, kv_heads, v_dim, kv_len) where the problem has it transposed.  The scales of fp8 are fp32, one a head: of
    ``q`` (batch, q_heads), of ``k`` and ``v`` (batch, kv_heads).
    """

    q: Any
    k: Any
    v: Any
    o: Any
    lse: Any
    q_scale: Any = None
    k_scale: Any = None
    v_scale: Any = None


def described(tensor: Any, rows: int, columns: int) -> TensorDescriptor:
    """A descriptor of blocks of one head."""
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), [1, 1, rows, columns])


def steps_of(*tensors: Any) -> list[int]:
    """The first three steps of each."""
    return [step for tensor in tensors for step in tensor.stride()[:3]]


def forward_call(problem: Problem, config: Config, device: Device, operands: Operands) -> Call:
    """The portable kernel; descriptors are made here, once for an input set, and go into every launch by value."""
    q, k, v, o, lse, *scales = operands
    by_descriptors = device.has_descriptors
    first, last = problem.bounds
    q_parts, k_parts = _parts(q, problem), _parts(k, problem)
    tensors: list[Any] = [*q_parts, *k_parts, v, o]
    if by_descriptors:
        shapes = block_shapes(problem, config)
        tensors = [described(*each) for each in zip(tensors, *zip(*shapes, strict=True), strict=True)]
    given = [lse if scale is None else scale for scale in scales]  # read only where the format has scales
    sizes = (problem.q_len, problem.kv_len, problem.q_heads, problem.batch * problem.q_heads, problem.group)
    numbers = (*sizes, chunk_of(problem, config.block_m), first, last, problem.scale_log2)
    arguments = (*tensors, lse, *given, *steps_of(q, k, v, o), *numbers)
    tiles = -(-problem.q_len // config.block_m)
    grid = (tiles * problem.batch * problem.q_heads, 1, 1)
    return Call(forward, grid, arguments, constants_of(problem, config, device), _options(config))


def block_shapes(problem: Problem, config: Config) -> list[tuple[int, int]]:
    """Rows and columns of a block of Q, its tail, K, its tail, V and O."""
    m, n, width, tail = config.block_m, config.block_n, problem.width, problem.tail or problem.width
    v = (problem.v_dim, n) if problem.v_transposed else (n, problem.v_dim)
    return [(m, width), (m, tail), (n, width), (n, tail), v, (m, problem.v_dim)]


def constants_of(problem: Problem, config: Config, device: Device) -> dict[str, Any]:
    """What is compiled into the portable kernel, by the names and in the order of its parameters."""
    return {
        "WIDTH": problem.width,
        "TAIL": problem.tail,
        "V_WIDTH": problem.v_dim,
        "BLOCK_M": config.block_m,
        "BLOCK_N": config.block_n,
        "LEFT": problem.mask.first is not None,
        "RIGHT": problem.mask.last is not None,
        "RAGGED": problem.kv_len % config.block_n != 0,
        "DESCRIBED": device.has_descriptors,
        "V_TRANSPOSED": problem.v_transposed,
        "SCALED": problem.format == "fp8_e4m3",
    }


def _parts(tensor: Any, problem: Problem) -> Sequence[Any]:
    """The columns of a first product, and those of the second."""
    if not problem.tail:
        return tensor, tensor
    return tensor[..., : problem.width], tensor[..., problem.width :]


def hopper_call(problem: Problem, config: HopperConfig, device: Device, operands: Operands) -> Call:
    """The kernel for Hopper; its descriptors carry the layout of the blocks in shared memory."""
    from backends.triton.attention.hopper import forward_on_hopper, hopper_described

    q, k, v, o, lse, *_ = operands
    tiles = -(-problem.q_len // HOPPER_ROWS) * problem.batch * problem.q_heads
    programs = min(tiles, device.units)
    chunk = chunk_of(problem, HOPPER_ROWS, programs if config.resident else None)
    rows = (HOPPER_ROWS // 2, config.block, config.block, HOPPER_ROWS // 2)
    tensors = [hopper_described(*each) for each in zip((q, k, v, o), rows, strict=True)]
    sizes = (problem.q_len, problem.kv_len, problem.q_heads, problem.batch * problem.q_heads, problem.group)
    arguments = (*tensors, lse, *sizes, chunk, *problem.bounds, problem.scale_log2)
    grid = (programs if config.resident else tiles, 1, 1)
    return Call(forward_on_hopper, grid, arguments, hopper_constants(problem, config), {"num_warps": 4})


def hopper_constants(problem: Problem, config: HopperConfig) -> dict[str, Any]:
    """What is compiled into the kernel for Hopper, by the names and in the order of its parameters."""
    first, last = problem.mask
    return {
        "BLOCK": config.block,
        "STAGES": config.stages,
        "LEFT": first is not None,
        "RIGHT": last is not None,
        "SKEWED": first is not None or (last is not None and not _one_block_a_tile(last, config.block)),
        "RAGGED": problem.kv_len % config.block != 0,
        "ORDERED": config.ordered,
        "OVERLAPPED": config.overlapped,
        "OWN_OUTPUT": config.own_output,
        "REGISTERS": config.registers,
    }


def _one_block_a_tile(last: int, block: int) -> bool:
    """Whether the diagonal passes each tile of queries in one block of keys, which is the last that the tile sees."""
    return block == HOPPER_BLOCK and last >= 0 and last % HOPPER_BLOCK == 0


class Gradients(NamedTuple):
    """What the backward pass is given and gives: ``do`` as ``o``; ``dq``, ``dk``, ``dv`` as ``q``, ``k``, ``v``.

    ``delta`` is (batch, q_heads, q_len) in fp32, for the pass itself.
    """

    do: Any
    dq: Any
    dk: Any
    dv: Any
    delta: Any


ROW_PRODUCTS_ROWS = 32


def backward_calls(
    problem: Problem, of_keys: BackwardConfig, of_queries: BackwardConfig, device: Device, operands: Operands, given: Gradients
) -> tuple[Call, Call, Call]:
    """Three launches, in this order; the second and the third need the first only."""
    q, k, v, o, lse, *_ = operands
    do, dq, dk, dv, delta = given
    first, last = problem.bounds
    all_heads, all_kv_heads = problem.batch * problem.q_heads, problem.batch * problem.kv_heads
    scales = (problem.scale_log2 / LOG2_E, problem.scale_log2)
    grid = (-(-problem.q_len // ROW_PRODUCTS_ROWS), all_heads, 1)
    arguments: tuple[Any, ...] = (o, do, delta, *steps_of(o, do), problem.q_len, problem.q_heads)
    constants = {"WIDTH": problem.v_dim, "ROWS": ROW_PRODUCTS_ROWS}
    prepared = Call(row_products, grid, arguments, constants, {"num_warps": 4})

    tensors = _backward_tensors(problem, of_keys, device, (q, k, v, do), (dk, dv))
    sizes = (problem.q_len, problem.kv_len, problem.kv_heads, all_kv_heads, problem.group)
    numbers = (*sizes, max(1, CACHED_BYTES // (2 * problem.head_bytes * problem.group)), first, last, *scales)
    grid = (-(-problem.kv_len // of_keys.block_n) * all_kv_heads, 1, 1)
    arguments = (*tensors, lse, delta, *steps_of(q, k, v, do, dk, dv), *numbers)
    ragged = bool(problem.q_len % of_keys.block_m or problem.kv_len % of_keys.block_n)
    constants = backward_constants(problem, of_keys, device, ragged)
    keys = Call(key_gradients, grid, arguments, constants, _options(of_keys))

    tensors = _backward_tensors(problem, of_queries, device, (q, k, v, do), (dq,))
    sizes = (problem.q_len, problem.kv_len, problem.q_heads, all_heads, problem.group)
    numbers = (*sizes, chunk_of(problem, of_queries.block_m), first, last, *scales)
    grid = (-(-problem.q_len // of_queries.block_m) * all_heads, 1, 1)
    arguments = (*tensors, lse, delta, *steps_of(q, k, v, do, dq), *numbers)
    constants = backward_constants(problem, of_queries, device, problem.kv_len % of_queries.block_n != 0)
    queries = Call(query_gradients, grid, arguments, constants, _options(of_queries))
    return prepared, keys, queries


def backward_constants(problem: Problem, config: BackwardConfig, device: Device, ragged: bool) -> dict[str, Any]:
    """What is compiled into either kernel of gradients, by the names and in the order of its parameters."""
    return {
        "WIDTH": problem.width,
        "TAIL": problem.tail,
        "V_WIDTH": problem.v_dim,
        "BLOCK_M": config.block_m,
        "BLOCK_N": config.block_n,
        "LEFT": problem.mask.first is not None,
        "RIGHT": problem.mask.last is not None,
        "RAGGED": ragged,
        "DESCRIBED": device.has_descriptors,
    }


def _backward_tensors(
    problem: Problem, config: BackwardConfig, device: Device, inputs: tuple[Any, Any, Any, Any], outputs: tuple[Any, ...]
) -> list[Any]:
    """Q, K, V, dO and the outputs as a kernel takes them; an output is that of keys where there are two."""
    q, k, v, do = inputs
    m, n = config.block_m, config.block_n
    width, tail, v_dim = problem.width, problem.tail or problem.width, problem.v_dim
    pairs = [*zip(_parts(q, problem), ((m, width), (m, tail)), strict=True)]
    pairs += [*zip(_parts(k, problem), ((n, width), (n, tail)), strict=True), (v, (n, v_dim)), (do, (m, v_dim))]
    rows = n if len(outputs) == 2 else m
    pairs += zip(_parts(outputs[0], problem), ((rows, width), (rows, tail)), strict=True)
    pairs += [(each, (n, v_dim)) for each in outputs[1:]]
    return [described(tensor, *shape) if device.has_descriptors else tensor for tensor, shape in pairs]


def _options(config: Config | BackwardConfig) -> dict[str, int]:
    return {"num_warps": config.warps, "num_stages": config.stages}
