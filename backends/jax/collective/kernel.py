"""A collective made ready on a mesh of host devices: the contract ``suite.backend.Kernel``, with a row a rank.

Random data are what is timed and what the spine checks; beside them whole numbers, whose sums are exact, are sent once before
timing and once after, and every element of every rank is compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from backends.failures import Classified
from backends.host.cpuinfo import processors
from backends.jax.collective.crew import Crew
from backends.jax.collective.orders import CountWrong, Expect, Fill, Forget, Launch, Made, Make, Observe, Row
from suite.backend import Failure, Observed, Probe, Reference
from suite.collectives import own
from suite.collectives.bandwidth import busbw_formula
from suite.collectives.choice import LIBRARY
from suite.collectives.cores import Host, described
from suite.collectives.part import Part
from suite.jobs.collective import Task
from suite.jobs.collective.task import OWN
from suite.outcome import Outcome


class XlaCollective:
    """``crew`` holds one collective at a time: the one made last."""

    execution = "native"
    sets = 1

    def __init__(self, crew: Crew, task: Task, seed: int) -> None:
        self.crew, self.task = crew, task
        self._made: Made = crew.ask(Make(task))
        self._check_moves()
        self.refill(seed)

    @property
    def set_bytes(self) -> int:
        """Of one rank."""
        return self.task.message.buffer_bytes(self.task.in_place)

    @property
    def output_shape(self) -> tuple[int, int]:
        return self.task.ranks, self.task.message.receive_elements

    def enqueue(self, set_index: int) -> None:
        self.crew.ask(Launch())

    def refill(self, seed: int) -> None:
        """Exact integers first, sent and compared; then random data, which stay."""
        self.crew.ask(Fill("integers", seed))
        self.crew.ask(Launch())
        wrong = self.crew.ask(CountWrong())
        if any(wrong):
            ranks = ", ".join(str(rank) for rank, count in enumerate(wrong) if count)
            told = f"{max(wrong)} of {self.task.message.receive_elements} elements at worst, on ranks {ranks} of {len(wrong)}"
            raise Classified(Failure(Outcome.INCORRECT, f"exact integers came out wrong: {told}", fatal=False))
        self.crew.ask(Fill("random", seed))

    def poison(self) -> None:
        """XLA makes its result anew in every launch: without one there is nothing to look at."""
        self.crew.ask(Forget())

    def observe(self, probe: Probe) -> Observed:
        rows = self.crew.ask(Observe(_slices(probe), probe.seed))
        return Observed(_tiles(rows, probe), 0, sum(row.nonfinite for row in rows), _projection(rows))

    def reference(self, probe: Probe) -> Reference:
        rows = self.crew.ask(Expect(_slices(probe), probe.seed))
        return Reference(_tiles(rows, probe), _projection(rows))

    def describe(self) -> Mapping[str, Any]:
        task, made = self.task, self._made
        size = task.message.itemsize
        moved = {"steps": made.permutes, "sent_bytes": [made.permuted_elements * size] * task.ranks}
        return {
            "transport": task.transport.value,
            "algorithm_source": OWN if task.implementation == OWN else LIBRARY,
            "library": made.library,
            "asked": task.choice.label,
            "operations": list(made.opcodes),
            "devices": f"{task.ranks} forced devices of the host, in one process",
            **described([Host(task.ranks, processors().cores)]),
            "compile_s": made.compile_s,
            "cost_analysis": dict(made.costs),
            "memory_analysis": dict(made.sizes_bytes),
            "busbw": busbw_formula(task.op),
            "bytes": task.message.message_bytes,
            **(moved if task.implementation == OWN else {}),
            "check": "random data by tiles and projection; exact integers, every element of every rank",
        }

    def close(self) -> None:
        """The crew's memory is the next collective's."""

    def _check_moves(self) -> None:
        """Hold what the compiled permutes move against the algorithm's formula: another count is another algorithm."""
        task, made = self.task, self._made
        if task.implementation != OWN or task.choice.algo is None:
            return
        elements = max(task.message.send_elements, task.message.receive_elements)
        padded = -(-elements // task.ranks) * task.ranks
        formula = own.expected(task.op, task.choice.algo, task.ranks, 0, padded, task.message.itemsize)
        if (made.permuted_elements, made.permutes) != (formula.sent_elements, formula.messages):
            counted = f"{made.permuted_elements} elements in {made.permutes} permutes"
            due = f"{formula.sent_elements} in {formula.messages}"
            reason = f"a rank moves {counted}, by the formula of the {task.choice.algo} {due}"
            raise Classified(Failure(Outcome.ERROR, reason, fatal=False))


def _slices(probe: Probe) -> tuple[Part, ...]:
    return tuple(Part(column, columns) for _, column, _, columns in probe.tiles)


def _tiles(rows: Sequence[Row], probe: Probe) -> tuple[Any, ...]:
    return tuple(
        np.stack([each.slices[index] for each in rows[row : row + height]])
        for index, (row, _, height, _) in enumerate(probe.tiles)
    )


def _projection(rows: Sequence[Row]) -> Any:
    return np.array([row.projection for row in rows])
