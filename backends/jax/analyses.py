"""What XLA says of a program that it compiled: the work it counts, and the memory that a run needs.

XLA gives -1 for what it does not know; that, and what a platform does not tell at all, is left out.
"""

from typing import Any

COSTS = {"flops": "flops", "bytes accessed": "bytes_accessed", "optimal_seconds": "optimal_seconds"}
SIZES = {
    "argument_size_in_bytes": "argument_bytes",
    "output_size_in_bytes": "output_bytes",
    "alias_size_in_bytes": "aliased_bytes",
    "temp_size_in_bytes": "temporary_bytes",
    "generated_code_size_in_bytes": "code_bytes",
}


def cost_analysis(executable: Any) -> dict[str, float]:
    """By XLA's own count of the program: operations, bytes that instructions access, and its estimate of the time, seconds."""
    said = executable.cost_analysis() or {}
    return {name: float(said[written]) for written, name in COSTS.items() if said.get(written, -1) >= 0}


def memory_analysis(executable: Any) -> dict[str, int]:
    """Bytes of arguments, of results, of what these share with each other, of what a run takes beside them, and of code."""
    said = executable.memory_analysis()
    sizes = {name: int(getattr(said, written, -1)) for written, name in SIZES.items()}
    return {name: size for name, size in sizes.items() if size >= 0}
