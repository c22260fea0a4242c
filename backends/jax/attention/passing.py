"""What a compiled launch writes to memory between its steps and reads again, by its HLO."""

from collections.abc import Iterator, Mapping

from backends.jax.hlo import Instruction, Module
from suite.jobs.emulation import PASSING_BYTES

# What stands for an array that is in memory already.
NAMES_ONLY = {"parameter", "tuple", "get-tuple-element", "bitcast", "constant", "opt-barrier", "after-all"}
ON_THE_CHIP = ("tpu",)  # whose compiler keeps such arrays in the chip's own memory where they fit


def passing(module: Module, kind: str) -> dict[str, int]:
    """Of the entry's instructions, each a kernel or a call: the bytes that one writes and another reads.

    At least: of several results of an instruction the first alone is counted, and what is read more than once, once.  Nothing
    is said of a TPU.
    """
    if kind in ON_THE_CHIP:
        return {}
    entry = {each.name: each for each in module.computations[module.entry]}
    read = {name for each in entry.values() if each.opcode not in NAMES_ONLY for name in _read(each, entry)}
    size_bytes = sum(array.size_bytes for name in read for array in entry[name].arrays[:1])
    return {PASSING_BYTES: size_bytes} if size_bytes else {}


def _read(instruction: Instruction, entry: Mapping[str, Instruction]) -> Iterator[str]:
    """What wrote an instruction's operands, behind the names that they go by; nothing for what the launch was given."""
    waiting = list(instruction.operands)
    while waiting:
        each = entry.get(waiting.pop())
        if each is None:
            continue
        if each.opcode in NAMES_ONLY:
            waiting += each.operands
        else:
            yield each.name
