"""An all_reduce over two trees at once, each with half of the data, in a pipeline of chunks.

A chunk is added up from the leaves to the root and comes down again, one edge a step; the next chunk follows one step behind:

    steps = 2 depth + chunks - 1    for the deeper tree

A rank sends and receives at most once a step over each of its edges.  Per rank it moves S/2 for every edge it has in either
tree, up and down together: 2S at most, as one that has children in one tree has none in the other.
"""

from collections import defaultdict
from collections.abc import Iterator

from suite.collectives.part import Part, parts
from suite.collectives.schedule import Receive, Send, Step, Traffic
from suite.collectives.tree import Tree, double_tree


def all_reduce(ranks: int, rank: int, elements: int, chunks: int) -> Iterator[Step]:
    """Steps after which ``rank`` holds the sum of everybody's ``elements``; each tree cuts its half into ``chunks``."""
    sends: dict[int, list[Send]] = defaultdict(list)
    receives: dict[int, list[Receive]] = defaultdict(list)
    for tree, half in zip(double_tree(ranks), parts(elements, 2), strict=True):
        for index, part in enumerate(parts(half.elements, chunks, half.start)):
            _up(tree, rank, index, part, sends, receives)
            _down(tree, rank, index, part, sends, receives)
    for number in sorted(sends.keys() | receives.keys()):
        yield Step(number, tuple(sends[number]), tuple(receives[number]))


def all_reduce_steps(ranks: int, chunks: int) -> int:
    """Steps from the first send to the last receive."""
    return 0 if ranks == 1 else 2 * max(tree.depth for tree in double_tree(ranks)) + chunks - 1


def all_reduce_traffic(ranks: int, rank: int, elements: int, chunks: int) -> Traffic:
    """What ``rank`` moves, by the formula: half of the elements for every edge that it has, in each direction."""
    halves, trees = parts(elements, 2), double_tree(ranks)
    edges = [(tree.nodes[rank].parent is not None) + len(tree.nodes[rank].children) for tree in trees]
    moved = sum(half.elements * count for half, count in zip(halves, edges, strict=True))
    return Traffic(moved, moved, chunks * sum(edges))


def _up(
    tree: Tree, rank: int, index: int, part: Part, sends: dict[int, list[Send]], receives: dict[int, list[Receive]]
) -> None:
    """A rank passes a chunk on in the step after the last of its children has: as late as it stands high."""
    node = tree.nodes[rank]
    for child in node.children:
        receives[tree.heights[child] + index].append(Receive(child, part, add=True))
    if node.parent is not None:
        sends[tree.heights[rank] + index].append(Send(node.parent, part))


def _down(
    tree: Tree, rank: int, index: int, part: Part, sends: dict[int, list[Send]], receives: dict[int, list[Receive]]
) -> None:
    """The root sends a chunk down as soon as it is complete, and every rank in the step after it came."""
    node, arrives = tree.nodes[rank], tree.depth + tree.depths[rank] + index - 1
    if node.parent is not None:
        receives[arrives].append(Receive(node.parent, part, add=False))
    for child in node.children:
        sends[arrives + 1].append(Send(child, part))
