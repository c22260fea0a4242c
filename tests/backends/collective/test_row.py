"""A row of several blocks, the same numbers in each: what should stand there does, and what is wrong in any of them is seen."""

import pytest
import torch

from backends.torch.collective.row import BLOCK_ELEMENTS, count_wrong, expected, observed
from suite.collectives.data import Inputs
from suite.collectives.message import message
from suite.collectives.names import Op
from suite.collectives.part import Part

RANKS, RANK = 3, 1
CPU = torch.device("cpu")
ELEMENTS = {Op.ALL_GATHER: 3 * (BLOCK_ELEMENTS + 11), Op.ALL_TO_ALL: 3 * (BLOCK_ELEMENTS + 11)}
BEYOND = 2 * BLOCK_ELEMENTS + 33  # no multiple of a period: the last block is a part of one


def given(op: Op) -> Inputs:
    received = ELEMENTS.get(op, BEYOND)
    return Inputs(message(op, "fp32", RANKS, 4 * received * (RANKS if op is Op.REDUCE_SCATTER else 1)), "integers", 9)


def right(inputs: Inputs) -> torch.Tensor:
    """What should stand there, drawn as a whole."""
    whole = inputs.received(RANK, Part(0, inputs.message.receive_elements))
    return torch.from_numpy(whole).to(torch.float32)


OPS = [Op.ALL_REDUCE, Op.REDUCE_SCATTER, Op.ALL_GATHER, Op.ALL_TO_ALL, Op.BROADCAST, Op.SEND_RECV]


@pytest.mark.parametrize("op", OPS)
def test_what_is_right_is_found_right_over_all_blocks(op: Op) -> None:
    inputs = given(op)
    received, slices = right(inputs), (Part(inputs.message.receive_elements - 64, 64),)
    assert count_wrong(received, inputs, RANK) == 0
    stands, should = observed(received, inputs.message, slices, 4), expected(inputs, RANK, slices, 4, CPU)
    assert (stands.unwritten, stands.nonfinite) == (0, 0)
    assert stands.projection == should.projection != 0
    assert (stands.slices[0] == should.slices[0]).all()


@pytest.mark.parametrize("op", OPS)
def test_one_wrong_element_is_seen_wherever_it_stands(op: Op) -> None:
    inputs = given(op)
    received, count = right(inputs), inputs.message.receive_elements
    should = expected(inputs, RANK, (), 4, CPU).projection
    for index in (BLOCK_ELEMENTS - 1, count // 2, count - 1):
        kept = received[index].item()
        received[index] += 1
        assert count_wrong(received, inputs, RANK) == 1
        assert abs(observed(received, inputs.message, (), 4).projection - should) == 1
        received[index] = float("nan")
        assert count_wrong(received, inputs, RANK) == 1
        assert observed(received, inputs.message, (), 4).nonfinite == 1
        received[index] = kept


def test_faults_that_cancel_between_blocks_that_hold_the_same_are_seen() -> None:
    inputs = given(Op.ALL_REDUCE)
    received = right(inputs)
    before = observed(received, inputs.message, (), 4).projection
    received[:1000] += 1
    received[BLOCK_ELEMENTS : BLOCK_ELEMENTS + 1000] -= 1
    assert observed(received, inputs.message, (), 4).projection != before
