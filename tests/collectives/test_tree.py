"""The two trees over any world: everybody is reached, nobody works twice, and none is deeper than it must be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.collectives.tree import LARGEST_WORLD, Tree, depth, double_tree
from suite.errors import UsageError

worlds = st.one_of(st.integers(1, 300), st.integers(1, LARGEST_WORLD))
EVERY_SMALL_WORLD = range(1, 130)


def check(tree: Tree, ranks: int) -> None:
    """A binary tree whose parents and children agree and that reaches all ranks from its root."""
    assert len(tree.nodes) == ranks
    assert [rank for rank, node in enumerate(tree.nodes) if node.parent is None] == [tree.root]
    for rank, node in enumerate(tree.nodes):
        assert len(node.children) <= 2
        assert all(tree.nodes[child].parent == rank for child in node.children)
    reached = [tree.root]
    for rank in reached:
        reached.extend(tree.nodes[rank].children)
    assert sorted(reached) == list(range(ranks))
    for rank, node in enumerate(tree.nodes):
        assert tree.depths[rank] == (0 if node.parent is None else tree.depths[node.parent] + 1)
        assert tree.heights[rank] == max((tree.heights[child] + 1 for child in node.children), default=0)


@pytest.mark.parametrize("ranks", EVERY_SMALL_WORLD)
def test_every_small_world_has_two_trees(ranks: int) -> None:
    first, second = double_tree(ranks)
    check(first, ranks)
    check(second, ranks)
    assert first.depth == second.depth == depth(ranks)
    assert not any(one.children and other.children for one, other in zip(first.nodes, second.nodes, strict=True))


@given(ranks=worlds)
@settings(deadline=None, max_examples=25)
def test_a_rank_has_children_in_one_tree_at_most(ranks: int) -> None:
    first, second = double_tree(ranks)
    both = [rank for rank in range(ranks) if first.nodes[rank].children and second.nodes[rank].children]
    assert both == []


@given(ranks=worlds)
@settings(deadline=None, max_examples=25)
def test_no_binary_tree_over_as_many_ranks_can_be_less_deep(ranks: int) -> None:
    trees = double_tree(ranks)
    assert {tree.depth for tree in trees} == {ranks.bit_length() - 1}
    assert 2 ** (trees[0].depth + 1) - 1 >= ranks


def test_the_largest_world_is_built_and_a_larger_one_refused() -> None:
    assert double_tree(LARGEST_WORLD)[0].depth == 14
    for ranks in (0, LARGEST_WORLD + 1):
        with pytest.raises(UsageError, match="1 to 16384"):
            double_tree(ranks)
