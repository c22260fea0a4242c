"""Carries out the steps of all ranks on buffers, as a network would: what is sent is what stood there when the step began."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suite.collectives.part import Part
from suite.collectives.schedule import Step

Buffer = NDArray[np.int64]


def carry_out(programs: Sequence[Sequence[Step]], buffers: Sequence[Buffer]) -> int:
    """Run to the end and return how many steps it took; every message must be sent and received in the same step."""
    numbers = sorted({step.number for program in programs for step in program})
    for number in numbers:
        now = {rank: step for rank, program in enumerate(programs) for step in program if step.number == number}
        under_way: dict[tuple[int, int, Part], list[Buffer]] = defaultdict(list)
        for rank, step in now.items():
            for send in step.sends:
                twins = under_way[rank, send.peer, send.part]
                assert not twins or not send.part.elements, "the same elements twice in a step"
                twins.append(buffers[rank][send.part.start : send.part.stop].copy())
        for rank, step in now.items():
            for receive in step.receives:
                data = under_way[receive.peer, rank, receive.part].pop()
                target = buffers[rank][receive.part.start : receive.part.stop]
                target[:] = target + data if receive.add else data
        lost = [message for message, twins in under_way.items() if twins]
        assert not lost, f"sent in step {number} and received by nobody: {lost}"
    assert numbers == list(range(len(numbers)))
    return len(numbers)


def integers(ranks: int, elements: int, seed: int = 1) -> list[Buffer]:
    """A buffer a rank, of which no two are alike."""
    random = np.random.default_rng(seed)
    return [random.integers(-(2**40), 2**40, elements) for _ in range(ranks)]
