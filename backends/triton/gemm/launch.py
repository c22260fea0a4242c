"""A call made ready: compiled for the current device, loaded, and launched without Triton's argument handling."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from backends.triton.gemm.call import Call
from backends.triton.gemm.instructions import matrix_instructions


class Loaded(NamedTuple):
    """``launch()`` enqueues on torch's current stream; ``facts`` are what the compiler and the driver say of the kernel."""

    launch: Callable[[], Any]
    facts: Mapping[str, Any]


Load = Callable[[Call], Loaded]


def load(call: Call) -> Loaded:
    """Compile (once for equal constants and alignments in a process) and load.

    Raises Triton's errors, ``OutOfResources`` where the device has too little shared memory or too few registers.
    """
    compiled = call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)
    run = compiled[call.grid]  # loads it
    return Loaded(partial(run, *call.arguments, *call.constants.values()), facts(compiled))


def facts(compiled: Any) -> dict[str, Any]:
    """``spilled_words`` are of 4 bytes and of one thread, as Triton counts them."""
    asm = compiled.asm
    return {
        "kernel": str(compiled.name),
        "registers": int(compiled.n_regs),
        "spilled_words": int(compiled.n_spills),
        "shared_bytes": int(compiled.metadata.shared),
        "instructions": matrix_instructions(str(asm["ptx"] if "ptx" in asm else asm["amdgcn"])),
    }
