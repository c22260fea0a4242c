"""What a compiled kernel takes and what it multiplies with, from its binary and its assembly."""

from typing import Any

from backends.targets import amd, nvidia
from backends.triton.gemm.instructions import matrix_instructions


def is_amd(kernel: Any) -> bool:
    """Whether it was compiled for AMD."""
    return "amdgcn" in kernel.asm


def text_of(kernel: Any) -> str:
    """Its assembly: AMD's, or PTX."""
    return str(kernel.asm["amdgcn" if is_amd(kernel) else "ptx"])


def facts(kernel: Any) -> dict[str, Any]:
    """``spilled_bytes`` are of one thread; ``warps`` of a block; ``shared_bytes`` what a launch asks for."""
    own = amd.facts(kernel) if is_amd(kernel) else nvidia.facts(kernel)
    return {
        "kernel": str(kernel.metadata.name),
        **own,
        "shared_bytes": int(kernel.metadata.shared),
        "scratch_bytes": int(getattr(kernel.metadata, "global_scratch_size", 0)),
        "instructions": matrix_instructions(text_of(kernel)),
    }
