"""What ranks put in and must get out: exact in every format, and such that no fault can hide in it."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.collectives.data import PERIOD, WHOLE_PERIOD_FROM, Inputs, Kind, repeating
from suite.collectives.message import Message, message
from suite.collectives.names import Op
from suite.collectives.number_format import NUMBER_FORMATS, number_format
from suite.collectives.part import Part
from suite.collectives.rounding import Values, rounded
from suite.collectives.tolerance import lost_rank_error, random_data_shows_a_lost_rank, tolerance

ELEMENTS = 2048
WORLDS = [2, 8, 200]


def inputs(op: Op, fmt: str, ranks: int, kind: Kind = "integers", seed: int = 7) -> Inputs:
    return Inputs(message(op, fmt, ranks, ELEMENTS * number_format(fmt).itemsize), kind, seed)


def buffers(given: Inputs) -> list[Values]:
    return [given.sent(rank, Part(0, given.message.send_elements)) for rank in range(given.message.ranks)]


@pytest.mark.parametrize("ranks", WORLDS)
@pytest.mark.parametrize("fmt", NUMBER_FORMATS)
def test_integers_and_all_their_partial_sums_are_exact_in_the_format(fmt: str, ranks: int) -> None:
    sent = buffers(inputs(Op.ALL_REDUCE, fmt, ranks))
    known = number_format(fmt)
    assert np.abs(sent).sum(axis=0).max() <= known.exact_integers
    assert all((rounded(values, known) == values).all() for values in sent)
    assert all((values == np.rint(values)).all() for values in sent)


@pytest.mark.parametrize("ranks", WORLDS)
@pytest.mark.parametrize("fmt", NUMBER_FORMATS)
def test_sums_in_any_order_and_rounded_after_each_rank_are_the_expected_ones(fmt: str, ranks: int) -> None:
    given = inputs(Op.ALL_REDUCE, fmt, ranks)
    known, sent = number_format(fmt), buffers(given)
    total = np.zeros(given.message.receive_elements)
    for rank in np.random.default_rng(1).permutation(ranks):
        total = rounded(total + sent[rank], known)
    expected = given.received(0, Part(0, given.message.receive_elements))
    assert (total == expected).all()


FAULTS: dict[str, Callable[[list[Values]], Values]] = {
    "a rank is lost": lambda sent: np.sum(sent[1:], axis=0),
    "a rank is counted twice": lambda sent: np.sum([*sent, sent[0]], axis=0),
    "nothing was added": lambda sent: sent[0],
    "nothing was written": lambda sent: np.full(len(sent[0]), np.nan),
    "zeros were written": lambda sent: np.zeros(len(sent[0])),
    "the sum is shifted by an element": lambda sent: np.roll(np.sum(sent, axis=0), 1),
    "half of a rank's data came late": lambda sent: (
        np.sum(sent, axis=0) - sent[-1] * (np.arange(len(sent[0])) >= len(sent[0]) // 2)
    ),
}


@pytest.mark.parametrize("ranks", WORLDS)
@pytest.mark.parametrize("fmt", NUMBER_FORMATS)
@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_of_a_sum_hides_in_exact_integers(fault: str, fmt: str, ranks: int) -> None:
    given = inputs(Op.ALL_REDUCE, fmt, ranks)
    found = FAULTS[fault](buffers(given))
    assert (found != given.received(0, Part(0, given.message.receive_elements))).any()


def test_old_data_in_the_same_buffer_does_not_pass_for_new() -> None:
    for op in Op:
        old, new = inputs(op, "bf16", 4, seed=1), inputs(op, "bf16", 4, seed=2)
        whole = Part(0, new.message.receive_elements)
        assert (old.received(1, whole) != new.received(1, whole)).sum() > whole.elements // 4


MOVING = {
    Op.ALL_GATHER: lambda sent, rank, root: np.concatenate(sent),
    Op.GATHER: lambda sent, rank, root: np.concatenate(sent),
    Op.BROADCAST: lambda sent, rank, root: sent[root],
    Op.SCATTER: lambda sent, rank, root: np.split(sent[root], len(sent))[rank],
    Op.ALL_TO_ALL: lambda sent, rank, root: np.concatenate([np.split(values, len(sent))[rank] for values in sent]),
    Op.SEND_RECV: lambda sent, rank, root: sent[rank - 1],
    Op.ALL_REDUCE: lambda sent, rank, root: np.sum(sent, axis=0),
    Op.REDUCE: lambda sent, rank, root: np.sum(sent, axis=0),
    Op.REDUCE_SCATTER: lambda sent, rank, root: np.split(np.sum(sent, axis=0), len(sent))[rank],
}


@pytest.mark.parametrize("kind", ["integers", "random"])
@pytest.mark.parametrize("op", Op)
@given(rank=st.integers(0, 4), root=st.integers(0, 4), start=st.integers(0, 300), length=st.integers(0, 300))
@settings(deadline=None)
def test_every_operation_gives_each_rank_what_its_definition_says(
    op: Op, kind: Kind, rank: int, root: int, start: int, length: int
) -> None:
    given = inputs(op, "fp32", 5, kind)
    whole = MOVING[op](buffers(given), rank, root)
    part = Part(min(start, len(whole)), min(length, max(0, len(whole) - start)))
    assert len(whole) == given.message.receive_elements
    np.testing.assert_allclose(given.received(rank, part, root), whole[part.start : part.stop], rtol=0, atol=1e-12)


@given(start=st.integers(0, 10**9), length=st.integers(1, 50), rank=st.integers(0, 10**4))
@settings(deadline=None)
def test_a_slice_is_the_same_whatever_else_is_drawn(start: int, length: int, rank: int) -> None:
    given = Inputs(Message(Op.ALL_REDUCE, "fp32", 16384, 2**31, 2**31), "integers", 5)
    longer = given.sent(rank, Part(start, length + 7))
    assert (given.sent(rank, Part(start, length)) == longer[:length]).all()


@pytest.mark.parametrize("kind", ["integers", "random"])
def test_no_sum_of_a_small_message_is_near_zero(kind: Kind) -> None:
    """Else the rounding of a right result would be large beside it: every message of 8 bytes and every seed must pass."""
    given = [Inputs(message(Op.ALL_REDUCE, "bf16", 8, 8), kind, seed) for seed in range(300)]
    if kind == "random":
        assert min(np.linalg.norm(each.received(0, Part(0, 4))) for each in given) > 3
        assert len({float(each.sent(0, Part(0, 1))[0]) for each in given}) > 250
    for each in given:
        sent, exact = buffers(each), each.received(0, Part(0, 4))
        total = sent[0]
        for values in sent[1:]:
            total = rounded(total + values, number_format("bf16"))
        error = np.linalg.norm(total - exact) / max(float(np.linalg.norm(exact)), 1e-300)
        assert error <= (tolerance(Op.ALL_REDUCE, "bf16", 8) if kind == "random" else 0)


@pytest.mark.parametrize("kind", ["integers", "random"])
@pytest.mark.parametrize("start", [0, 17, PERIOD - 3, 5 * PERIOD + 1])
def test_a_long_slice_has_the_values_of_the_short_ones_it_is_made_of(kind: Kind, start: int) -> None:
    given = Inputs(Message(Op.ALL_REDUCE, "fp16", 5000, 2**31, 2**31), kind, 5)
    long = given.sent(3, Part(start, 2 * PERIOD))
    short = [given.sent(3, Part(at, 1000)) for at in range(start, start + len(long) - 1000, 40_000)]
    assert len(long) > WHOLE_PERIOD_FROM > 1000
    assert all((long[40_000 * index :][:1000] == values).all() for index, values in enumerate(short))


@pytest.mark.parametrize("by", [2**power for power in range(2, 27, 3)])
def test_data_that_moved_by_a_chunk_are_other_data_though_values_repeat(by: int) -> None:
    given = Inputs(Message(Op.BROADCAST, "fp32", 2, 2**28, 2**28), "random", 5)
    assert np.count_nonzero(given.sent(0, Part(by, 64)) == given.sent(0, Part(0, 64))) < 4


def test_ranks_and_seeds_have_different_data() -> None:
    seen = [inputs(Op.ALL_REDUCE, "fp32", 8, "random", seed).sent(rank, Part(0, 64)) for seed in (1, 2) for rank in range(8)]
    for index, one in enumerate(seen):
        assert all(np.count_nonzero(one == other) < 4 for other in seen[:index])


def test_random_data_is_normal_and_held_exactly_by_the_format() -> None:
    for fmt in ("fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"):
        values = inputs(Op.ALL_REDUCE, fmt, 2, "random").sent(0, Part(0, 200_000))
        assert abs(values.mean()) < 0.02
        assert values.std() == pytest.approx(1, abs=0.02)
        assert (rounded(values, number_format(fmt)) == values).all()


@pytest.mark.parametrize("ranks", [2, 8, 64, 512])
@pytest.mark.parametrize("fmt", ["fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_a_right_sum_that_is_rounded_after_every_rank_is_within_the_tolerance(fmt: str, ranks: int) -> None:
    given, known = inputs(Op.ALL_REDUCE, fmt, ranks, "random"), number_format(fmt)
    sent = buffers(given)
    total = sent[0]
    for values in sent[1:]:
        total = rounded(total + values, known)
    exact = given.received(0, Part(0, given.message.receive_elements))
    error = np.linalg.norm(total - exact) / np.linalg.norm(exact)
    assert 0 < error < tolerance(Op.ALL_REDUCE, fmt, ranks) / 2


@pytest.mark.parametrize("ranks", [2, 8, 64, 512])
@pytest.mark.parametrize("fmt", ["fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_random_data_shows_a_lost_rank_where_it_is_said_to(fmt: str, ranks: int) -> None:
    given = inputs(Op.ALL_REDUCE, fmt, ranks, "random")
    sent = buffers(given)
    exact = np.sum(sent, axis=0)
    error = np.linalg.norm(np.sum(sent[1:], axis=0) - exact) / np.linalg.norm(exact)
    assert error == pytest.approx(lost_rank_error(ranks), rel=0.1)
    if random_data_shows_a_lost_rank(Op.ALL_REDUCE, fmt, ranks):
        assert error > tolerance(Op.ALL_REDUCE, fmt, ranks)


def test_moved_and_integer_data_must_be_exact() -> None:
    assert tolerance(Op.ALL_GATHER, "bf16", 8) == tolerance(Op.ALL_REDUCE, "int32", 8) == 0


def test_rounding_is_that_of_the_formats() -> None:
    values = np.concatenate([np.random.default_rng(3).normal(size=4000) * 10.0**power for power in range(-9, 5)])
    for fmt, dtype in (("fp16", np.float16), ("fp32", np.float32)):
        limit = float(np.finfo(dtype).max)
        assert (rounded(values, number_format(fmt)) == np.clip(values, -limit, limit).astype(dtype).astype(float)).all()


@pytest.mark.parametrize("kind", ["integers", "random"])
@pytest.mark.parametrize("op", Op)
def test_what_must_be_received_repeats_within_each_stretch_and_the_stretches_are_all_of_it(op: Op, kind: Kind) -> None:
    given = Inputs(message(op, "fp32", 3, 4 * 3 * (3 * PERIOD + 5)), kind, 7)
    stretches, elements = list(repeating(given.message)), given.message.receive_elements
    assert [part.start for part in stretches] == [0, *(part.stop for part in stretches[:-1])]
    assert stretches[-1].stop == elements
    for stretch in stretches:
        found = given.received(1, stretch)
        assert (found == np.resize(found[:PERIOD], stretch.elements)).all()
