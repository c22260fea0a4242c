"""The ring and the two trees: right sums, and exactly the bytes and steps of their formulas, in every world."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.collectives import own, ring, tree_schedule
from suite.collectives.choice import OWN_ALGOS
from suite.collectives.names import Algo, Op
from suite.collectives.part import parts
from suite.collectives.schedule import traffic
from suite.errors import UsageError
from tests.collectives.machine import carry_out, integers

worlds, lengths = st.integers(1, 40), st.integers(0, 200)


@given(ranks=worlds, elements=lengths)
@settings(deadline=None, max_examples=25)
def test_a_ring_adds_up_everywhere_in_twice_its_length(ranks: int, elements: int) -> None:
    buffers = integers(ranks, elements)
    total = np.sum(buffers, axis=0)
    taken = carry_out([list(ring.all_reduce(ranks, rank, elements)) for rank in range(ranks)], buffers)
    assert taken == ring.all_reduce_steps(ranks) == 2 * (ranks - 1)
    assert all((buffer == total).all() for buffer in buffers)


@given(ranks=worlds, elements=lengths)
@settings(deadline=None, max_examples=25)
def test_a_rings_halves_leave_every_rank_its_part_and_bring_all_parts_everywhere(ranks: int, elements: int) -> None:
    buffers = integers(ranks, elements)
    total, pieces = np.sum(buffers, axis=0), parts(elements, ranks)
    carry_out([list(ring.reduce_scatter(ranks, rank, elements)) for rank in range(ranks)], buffers)
    for piece, buffer in zip(pieces, buffers, strict=True):
        own_part = slice(piece.start, piece.stop)
        assert (buffer[own_part] == total[own_part]).all()
        rest = np.ones(elements, bool)
        rest[own_part] = False
        buffer[rest] = -1
    carry_out([list(ring.all_gather(ranks, rank, elements)) for rank in range(ranks)], buffers)
    assert all((buffer == total).all() for buffer in buffers)


@given(ranks=worlds, elements=lengths, chunks=st.integers(1, 9))
@settings(deadline=None, max_examples=25)
def test_two_trees_add_up_everywhere_in_a_pipelines_steps(ranks: int, elements: int, chunks: int) -> None:
    buffers = integers(ranks, elements)
    total = np.sum(buffers, axis=0)
    programs = [list(tree_schedule.all_reduce(ranks, rank, elements, chunks)) for rank in range(ranks)]
    taken = carry_out(programs, buffers)
    depth = ranks.bit_length() - 1
    assert taken == tree_schedule.all_reduce_steps(ranks, chunks) == (2 * depth + chunks - 1 if ranks > 1 else 0)
    assert all((buffer == total).all() for buffer in buffers)


@given(ranks=worlds, elements=lengths, chunks=st.integers(1, 9))
@settings(deadline=None, max_examples=25)
def test_what_is_moved_is_what_the_formulas_say(ranks: int, elements: int, chunks: int) -> None:
    for rank in range(ranks):
        assert traffic(ring.all_reduce(ranks, rank, elements)) == ring.all_reduce_traffic(ranks, rank, elements)
        counted = traffic(tree_schedule.all_reduce(ranks, rank, elements, chunks))
        assert counted == tree_schedule.all_reduce_traffic(ranks, rank, elements, chunks)


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 16, 33])
def test_every_rank_of_a_ring_moves_2_n_minus_1_over_n_of_the_message(ranks: int) -> None:
    elements = 12 * ranks
    for rank in range(ranks):
        moved = ring.all_reduce_traffic(ranks, rank, elements)
        assert moved.sent_elements == moved.received_elements == 2 * (ranks - 1) * elements // ranks
        assert moved.messages == 2 * (ranks - 1)


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 16, 33])
def test_all_ranks_of_the_trees_together_move_what_a_ring_does_and_none_more_than_twice_the_message(ranks: int) -> None:
    elements = 12 * ranks
    moved = [tree_schedule.all_reduce_traffic(ranks, rank, elements, 4) for rank in range(ranks)]
    assert sum(each.sent_elements for each in moved) == 2 * (ranks - 1) * elements
    assert max(each.sent_elements for each in moved) <= 2 * elements
    assert min(each.sent_elements for each in moved) >= elements


@given(ranks=st.integers(2, 40), elements=st.integers(1, 60), chunks=st.integers(1, 6))
@settings(deadline=None, max_examples=25)
def test_no_step_of_a_rank_needs_what_that_step_brings(ranks: int, elements: int, chunks: int) -> None:
    for rank in range(ranks):
        for program in (ring.all_reduce(ranks, rank, elements), tree_schedule.all_reduce(ranks, rank, elements, chunks)):
            for step in program:
                for send in step.sends:
                    for receive in step.receives:
                        apart = send.part.stop <= receive.part.start or receive.part.stop <= send.part.start
                        assert apart or not (send.part.elements and receive.part.elements)


@given(ranks=st.integers(2, 40), chunks=st.integers(1, 6))
@settings(deadline=None, max_examples=25)
def test_an_edge_of_a_tree_carries_one_message_a_step_each_way(ranks: int, chunks: int) -> None:
    for rank in range(ranks):
        for step in tree_schedule.all_reduce(ranks, rank, 64, chunks):
            for tree in range(2):
                half = parts(64, 2)[tree]
                peers = [send.peer for send in step.sends if half.start <= send.part.start < half.stop]
                assert len(peers) == len(set(peers))


BY_NAME = [(op, algo) for op, algos in OWN_ALGOS.items() for algo in algos]


@pytest.mark.parametrize("ranks", [2, 3, 6, 8])
@pytest.mark.parametrize(("op", "algo"), BY_NAME)
def test_an_algorithm_is_chosen_by_name_and_its_formulas_with_it(op: Op, algo: Algo, ranks: int) -> None:
    elements, itemsize = 3 * 2**18, 4
    programs = [list(own.steps(op, algo, ranks, rank, elements, itemsize)) for rank in range(ranks)]
    for rank, program in enumerate(programs):
        assert traffic(program) == own.expected(op, algo, ranks, rank, elements, itemsize)
        assert own.staged_elements(program) <= own.most_staged_elements(op, algo, ranks, elements, itemsize)
    last = max(step.number for program in programs for step in program)
    assert last + 1 == own.step_count(op, algo, ranks, elements, itemsize)


def test_what_is_staged_is_reached_by_some_rank() -> None:
    for op, algo in BY_NAME:
        programs = [list(own.steps(op, algo, 8, rank, 2**20, 4)) for rank in range(8)]
        assert max(map(own.staged_elements, programs)) == own.most_staged_elements(op, algo, 8, 2**20, 4)


def test_small_messages_are_one_chunk_and_large_ones_as_many_as_are_useful() -> None:
    assert own.chunks_of(2, 4) == 1
    assert own.chunks_of(2**31, 4) == own.LARGEST_CHUNKS


def test_an_algorithm_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no tree of its own for all_gather; it has all_reduce by ring or tree"):
        own.steps(Op.ALL_GATHER, Algo.TREE, 4, 0, 8, 4)
