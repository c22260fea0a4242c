"""What every device of a mesh computes: XLA's collective, or roofbench's ring of collective permutes.

A ring works on equal parts, as shapes in a program are fixed: a message that the ranks do not divide is filled up within it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from backends.jax.hlo import parse
from suite.collectives.names import Op
from suite.jobs.collective import Task
from suite.jobs.collective.task import OWN

AXIS = "ranks"
ROOT = 0
PERMUTES = ("collective-permute", "collective-permute-start")
Local = Callable[[jax.Array], jax.Array]


class Program(NamedTuple):
    """``run`` takes and gives an array of all ranks' data, each rank's on its device; ``text`` is the compiled HLO."""

    run: Any
    text: str
    sharding: NamedSharding


class Permutes(NamedTuple):
    """What the compiled program's permutes move of one rank."""

    elements: int
    messages: int


def local(task: Task) -> Local:
    """What one device computes of its own data."""
    ranks = task.ranks
    if task.implementation == OWN:
        rings = {Op.ALL_REDUCE: _ring_all_reduce, Op.ALL_GATHER: _ring_all_gather, Op.REDUCE_SCATTER: _ring_reduce_scatter}
        return lambda data: rings[task.op](data, ranks)
    match task.op:
        case Op.ALL_REDUCE:
            return lambda data: lax.psum(data, AXIS)
        case Op.ALL_GATHER:
            return lambda data: lax.all_gather(data, AXIS, tiled=True)
        case Op.REDUCE_SCATTER:
            return lambda data: lax.psum_scatter(data, AXIS, tiled=True)
        case Op.ALL_TO_ALL:
            return lambda data: lax.all_to_all(data, AXIS, 0, 0, tiled=True)
        case Op.BROADCAST:
            return lambda data: lax.pbroadcast(data, AXIS, ROOT)
        case _:
            return lambda data: _to_next(data, ranks)


def compiled(task: Task, devices: list[Any], dtype: Any) -> Program:
    """Compile for these devices, one a rank.  In place, the program is given its data's memory for the result."""
    mesh = Mesh(np.array(devices), (AXIS,))
    spec = PartitionSpec(AXIS)
    whole = jax.shard_map(local(task), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    sharding = NamedSharding(mesh, spec)
    shape = jax.ShapeDtypeStruct((task.ranks * task.message.send_elements,), dtype, sharding=sharding)
    executable = jax.jit(whole, donate_argnums=(0,) if task.in_place else ()).lower(shape).compile()
    return Program(executable, str(executable.as_text()), sharding)


def permutes(text: str) -> Permutes:
    """Count them in what the compiler made."""
    module = parse(text)
    found = [each for instructions in module.computations.values() for each in instructions if each.opcode in PERMUTES]
    return Permutes(sum(each.arrays[0].elements for each in found), len(found))


def padded_elements(task: Task) -> int:
    """The elements that a ring works on: the message filled up to a multiple of the ranks."""
    elements = max(task.message.send_elements, task.message.receive_elements)
    return -(-elements // task.ranks) * task.ranks


def _to_next(data: jax.Array, ranks: int) -> jax.Array:
    moved: jax.Array = lax.ppermute(data, AXIS, [(rank, (rank + 1) % ranks) for rank in range(ranks)])
    return moved


def _ring_reduce_scatter(data: jax.Array, ranks: int) -> jax.Array:
    """Part p starts at rank p + 1 and ends at rank p, added to on the way."""
    parts = data.reshape(ranks, -1)
    rank = lax.axis_index(AXIS)
    travelling = _part(parts, (rank - 1) % ranks)
    for step in range(ranks - 1):
        travelling = _to_next(travelling, ranks) + _part(parts, (rank - 2 - step) % ranks)
    return travelling


def _ring_all_gather(data: jax.Array, ranks: int) -> jax.Array:
    rank = lax.axis_index(AXIS)
    gathered = jnp.zeros((ranks, data.size), data.dtype)
    gathered = lax.dynamic_update_index_in_dim(gathered, data, rank, 0)
    travelling = data
    for step in range(ranks - 1):
        travelling = _to_next(travelling, ranks)
        gathered = lax.dynamic_update_index_in_dim(gathered, travelling, (rank - 1 - step) % ranks, 0)
    return gathered.reshape(-1)


def _ring_all_reduce(data: jax.Array, ranks: int) -> jax.Array:
    fill = -data.size % ranks
    filled = jnp.pad(data, (0, fill)) if fill else data
    return _ring_all_gather(_ring_reduce_scatter(filled, ranks), ranks)[: data.size]


def _part(parts: jax.Array, index: jax.Array) -> jax.Array:
    part: jax.Array = lax.dynamic_index_in_dim(parts, index, 0, keepdims=False)
    return part
