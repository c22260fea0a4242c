"""What the worker asks of the process that has the devices, and what comes back, over a pipe.

Everything is asked of all ranks at once, as one program is theirs; ``Broke`` leaves the process as it is.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from suite.collectives.data import Kind
from suite.collectives.part import Part
from suite.jobs.collective import Task
from suite.outcome import Outcome


class Make(NamedTuple):
    """Compile a collective, in place of the one before.  Answered with ``Made``."""

    task: Task


class Fill(NamedTuple):
    """Draw data of this kind and seed, and put each rank's on its device."""

    kind: Kind
    seed: int


class Forget(NamedTuple):
    """Drop the result."""


class Launch(NamedTuple):
    """Carry the collective out once, and wait."""


class Sample(NamedTuple):
    """So many times, each when everything before has ended.  Answered with nanoseconds."""

    iterations: int


class Observe(NamedTuple):
    """Answered with a ``Row`` a rank of what came."""

    slices: tuple[Part, ...]
    seed: int


class Expect(NamedTuple):
    """Answered with a ``Row`` a rank of what should come."""

    slices: tuple[Part, ...]
    seed: int


class CountWrong(NamedTuple):
    """Answered with how many elements of each rank differ from what should have come."""


class Leave(NamedTuple):
    """End, without an answer."""


Order = Make | Fill | Forget | Launch | Sample | Observe | Expect | CountWrong | Leave


class Done(NamedTuple):
    """The order is carried out."""

    value: Any


class Broke(NamedTuple):
    """The order raised."""

    outcome: Outcome
    reason: str


class Made(NamedTuple):
    """What became of a collective: the operations that the compiler left, and of permutes what one rank moves.

    ``costs`` and ``sizes_bytes`` are what XLA counts of it (``backends.jax.analyses``).
    """

    platform: str
    library: str
    opcodes: tuple[str, ...]
    permuted_elements: int
    permutes: int
    compile_s: float
    costs: Mapping[str, float]
    sizes_bytes: Mapping[str, int]


class Row(NamedTuple):
    """One rank's row of an output, or of what it should be: slices in float64, and the row times a vector of signs."""

    slices: tuple[Any, ...]
    projection: float
    nonfinite: int = 0
