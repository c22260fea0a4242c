"""What LLVM writes of a kernel into AMD's assembly: registers, spills, waves and the size of its code.

``.vgpr_count`` is of both kinds of vector registers together where they share one file (gfx90a and later).
"""

import re
from typing import Any

_METADATA = {
    "registers": "vgpr_count",
    "scalar_registers": "sgpr_count",
    "spilled_bytes": "private_segment_fixed_size",
    "threads": "max_flat_workgroup_size",
    "lanes": "wavefront_size",
}


def read(amdgcn: str) -> dict[str, int]:
    """Figures of the one kernel in the text; ``ValueError`` where one of them is missing."""
    found = {name: _number(rf"\.{written}:\s+(\d+)", amdgcn) for name, written in _METADATA.items()}
    threads, lanes = found.pop("threads"), found.pop("lanes")
    accumulation = re.search(r"\.agpr_count:\s+(\d+)", amdgcn)
    return {
        **found,
        "accumulation_registers": int(accumulation[1]) if accumulation else 0,
        "warps": threads // lanes,
        "code_bytes": _number(r"; codeLenInByte = (\d+)", amdgcn),
    }


def facts(kernel: Any) -> dict[str, int]:
    """Of a kernel with AMD's assembly."""
    return read(kernel.asm["amdgcn"])


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"the assembly has no {pattern.partition(':')[0].strip(chr(92) + '.; ')}")
    return int(found[1])
