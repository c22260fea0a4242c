"""The few PTX instructions that 8-bit numbers are converted by, on arrays of registers.

Source: PTX ISA 8.x, prmt (default mode: byte ``n`` of the result is the byte of {b, a} that nibble ``n`` names; bit 3 of a
nibble, which copies a sign, is not used here) and cvt (of e4m3x2, the low byte to the low half).
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Words = npt.NDArray[np.uint32]


def run(text: str, inputs: Sequence[Words], outputs: int) -> list[Words]:
    """What the assembly leaves in its ``outputs``, which stand before the inputs among its operands."""
    registers: dict[str, Any] = {f"${outputs + place}": words for place, words in enumerate(inputs)}

    def value(name: str) -> Any:
        return registers[name] if name in registers else np.uint32(int(name, 0))

    for line in text.strip().removeprefix("{").removesuffix("}").split(";"):
        found = re.fullmatch(r"([\w.]+) (.*)", line.strip())
        if found is None or found[1] == ".reg":
            continue
        unpacked = re.fullmatch(r"\{(\w+), (\w+)\}, (\S+)", found[2])
        if unpacked:
            word = value(unpacked[3])
            registers[unpacked[1]], registers[unpacked[2]] = word & np.uint32(0xFFFF), word >> np.uint32(16)
            continue
        target, *names = (name.strip() for name in found[2].split(","))
        registers[target] = _result(found[1], [value(name) for name in names])
    return [registers[f"${place}"] for place in range(outputs)]


def _result(operation: str, given: list[Any]) -> Any:
    if operation == "mov.b32":
        return given[0]
    if operation == "xor.b32":
        return given[0] ^ given[1]
    if operation == "prmt.b32":
        return _permuted(*given)
    if operation == "cvt.rn.f16x2.e4m3x2":
        low, high = (given[0] & np.uint32(0xFF), given[0] >> np.uint32(8))
        return _pair(
            *(torch.from_numpy(each.astype(np.uint8)).view(torch.float8_e4m3fn).half().numpy() for each in (low, high))
        )
    assert operation == "sub.f16x2", operation
    (a_low, a_high), (b_low, b_high) = map(halves, given)
    return _pair(a_low - b_low, a_high - b_high)


def _permuted(a: Any, b: Any, selector: Any) -> Any:
    found = np.uint32(0)
    for place in range(4):
        chosen = int(selector) >> 4 * place & 7
        byte = (a if chosen < 4 else b) >> np.uint32(8 * (chosen % 4)) & np.uint32(0xFF)
        found = found | byte << np.uint32(8 * place)
    return found


def _pair(low: Any, high: Any) -> Any:
    bits = [each.astype(np.float16).view(np.uint16).astype(np.uint32) for each in (low, high)]
    return bits[0] | bits[1] << np.uint32(16)


def halves(words: Any) -> tuple[Any, Any]:
    """The two fp16 in a register: low, high."""
    bits = np.atleast_1d(words)
    return tuple((bits >> np.uint32(at) & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16) for at in (0, 16))  # type: ignore[return-value]
