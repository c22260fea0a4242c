"""How many warps of a compiled kernel a unit holds at once: what its registers, shared memory and blocks leave.

The rules are those of NVIDIA's cuda_occupancy.h and of LLVM's AMDGPU backend; a kernel's real occupancy is at most this.
"""

from typing import NamedTuple

from suite.targets.limits import AMD, LIMITS, Limits


class Taken(NamedTuple):
    """What a block takes: ``registers`` (and scalar ones) of a thread, bytes of shared memory, columns of tensor memory."""

    warps: int
    registers: int
    shared_bytes: int
    scalar_registers: int = 0
    tensor_columns: int = 0


class Occupancy(NamedTuple):
    """Blocks and warps on one unit, the share of what it could hold, and what keeps it from holding more."""

    blocks: int
    warps: int
    share: float
    limited_by: str


def occupancy(target: str, taken: Taken) -> Occupancy:
    """Of a kernel compiled for ``target``, one of ``LIMITS``; 0 where a block does not fit at all."""
    limits = LIMITS[target]
    held = _blocks(limits, taken)
    blocks = min(held.values())
    limited_by = ", ".join(name for name, count in held.items() if count == blocks)
    warps = blocks * taken.warps
    return Occupancy(blocks, warps, warps / limits.most_warps, limited_by)


def _blocks(limits: Limits, taken: Taken) -> dict[str, int]:
    """How many blocks each resource has room for."""
    held = {
        "warps": limits.most_warps // taken.warps,
        "registers": _by_registers(limits, taken) // taken.warps,
    }
    if taken.shared_bytes + limits.reserved_bytes:
        held["shared memory"] = _by_shared_memory(limits, taken)
    if limits.vendor != AMD or taken.warps > 1:
        held["blocks"] = limits.blocks
    if limits.tensor_columns and taken.tensor_columns:
        held["tensor memory"] = limits.tensor_columns // taken.tensor_columns
    return held


def _by_registers(limits: Limits, taken: Taken) -> int:
    """Warps of a unit, each in a partition of its own choice."""
    if taken.registers > limits.most_registers:
        return 0
    in_partition = limits.registers // _up(max(1, taken.registers), limits.register_step)
    if limits.scalar_registers and taken.scalar_registers:
        in_partition = min(in_partition, limits.scalar_registers // _up(taken.scalar_registers, limits.scalar_step))
    return min(in_partition, limits.warps) * limits.partitions


def _by_shared_memory(limits: Limits, taken: Taken) -> int:
    if taken.shared_bytes > limits.block_shared_bytes:
        return 0
    each = _up(taken.shared_bytes + limits.reserved_bytes, limits.shared_step)
    return limits.shared_bytes // each


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
