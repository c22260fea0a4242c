"""A collective made ready on a crew: the contract ``suite.backend.Kernel`` over all ranks.

Its output is a matrix with a row a rank.  Random data are what is timed and what the spine checks; beside them whole numbers,
whose sums are exact, are sent once before timing and once after, and every element of every rank is compared.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from backends.failures import Classified
from backends.host.cpuinfo import processors
from backends.torch.collective import forced
from backends.torch.collective.crew import Crew, Group
from backends.torch.collective.orders import (
    CountWrong,
    Discard,
    Expect,
    Fill,
    Launch,
    Make,
    Moves,
    Observe,
    Reset,
    Row,
    TellChoices,
)
from suite.backend import Failure, Observed, Probe, Reference
from suite.collectives import own
from suite.collectives.bandwidth import busbw_formula
from suite.collectives.choice import LIBRARY
from suite.collectives.cores import Host, described
from suite.collectives.log.observed import Observation
from suite.collectives.part import Part
from suite.collectives.transport import Transport
from suite.jobs.collective import Task
from suite.jobs.collective.task import OWN
from suite.outcome import Outcome
from suite.ranks.places import Places


class CollectiveKernel:
    """``library`` names the one that ``group`` is of."""

    execution = "native"
    sets = 1

    def __init__(self, crew: Crew, task: Task, group: Group, library: str, seed: int) -> None:
        self.crew, self.task = crew, task
        self._group, self._log, self._library = group, group.log, library
        self._ticket = crew.number()
        with ExitStack() as undo:  # nobody else closes a kernel that could not be made
            group.users += 1
            undo.callback(self.close)
            self._moves: list[Moves | None] = crew.ask(Make(self._ticket, task, group.number))
            self._check_moves()
            self.refill(seed)
            undo.pop_all()

    @property
    def ticket(self) -> int:
        return self._ticket

    @property
    def set_bytes(self) -> int:
        """Of one rank."""
        return self.task.message.buffer_bytes(self.task.in_place)

    @property
    def output_shape(self) -> tuple[int, int]:
        return self.task.ranks, self.task.message.receive_elements

    def enqueue(self, set_index: int) -> None:
        self.crew.ask(Launch(self._ticket))

    def refill(self, seed: int) -> None:
        """Exact integers first, sent and compared; then random data, which stay.

        Raises ``Classified`` where integers come out wrong, where something else ran than was asked of the library, or where
        nobody saw that what was asked for ran.
        """
        self.crew.ask(Fill(self._ticket, "integers", seed))
        self.crew.ask(Launch(self._ticket))
        wrong = self.crew.ask(CountWrong(self._ticket))
        forced.refuse_other(self.task, self._observation())
        if any(wrong):
            raise Classified(Failure(Outcome.INCORRECT, self._told_wrong(wrong), fatal=False))
        self.crew.ask(Fill(self._ticket, "random", seed))

    def poison(self) -> None:
        self.crew.ask(Reset(self._ticket))

    def observe(self, probe: Probe) -> Observed:
        rows = self.crew.ask(Observe(self._ticket, _slices(probe), probe.seed))
        unwritten, nonfinite = sum(row.unwritten for row in rows), sum(row.nonfinite for row in rows)
        return Observed(_tiles(rows, probe), unwritten, nonfinite, _projection(rows))

    def reference(self, probe: Probe) -> Reference:
        rows = self.crew.ask(Expect(self._ticket, _slices(probe), probe.seed))
        return Reference(_tiles(rows, probe), _projection(rows))

    def describe(self) -> Mapping[str, Any]:
        task = self.task
        return {
            "transport": task.transport.value,
            "algorithm_source": OWN if task.implementation == OWN else LIBRARY,
            "library": self._library,
            **({"set": variables} if (variables := self._variables()) else {}),
            **joined_description(task),
            **described(hosts_of(task)),
            "asked": task.choice.label,
            **({} if task.implementation == OWN else forced.described(self._observation())),
            "busbw": busbw_formula(task.op) if task.transport.has_bandwidth else "none: the ranks take turns on one device",
            "bytes": task.message.message_bytes,
            **self._moved(),
            **({"model of the library": model} if (model := forced.own_model(self._log, task.op)) else {}),
            "check": "random data by tiles and projection; exact integers, every element of every rank",
        }

    @property
    def logging(self) -> str | None:
        """What the library logs within the time of a launch; ``None`` of one that does not log."""
        if self._log.version is None:
            return None
        if self.crew.ask(TellChoices(self._ticket))[0]:
            return "NCCL writes a line for each launch on rank 0 within the time"
        return "NCCL is told to log launches within the time; no line of one was seen"

    def close(self) -> None:
        self._group.users -= 1
        if self.crew.alive:
            self.crew.ask(Discard(self._ticket))

    def _variables(self) -> dict[str, str]:
        return forced.variables_set(self.task.transport, self._group.environment, self.task.joined)

    def _observation(self) -> Observation:
        if self.task.implementation == OWN or self._log.version is None:
            return Observation((), None, f"{self._library} does not log what it chose")
        return forced.observation(self.task, self._log, self.crew.ask(TellChoices(self._ticket))[0])

    def _check_moves(self) -> None:
        """Hold what every rank hands over against the algorithm's formula: another count is another algorithm."""
        given, algo = self.task.message, self.task.choice.algo
        elements = max(given.send_elements, given.receive_elements)
        for rank, counted in enumerate(self._moves):
            if counted is None or algo is None:
                continue
            formula = own.expected(given.op, algo, given.ranks, rank, elements, given.itemsize)
            if (counted.sent_elements, counted.received_elements, counted.messages) != formula:
                reason = f"rank {rank} moves {counted}, by the formula of the {algo} it is {formula}"
                raise Classified(Failure(Outcome.ERROR, reason, fatal=False))

    def _moved(self) -> dict[str, Any]:
        counted = [moves for moves in self._moves if moves is not None]
        if not counted:
            return {}
        size = self.task.message.itemsize
        return {
            "steps": max(moves.steps for moves in counted),
            "sent_bytes": [moves.sent_elements * size for moves in counted],
            "received_bytes": [moves.received_elements * size for moves in counted],
            "messages": [moves.messages for moves in counted],
        }

    def _told_wrong(self, wrong: Sequence[int]) -> str:
        ranks = ", ".join(str(rank) for rank, count in enumerate(wrong) if count)
        elements = self.task.message.receive_elements
        return f"exact integers came out wrong: {max(wrong)} of {elements} elements at worst, on ranks {ranks} of {len(wrong)}"


def joined_description(task: Task) -> dict[str, Any]:
    """Who started the ranks, where it was not this run."""
    places = Places.told() if task.joined else None
    if places is None:
        return {}
    return {"ranks_from": places.launcher, "hosts": len({place.host for place in places.ranks[: task.ranks]})}


def hosts_of(task: Task) -> tuple[Host, ...]:
    """Where ranks are that compute on processors, with the cores that they have there; none of ranks on devices."""
    if task.transport is not Transport.HOST:
        return ()
    places = Places.told() if task.joined else None
    return (Host(task.ranks, processors().cores),) if places is None else places.hosts_of(task.ranks)


def _slices(probe: Probe) -> tuple[Part, ...]:
    return tuple(Part(column, columns) for _, column, _, columns in probe.tiles)


def _tiles(rows: Sequence[Row], probe: Probe) -> tuple[Any, ...]:
    return tuple(
        np.stack([each.slices[index] for each in rows[row : row + height]])
        for index, (row, _, height, _) in enumerate(probe.tiles)
    )


def _projection(rows: Sequence[Row]) -> Any:
    return np.array([row.projection for row in rows])
