"""One rank's share of a collective: its buffers, the launch, and what must come out."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from backends.torch.collective import row
from backends.torch.collective.buffers import allocate
from backends.torch.collective.moves import launch
from backends.torch.collective.orders import Moves, Row
from suite.collectives.data import Inputs, Kind
from suite.collectives.growth import launches_in_range
from suite.collectives.log.choices import LoggedChoice
from suite.collectives.part import Part
from suite.jobs.collective import Task


class Share:
    """``wait`` returns when the device has done everything, ``barrier`` when every rank has come to it.

    ``enter`` is told before each iteration in which this rank waits for the others.
    """

    def __init__(
        self,
        task: Task,
        rank: int,
        group: Any,
        device: torch.device,
        wait: Callable[[], None],
        barrier: Callable[[], None],
        enter: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._enter = enter
        self._task, self._rank, self._wait, self._barrier = task, rank, wait, barrier
        self._buffers = allocate(task, rank, device)
        self._call, moves = launch(task, rank, self._buffers, group)
        self.moves: Moves | None = moves
        self._inputs: Inputs | None = None
        self._drawn: torch.Tensor | None = None
        self._fresh = launches_in_range(task.message, task.in_place)
        self._choices: dict[LoggedChoice, None] = {}

    def fill(self, kind: Kind, seed: int) -> None:
        self._inputs = Inputs(self._task.message, kind, seed)
        self._drawn = self._buffers.drawn(self._inputs, self._rank)
        self._buffers.poison()
        self._buffers.write(self._drawn)

    def reset(self) -> None:
        self._buffers.poison()
        if self._buffers.in_place:
            self._buffers.write(self._drawn)

    def launch(self) -> None:
        self._enter(0)
        self._call()
        self._wait()

    def sample(self, iterations: int) -> list[int]:
        """Nanoseconds from a barrier to the end on this rank, once an iteration; data that grow are written again between."""
        durations_ns = []
        for iteration in range(iterations):
            if self._fresh and iteration % self._fresh == 0:
                self._buffers.write(self._drawn)
                self._wait()
            self._enter(iteration)
            self._barrier()
            began_ns = time.perf_counter_ns()
            self._call()
            self._wait()
            durations_ns.append(time.perf_counter_ns() - began_ns)
        return durations_ns

    def observe(self, slices: Sequence[Part], seed: int) -> Row:
        return row.observed(self._buffers.received, self._task.message, slices, seed)

    def expect(self, slices: Sequence[Part], seed: int) -> Row:
        return row.expected(self._filled(), self._rank, slices, seed, self._buffers.received.device)

    def count_wrong(self) -> int:
        return row.count_wrong(self._buffers.received, self._filled(), self._rank)

    def note(self, choices: Iterable[LoggedChoice]) -> None:
        """Keep what the library logged while it worked on this share, each choice once."""
        self._choices.update(dict.fromkeys(choices))

    @property
    def choices(self) -> tuple[LoggedChoice, ...]:
        return tuple(self._choices)

    def _filled(self) -> Inputs:
        assert self._inputs is not None, "fill() comes first"
        return self._inputs
