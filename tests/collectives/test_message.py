"""What a message is on each rank, and which sizes there are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.collectives.message import has_in_place, message, messages
from suite.collectives.names import Op
from suite.collectives.number_format import NUMBER_FORMATS, number_format
from suite.errors import UsageError


@pytest.mark.parametrize("op", Op)
@given(fmt=st.sampled_from(list(NUMBER_FORMATS)), ranks=st.integers(2, 1000), asked=st.integers(1, 2**33))
@settings(deadline=None)
def test_a_message_is_whole_elements_and_no_more_than_asked_unless_it_would_be_none(
    op: Op, fmt: str, ranks: int, asked: int
) -> None:
    found = message(op, fmt, ranks, asked)
    smallest = number_format(fmt).itemsize * ranks
    assert found.message_bytes <= max(asked, smallest)
    assert found.message_bytes > asked - smallest
    assert min(found.send_elements, found.receive_elements) >= 1
    assert found.buffer_bytes(in_place=True) <= found.buffer_bytes(in_place=False)


@pytest.mark.parametrize(
    ("op", "send", "receive"),
    [
        (Op.ALL_REDUCE, 1024, 1024),
        (Op.BROADCAST, 1024, 1024),
        (Op.SEND_RECV, 1024, 1024),
        (Op.ALL_GATHER, 128, 1024),
        (Op.REDUCE_SCATTER, 1024, 128),
        (Op.ALL_TO_ALL, 1024, 1024),
    ],
)
def test_the_size_of_a_message_is_the_larger_of_sent_and_received(op: Op, send: int, receive: int) -> None:
    found = message(op, "fp32", 8, 4096)
    assert (found.send_elements, found.receive_elements, found.message_bytes) == (send, receive, 4096)


def test_sizes_that_round_to_the_same_message_are_one() -> None:
    assert [each.message_bytes for each in messages(Op.ALL_GATHER, "fp32", 8, (8, 16, 32, 64, 128))] == [32, 64, 128]


def test_one_rank_and_no_bytes_are_refused() -> None:
    with pytest.raises(UsageError, match="over 1 rank moves nothing"):
        message(Op.ALL_REDUCE, "fp32", 1, 8)
    with pytest.raises(UsageError, match="of 0 bytes"):
        message(Op.ALL_REDUCE, "fp32", 2, 0)
    with pytest.raises(UsageError, match="did you mean 'bf16'"):
        message(Op.ALL_REDUCE, "bf1", 2, 8)


def test_only_some_operations_have_a_form_in_place() -> None:
    assert has_in_place(Op.ALL_REDUCE)
    assert not has_in_place(Op.ALL_TO_ALL)
