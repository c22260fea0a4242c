"""One rank's share: what stands in its buffers when an iteration begins, and what it leaves when it is discarded."""

import pytest
import torch

from backends.torch.collective.buffers import DTYPES, allocate
from backends.torch.collective.orders import Discard
from backends.torch.collective.rank import Rank
from backends.torch.collective.share import Share
from suite.collectives.data import PERIOD, Inputs
from suite.collectives.growth import launches_in_range
from suite.collectives.names import Op
from suite.collectives.part import Part
from suite.jobs.collective import Task
from tests.backends.collective.helpers import task

CPU = torch.device("cpu")


class Doubled(Share):
    """Its launch doubles what it has, as a sum of two equal ranks does; ``before`` holds the data at every barrier."""

    def __init__(self, asked: Task) -> None:
        self.before: list[torch.Tensor] = []
        super().__init__(asked, 0, None, CPU, lambda: None, self._look)
        self._call = lambda: self._buffers.received.mul_(2)

    def _look(self) -> None:
        self.before.append(self._buffers.received.clone())


@pytest.mark.parametrize("fmt", ["fp16", "bf16", "int32", "int8"])
def test_every_iteration_of_a_sum_in_place_begins_with_finite_data_that_are_written_again_in_time(fmt: str) -> None:
    asked = task(Op.ALL_REDUCE, 2, 4096, fmt=fmt)
    share, fresh = Doubled(asked), launches_in_range(asked.message, in_place=True)
    assert fresh is not None
    share.fill("random", 3)
    share.sample(3)
    share.sample(2 * fresh + 1)  # a new order begins with the data, whatever was done before
    again = share.before[3:]
    assert all(torch.isfinite(each.double()).all() for each in again)
    drawn = again[0]
    equal = [index for index, each in enumerate(again) if torch.equal(each, drawn)]
    assert equal == [0, fresh, 2 * fresh]
    expected = Inputs(asked.message, "random", 3).sent(0, Part(0, asked.message.send_elements))
    assert drawn.double().tolist() == expected.tolist()


@pytest.mark.parametrize("fmt", DTYPES)
@pytest.mark.parametrize("elements", [7, PERIOD, 2 * PERIOD + 5])
def test_what_is_written_is_what_is_drawn_beyond_the_period_too(fmt: str, elements: int) -> None:
    asked = task(Op.ALL_REDUCE, 2, elements * DTYPES[fmt].itemsize, fmt=fmt)
    buffers, given = allocate(asked, 1, CPU), Inputs(asked.message, "random", 11)
    buffers.write(buffers.drawn(given, 1))
    assert buffers.sent.numel() == elements
    assert (buffers.sent.double().numpy() == given.sent(1, Part(0, elements))).all()


def test_of_a_broadcast_the_root_alone_writes() -> None:
    asked = task(Op.BROADCAST, 2, 64)
    given = Inputs(asked.message, "random", 11)
    root, other = (allocate(asked, rank, CPU) for rank in range(2))
    assert root.drawn(given, 0) is not None
    assert other.drawn(given, 1) is None


@pytest.mark.parametrize(("device", "times"), [("cuda:0", 1), ("cpu", 0)])
def test_a_discarded_share_gives_its_memory_back_to_the_device(
    monkeypatch: pytest.MonkeyPatch, device: str, times: int
) -> None:
    emptied: list[None] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(None))
    Rank(0, torch.device(device), str).carry_out(Discard(1))
    assert len(emptied) == times
