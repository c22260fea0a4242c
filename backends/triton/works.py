"""Whether Triton can compile and launch here: it needs a C compiler and Python's headers on the machine that runs it."""

import subprocess
from functools import cache
from importlib.util import find_spec


@cache
def why_not() -> str:
    """Try it once on the current CUDA device; empty when it works, else the reason in one line."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    try:
        from backends.triton.device_clock import DeviceClock

        DeviceClock(units=1, marks=2)
    # What Triton's build of its launcher raises: no compiler, a compiler that fails, no headers, a library that does not load.
    except (ImportError, OSError, RuntimeError, subprocess.CalledProcessError) as error:
        return f"Triton cannot compile here: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""
