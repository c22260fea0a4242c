"""JAX is loaded where it is installed; the tests of this room need it."""

import os
from pathlib import Path

import pytest

# Read when XLA compiles first.  What these tests read is the program before it goes to LLVM, and what it computes; of each they
# compile a new one, whose machine code runs a few times.  Where there is a GPU its kernels are timed.
if not Path("/dev/nvidiactl").exists():
    os.environ["XLA_FLAGS"] = " ".join([*os.environ.get("XLA_FLAGS", "").split(), "--xla_backend_optimization_level=0"])

pytest.importorskip("jax")
