"""Which targets multiply which format as it is stored.

Sources.  Instructions: PTX ISA, mma and tcgen05.mma with block_scale; CUTLASS documentation, "Blackwell SM100 GEMMs"; HIP
documentation, "Low precision floating point types" (fp8 of gfx940 to gfx942 is FNUZ, later ones follow OCP); LLVM, f8f6f4
instructions with scales of gfx950 (blocks of 32) and gfx1250 (also of 16 with E4M3 scales).  Libraries, as torch calls them:
ATen/native/cuda/ScaledBlas.cpp and int4mm.cu; cuBLAS documentation, "Narrow Precision Data Types Usage".
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from backends.torch.quantise.blocks import ROW_128, SQUARE_128
from backends.torch.quantise.formats import format_of
from suite.errors import UsageError
from suite.jobs.fp8 import FNUZ, FP8, OCP

BLOCKS_OF_128 = (ROW_128.name, SQUARE_128.name)
FNUZ_TARGETS = ("gfx940", "gfx941", "gfx942")


class Target(NamedTuple):
    """A device by what its code is compiled for; ``capability`` is NVIDIA's."""

    name: str
    capability: tuple[int, int] | None

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Read ``sm_90``, ``sm_100a``, ``gfx950`` or ``cpu``; raises ``UsageError`` for anything else."""
        if found := re.fullmatch(r"sm_(\d+)(\d)[af]?", text):
            return cls(text, (int(found[1]), int(found[2])))
        if text == "cpu" or re.fullmatch(r"gfx[0-9a-f]{3,}", text):
            return cls(text, None)
        raise UsageError(f"unknown target '{text}'; write sm_90, gfx950 or cpu for instance")


class Takers(NamedTuple):
    """Targets that take a format: NVIDIA's from one capability up to another, AMD's by their names, CPUs.

    ``words`` names them; ``instead`` is what to do on others.
    """

    words: str
    instead: str
    sm_from: tuple[int, int] | None = None
    sm_to: tuple[int, int] | None = None
    gfx: tuple[str, ...] = ()
    cpu: bool = False

    def include(self, target: Target) -> bool:
        if target.capability is None:
            return self.cpu if target.name == "cpu" else target.name in self.gfx
        return self.sm_from is not None and self.sm_from <= target.capability <= (self.sm_to or target.capability)


_TO_BF16 = "have it emulated: numbers converted to bf16"
MATRIX_CORES = ("gfx908", "gfx90a", *FNUZ_TARGETS, "gfx950", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201", "gfx1250")
_FP8 = Takers("sm_89 or later, gfx950 or gfx12", _TO_BF16, sm_from=(8, 9), gfx=("gfx950", "gfx1200", "gfx1201", "gfx1250"))
_FP8_FNUZ = Takers("gfx940 to gfx942", "take OCP's encoding, or " + _TO_BF16, gfx=FNUZ_TARGETS)
_MX = Takers("sm_100 or later, gfx950 or gfx1250", _TO_BF16, sm_from=(10, 0), gfx=("gfx950", "gfx1250"))
_NVFP4 = Takers("sm_100 or later, or gfx1250", _TO_BF16, sm_from=(10, 0), gfx=("gfx1250",))
_INT8 = Takers("sm_75 or later, AMD's matrix cores or a CPU", "multiply in fp32", sm_from=(7, 5), gfx=MATRIX_CORES, cpu=True)
_WEIGHT_ONLY = _INT8._replace(words="bf16 products: sm_80 or later, AMD's matrix cores or a CPU", sm_from=(8, 0))

# Scales that are not an instruction's own, such as those of fp8 in blocks of 128, a kernel applies to its sums in between.
INSTRUCTIONS: Mapping[str, Takers] = {
    "fp8_e4m3": _FP8,
    "fp8_e5m2": _FP8,
    "mxfp8_e4m3": _MX,
    "mxfp8_e5m2": _MX,
    "mxfp6_e2m3": _MX,
    "mxfp6_e3m2": _MX,
    "mxfp4": _MX,
    "nvfp4": _NVFP4,
    "int8": _INT8,
    "w8a16": _WEIGHT_ONLY,
    "w4a16": _WEIGHT_ONLY,
}

# Where the libraries take fewer than the instructions do.
_KERNEL = "take a kernel"
_NO_FP6 = Takers("another format: torch has no type of six bits", _KERNEL)
LIBRARIES: Mapping[str, Takers] = {
    **INSTRUCTIONS,
    "mxfp6_e2m3": _NO_FP6,
    "mxfp6_e3m2": _NO_FP6,
    "mxfp4": Takers("sm_100, sm_103 or gfx950", _KERNEL, sm_from=(10, 0), sm_to=(10, 3), gfx=("gfx950",)),
    "nvfp4": Takers("sm_100 or later", _KERNEL, sm_from=(10, 0)),
    "w4a16": _WEIGHT_ONLY._replace(
        words="sm_80 or later, gfx90a to gfx950 or a CPU", instead=_KERNEL, gfx=("gfx90a", *FNUZ_TARGETS, "gfx950")
    ),
}
LIBRARIES_IN_BLOCKS_OF_128 = Takers(
    "sm_90 (cuBLASLt has blocks of 128 on Hopper only)",
    "take scales of each row, mxfp8 where there is sm_100 or later, or a kernel",
    sm_from=(9, 0),
    sm_to=(9, 0),
)


def encoding_for(target: str) -> str:
    """The encoding of fp8 that a target multiplies; ``OCP`` where it multiplies neither."""
    return FNUZ if target in FNUZ_TARGETS else OCP


def consumable(
    name: str, block: str, target: str, *, zero_point: bool = False, library: bool = False, encoding: str = OCP
) -> str | None:
    """Why ``target`` cannot multiply a format with these blocks as it is stored, with the remedy; ``None`` when it can.

    It can when its matrix instructions take the elements, and also the scales where a kernel could not apply them between
    instructions; with ``library``, when a library that torch calls does.  ``encoding`` is that of plain fp8.  Raises
    ``UsageError`` for a format, block or target that there is not.
    """
    format_, machine = format_of(name, block, zero_point=zero_point, encoding=encoding), Target.parse(target)
    in_fnuz = name in FP8 and encoding == FNUZ
    by_instruction = _FP8_FNUZ if in_fnuz else INSTRUCTIONS[name]
    if name in FP8 and target in FNUZ_TARGETS and not in_fnuz:
        return f"{target} multiplies fp8 in the FNUZ encoding, {format_.title} is in OCP's; {_TO_BF16}"
    if not by_instruction.include(machine):
        return f"{format_.title} needs {by_instruction.words}, not {target}; {by_instruction.instead}"
    if not library:
        return None
    if zero_point and name == "int8":
        return f"{format_.title}: no library call takes zero points; leave them out, or {_KERNEL}"
    in_blocks_of_128 = name in FP8 and block in BLOCKS_OF_128
    by_library = LIBRARIES_IN_BLOCKS_OF_128 if in_blocks_of_128 else by_instruction if in_fnuz else LIBRARIES[name]
    if by_library.include(machine):
        return None
    return f"{format_.title} through a library needs {by_library.words}, not {target}; {by_library.instead}"
