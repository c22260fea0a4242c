"""Run as a process of its own: how much a case on XLA, or a draw, adds to what the process holds at most, and how much of that
XLA says a launch takes beside its operands and output, in bytes.
"""

import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp

from backends.jax.data import drawn
from backends.xla import XlaBackend
from suite.backend import Probe
from suite.case import Case
from tests.backends.xla.resident_cases import CASES, DRAWS, SMALL


def held_bytes(name: str) -> int:
    """A line of the kernel's account of this process, such as VmHWM."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def lived_through(backend: XlaBackend, case: Case) -> int:
    """All that a worker does with a case; what its launch takes for itself."""
    kernel = backend.prepare(case, 1, seed=1)
    rows, columns = kernel.output_shape
    probe = Probe(0, ((0, 0, min(16, rows), min(16, columns)),), seed=2)
    for seed in (2, 3):
        kernel.poison()
        kernel.enqueue(0)
        kernel.observe(probe)
        kernel.reference(probe)
        kernel.describe()
        kernel.refill(seed)
    temporary = int(kernel.describe()["memory_analysis"]["temporary_bytes"])
    kernel.close()
    return temporary


def main(name: str) -> None:
    backend = XlaBackend({"platform": "cpu"})
    backend.select(0)
    temporary = 0
    if name in DRAWS:
        draw = DRAWS[name]
        jax.block_until_ready(drawn((64, 64), jnp.dtype(draw.dtype), draw.distribution, 1).data)
        before = held_bytes("VmRSS")
        jax.block_until_ready(drawn(draw.shape, jnp.dtype(draw.dtype), draw.distribution, 1).data)
    else:
        lived_through(backend, SMALL[name])  # what libraries and a first compilation take is no case's
        before = held_bytes("VmRSS")
        temporary = lived_through(backend, CASES[name])
    print(held_bytes("VmHWM") - before, temporary)


if __name__ == "__main__":
    main(sys.argv[1])
