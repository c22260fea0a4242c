"""What a crew tells its ranks and what they answer, over a pipe a rank.

Every order goes to all ranks, and every rank answers it with ``Done`` or ``Broke``; until then one that stands still says
``Waits``.  A ticket is a number of the crew's for one collective, a group a number for one process group.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from suite.collectives.data import Kind
from suite.collectives.part import Part
from suite.jobs.collective import Task
from suite.outcome import Outcome

OUTSIDE = -1


class OpenGroup(NamedTuple):
    """Make a process group: of ``gloo`` or ``nccl``, with these variables set or, where ``None``, unset.

    Answered with the ``DebugLog`` that its making left.
    """

    group: int
    backend: str
    environment: Mapping[str, str | None]


class CloseGroup(NamedTuple):
    """Destroy a process group."""

    group: int


class Make(NamedTuple):
    """Allocate a collective's buffers.  Answered with the ``Moves`` of the rank."""

    ticket: int
    task: Task
    group: int


class Fill(NamedTuple):
    """Write data of this kind and seed into the buffers that are sent, and poison what receives."""

    ticket: int
    kind: Kind
    seed: int


class Reset(NamedTuple):
    """Poison what receives; where it is what is sent too, write the data again."""

    ticket: int


class Launch(NamedTuple):
    """Carry the collective out once, and wait."""

    ticket: int


class Sample(NamedTuple):
    """Carry it out so many times, each after a barrier, on data that stay within the format.  Answered with nanoseconds."""

    ticket: int
    iterations: int


class Observe(NamedTuple):
    """Look at what came.  Answered with ``Row``."""

    ticket: int
    slices: tuple[Part, ...]
    seed: int


class Expect(NamedTuple):
    """Compute what should come.  Answered with ``Row``."""

    ticket: int
    slices: tuple[Part, ...]
    seed: int


class CountWrong(NamedTuple):
    """Answered with how many elements of the whole differ from what should have come."""

    ticket: int


class TellChoices(NamedTuple):
    """Answered with what the library has logged of this collective: a tuple of ``LoggedChoice``."""

    ticket: int


class Discard(NamedTuple):
    """Free a collective's buffers."""

    ticket: int


class Leave(NamedTuple):
    """End, without an answer."""


Order = (
    OpenGroup
    | CloseGroup
    | Make
    | Fill
    | Reset
    | Launch
    | Sample
    | Observe
    | Expect
    | CountWrong
    | TellChoices
    | Discard
    | Leave
)


class Done(NamedTuple):
    """The order is carried out."""

    value: Any


class Broke(NamedTuple):
    """The order raised, and this rank cannot be told from one that others wait for: the crew is given up."""

    outcome: Outcome
    reason: str


class Waits(NamedTuple):
    """No answer: the rank stands still in this iteration of the order, which it has entered to do with the others.

    ``OUTSIDE`` where it has entered none.
    """

    iteration: int


class Moves(NamedTuple):
    """What one launch makes a rank move by algorithms of roofbench's own, counted from what is handed over; else ``None``."""

    steps: int
    sent_elements: int
    received_elements: int
    messages: int


class Row(NamedTuple):
    """One rank's row of an output, or of what it should be: slices in float64, elements that nobody wrote, and NaN and Inf.

    ``projection`` is the row times a vector of signs.
    """

    slices: tuple[Any, ...]
    projection: float
    unwritten: int = 0
    nonfinite: int = 0
