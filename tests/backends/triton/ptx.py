"""The few PTX instructions that weights are converted by, on arrays of registers.

Source: PTX ISA 8.x, lop3 (the table's bit for a, b, c is at 4a + 2b + c), fma.rn.bf16x2 (each half rounded once, subnormal
numbers kept) and cvt.rn.f16x2.f32 (its first operand goes to the upper half).
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.float64]


def run(text: str, inputs: Sequence[Words], outputs: int) -> list[Words]:
    """What the assembly leaves in its ``outputs``, which stand before the inputs among its operands."""
    registers: dict[str, Any] = {f"${outputs + place}": words for place, words in enumerate(inputs)}

    def value(name: str) -> Any:
        return registers[name] if name in registers else np.uint32(int(name, 0))

    for line in text.strip().strip("{}").split(";"):
        found = re.fullmatch(r"([\w.]+) (.*)", line.strip())
        if found is None or found[1] == ".reg":
            continue
        target, *names = (name.strip() for name in found[2].split(","))
        registers[target] = _result(found[1], [value(name) for name in names])
    shape = np.broadcast_shapes(*(words.shape for words in inputs))
    return [np.broadcast_to(registers[f"${place}"], shape) for place in range(outputs)]


def _result(operation: str, given: list[Any]) -> Any:
    if operation == "mov.b32":
        return given[0]
    if operation == "shr.b32":
        return given[0] >> given[1]
    if operation == "shl.b32":
        return given[0] << given[1]
    if operation == "and.b32":
        return given[0] & given[1]
    if operation == "lop3.b32":
        return _lop3(*given)
    if operation == "mul.f32":
        a, b = (np.asarray(each, dtype=np.uint32).view(np.float32) for each in given)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return (a * b).view(np.uint32)
    if operation == "cvt.rn.f16x2.f32":
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            high, low = (each.view(np.float32).astype(np.float16).view(np.uint16).astype(np.uint32) for each in given)
        return low | (high << np.uint32(16))
    assert operation == "fma.rn.bf16x2", operation
    low, high = (bf16_bits(a * b + c) for a, b, c in zip(*(halves(each) for each in given), strict=True))
    return low | (high << np.uint32(16))


def _lop3(a: Any, b: Any, c: Any, table: Any) -> Any:
    found = np.uint32(0)
    for place in range(8):
        if int(table) >> place & 1:
            found = found | (a if place & 4 else ~a) & (b if place & 2 else ~b) & (c if place & 1 else ~c)
    return found


def halves(words: Any) -> tuple[Numbers, Numbers]:
    """The two bf16 in a register: low, high."""
    low, high = (np.uint32(words) << np.uint32(16)), np.uint32(words) & np.uint32(0xFFFF0000)
    return tuple(np.atleast_1d(each).view(np.float32).astype(np.float64) for each in (low, high))  # type: ignore[return-value]


def bf16_bits(numbers: Numbers) -> Words:
    """Rounded to the nearest, ties to even; what fp32 holds exactly, so that nothing is rounded twice."""
    narrow = numbers.astype(np.float32)
    assert np.array_equal(narrow.astype(np.float64), numbers, equal_nan=True), "rounded on the way to fp32"
    bits = narrow.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(narrow), np.uint32(0x7FFF), rounded).astype(np.uint32)


def pair(numbers: Numbers) -> Words:
    """Registers with a number in both halves."""
    bits = bf16_bits(np.asarray(numbers, dtype=np.float64))
    return bits | (bits << np.uint32(16))
