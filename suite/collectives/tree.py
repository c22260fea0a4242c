"""Binary trees over ranks, two at a time, such that a rank that works in one only takes part in the other.

Positions 1 to n stand in order as in a search tree: a position's lowest set bit says how high it stands, so that all odd ones
are leaves and the depth is floor(log2 n).  The first tree has rank r at position r + 1.  The second tree is its mirror where n
is even, and the first shifted by one rank where n is odd: either way the ranks with children change places with leaves
(Sanders, Speck and Traeff, 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan").
"""

from functools import lru_cache
from typing import NamedTuple

from suite.errors import UsageError

LARGEST_WORLD = 16_384


class Node(NamedTuple):
    """One rank's place in a tree: who is above (``None`` for the root), who is below."""

    parent: int | None
    children: tuple[int, ...]


class Tree(NamedTuple):
    """A binary tree over ranks 0 to n - 1."""

    nodes: tuple[Node, ...]
    root: int
    depths: tuple[int, ...]  # edges from the root
    heights: tuple[int, ...]  # edges down to the deepest leaf below

    @property
    def depth(self) -> int:
        """Edges from the root to the deepest rank."""
        return self.heights[self.root]


@lru_cache(maxsize=8)
def double_tree(ranks: int) -> tuple[Tree, Tree]:
    """The two trees; raises ``UsageError`` for a world that is empty or larger than ``LARGEST_WORLD``."""
    if not 1 <= ranks <= LARGEST_WORLD:
        raise UsageError(f"a tree over {ranks} ranks: it is built for 1 to {LARGEST_WORLD}")
    first = {position: position - 1 for position in range(1, ranks + 1)}
    mirrored = {position: ranks - position for position in first}
    shifted = {position: position % ranks for position in first}
    return _tree(first), _tree(shifted if ranks % 2 else mirrored)


def depth(ranks: int) -> int:
    """floor(log2 n), the depth of either tree."""
    return ranks.bit_length() - 1


def _tree(rank_at: dict[int, int]) -> Tree:
    count = len(rank_at)
    parents = {position: _parent(position, count) for position in rank_at}
    children: dict[int, list[int]] = {position: [] for position in rank_at}
    for position, parent in parents.items():
        if parent:
            children[parent].append(position)
    depths, heights = dict.fromkeys(rank_at, 0), dict.fromkeys(rank_at, 0)
    downwards = _downwards(children, next(position for position, parent in parents.items() if not parent))
    for position in downwards[1:]:
        depths[position] = depths[parents[position]] + 1
    for position in reversed(downwards):
        heights[position] = max((heights[child] + 1 for child in children[position]), default=0)
    position_of = {rank: position for position, rank in rank_at.items()}
    places = [position_of[rank] for rank in range(count)]
    nodes = tuple(_node(rank_at, parents[place], children[place]) for place in places)
    return Tree(nodes, rank_at[downwards[0]], *(tuple(of[place] for place in places) for of in (depths, heights)))


def _parent(position: int, count: int) -> int:
    """The position above, 0 for the root: with the lowest set bit moved up by one, or dropped where that lies outside."""
    bit = position & -position
    above = (position ^ bit) | (bit << 1)
    return above if above <= count else position ^ bit


def _downwards(children: dict[int, list[int]], root: int) -> list[int]:
    """Positions in an order that has every parent before its children."""
    order = [root]
    for position in order:
        order.extend(children[position])
    return order


def _node(rank_at: dict[int, int], parent: int, children: list[int]) -> Node:
    return Node(rank_at[parent] if parent else None, tuple(rank_at[child] for child in children))
