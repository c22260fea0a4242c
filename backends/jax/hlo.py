"""Reading compiled HLO text: what stands inside a loop and what the compiler took out of it.

The text form is XLA's own (``compiled.as_text()``); only what an audit needs is read: computations, and of each
instruction its name, result type, opcode, operands and the computations it calls.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_HEADER = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<rest>.+)$")
_OPCODE = re.compile(r"^(?P<opcode>[\w\-]+)\(")
_NAME = re.compile(r"%([\w.\-]+)")
_CALLS = "calls|body|condition|to_apply|called_computations|branch_computations"
_CALLED = re.compile(rf"\b(?:{_CALLS})=(?:\{{(?P<several>[^}}]*)\}}|(?P<one>%?[\w.\-]+))")
_TARGET = re.compile(r'custom_call_target="([^"]+)"')
_SHAPE = re.compile(r"(?P<type>[a-z]\w*)\[(?P<sizes>[\d,]*)\]")
BITS = {"pred": 8, "s4": 4, "u4": 4, "f4e2m1fn": 4}

# What computes nothing.  A copy outside a loop is paid once a program, and a slope between two lengths does not see it.
PASSIVE = {
    *("parameter", "tuple", "get-tuple-element", "while", "bitcast", "constant", "opt-barrier", "after-all"),
    *("copy", "copy-start", "copy-done", "call", "conditional"),
}


class Array(NamedTuple):
    """Element type as XLA writes it (``bf16``, ``s8``, ``f8e4m3fn``) and the number of elements."""

    type: str
    elements: int

    @property
    def size_bytes(self) -> int:
        digits = re.search(r"\d+", self.type)
        bits = BITS.get(self.type, int(digits.group()) if digits else 8)
        return self.elements * bits // 8


class Instruction(NamedTuple):
    """``arrays`` is the result, one for each array of a tuple; ``target`` the library routine of a custom call."""

    name: str
    arrays: tuple[Array, ...]
    opcode: str
    operands: tuple[str, ...]
    calls: tuple[str, ...]
    target: str

    @property
    def elements(self) -> int:
        return max((array.elements for array in self.arrays), default=0)


class Module(NamedTuple):
    """Computations by name, each its instructions in order; ``entry`` is where a program starts."""

    entry: str
    computations: Mapping[str, tuple[Instruction, ...]]

    def reachable(self, *roots: str) -> set[str]:
        """Computations that running any of ``roots`` runs, themselves included."""
        seen, waiting = set(), list(roots)
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self.computations:
                seen.add(name)
                waiting += [called for each in self.computations[name] for called in each.calls]
        return seen

    def loops(self) -> list[Instruction]:
        """Every while instruction outside another loop."""
        return [each for each in self.outside() if each.opcode == "while"]

    def outside(self) -> Iterator[Instruction]:
        """Instructions that run once a program: the entry's, and those of the plain calls it makes."""
        waiting, seen = [self.entry], set()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            for each in self.computations[name]:
                yield each
                if each.opcode in ("call", "conditional"):
                    waiting += [called for called in each.calls if called not in seen]


class Audit(NamedTuple):
    """What a program that is meant to repeat its work in one loop really does.

    Of arrays of at least the size asked about: ``hoisted`` names instructions that run once, outside the loop, and
    ``copied_bytes`` is what one turn copies; ``doubled`` names a fusion that writes two such arrays, the result and an operand
    written back whole, or is empty.  ``products`` counts the matrix products of one turn.
    """

    loops: int
    hoisted: tuple[str, ...]
    copied_bytes: int
    doubled: str
    products: int


def parse(text: str) -> Module:
    """Read a module; ``ValueError`` where no entry computation is found."""
    computations: dict[str, list[Instruction]] = {}
    entry, current = "", None
    for line in text.splitlines():
        header = _HEADER.match(line)
        if header and "->" in line:
            current = computations.setdefault(header["name"], [])
            entry = header["name"] if header["entry"] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and (found := _INSTRUCTION.match(line)):
            current.append(_instruction(found["name"], found["rest"]))
    if not entry:
        raise ValueError("no entry computation in this HLO text")
    return Module(entry, {name: tuple(each) for name, each in computations.items()})


def audit(module: Module, elements: int) -> Audit:
    """Look at a program for arrays of at least ``elements``."""
    loops = module.loops()
    inside = module.reachable(*(called for loop in loops for called in loop.calls))
    body = [each for name in inside for each in module.computations[name]]
    return Audit(
        len(loops),
        tuple(each.name for each in _working(list(module.outside()), elements)),
        _copied_bytes(body, elements),
        next((each.name for each in body if each.opcode == "fusion" and _writes_two(each, elements)), ""),
        sum(is_product(each) for each in body),
    )


def copied_bytes(module: Module, elements: int) -> int:
    """What a program without a loop copies, of arrays of at least ``elements``."""
    return _copied_bytes([each for body in module.computations.values() for each in body], elements)


def _copied_bytes(instructions: Sequence[Instruction], elements: int) -> int:
    copies = (each for each in instructions if each.opcode in ("copy", "copy-start") and each.elements >= elements)
    return sum(array.size_bytes for each in copies for array in each.arrays[:1])


def _working(instructions: Sequence[Instruction], elements: int) -> list[Instruction]:
    """Those that read or write at least ``elements`` at once."""
    sizes = {each.name: each.elements for each in instructions}
    return [
        each
        for each in instructions
        if each.opcode not in PASSIVE and max(each.elements, *(sizes.get(name, 0) for name in each.operands), 0) >= elements
    ]


def _writes_two(instruction: Instruction, elements: int) -> bool:
    return sum(array.elements >= elements for array in instruction.arrays) > 1


def is_product(instruction: Instruction) -> bool:
    """Whether this is a matrix product: XLA's own, which a TPU's compiler writes as a convolution, or a library's."""
    words = ("gemm", "matmul", "dot")
    return instruction.opcode in ("dot", "convolution") or any(word in instruction.target.lower() for word in words)


def product_types(module: Module) -> set[str]:
    """Element types that the program's matrix products take."""
    found = set()
    for instructions in module.computations.values():
        arrays = {each.name: each.arrays for each in instructions}
        for each in filter(is_product, instructions):
            found |= {array.type for name in each.operands[:2] for array in arrays.get(name, ())[:1]}
    return found


def targets(module: Module) -> tuple[str, ...]:
    """The library routines that a program calls, in alphabetical order."""
    return tuple(sorted({each.target for body in module.computations.values() for each in body if each.target}))


def _instruction(name: str, rest: str) -> Instruction:
    kind, rest = _split_type(rest)
    opcode = _OPCODE.match(rest)
    inner, attributes = _split_operands(rest[opcode.end() :]) if opcode else ("", rest)
    groups = (found["several"] or found["one"] or "" for found in _CALLED.finditer(attributes))
    called = tuple(one.strip().lstrip("%") for group in groups for one in group.split(",") if one)
    target = _TARGET.search(attributes)
    arrays = tuple(
        Array(found["type"], math.prod(int(size) for size in found["sizes"].split(",") if size))
        for found in _SHAPE.finditer(re.sub(r"\{[^}]*\}", "", kind))
    )
    return Instruction(
        name, arrays, opcode["opcode"] if opcode else "", tuple(_NAME.findall(inner)), called, target.group(1) if target else ""
    )


def _split_type(rest: str) -> tuple[str, str]:
    """The result type, which for a tuple holds blanks and parentheses, and what follows it."""
    if not rest.startswith("("):
        kind, _, after = rest.partition(" ")
        return kind, after
    end = _closing(rest, 1)
    return rest[:end], rest[end:].lstrip(" ")


def _split_operands(rest: str) -> tuple[str, str]:
    end = _closing(rest, 1)
    return rest[: end - 1], rest[end:]


def _closing(text: str, depth: int) -> int:
    """The position behind the parenthesis that closes; ``text`` starts inside ``depth`` of them, or at the first."""
    depth = 0 if text.startswith("(") and depth == 1 else depth
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            return position + 1
    return len(text)
