"""Grouped products with a known bug, wrapped around the real kernel: a check that passes any of them is worth nothing.

``BUGS`` take a ``GroupedKernel`` and give a kernel of the same contract whose every launch is wrong in one way.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.operands import QuantisedOperand
from backends.torch.grouped_gemm.kernel import GroupedKernel
from backends.torch.grouped_gemm.product import Group, groups_of
from suite.jobs.grouped_gemm import Sizes

WRONG_SCALE = 1.1
Launch = Callable[[GroupedKernel, Sizes, int], None]


class BuggyKernel:
    """A kernel whose launches are replaced by ``launch``; everything else is the real one's."""

    def __init__(self, real: GroupedKernel, launch: Launch, sizes: Sizes) -> None:
        self._real, self._launch, self._sizes = real, launch, sizes

    def enqueue(self, set_index: int) -> None:
        self._launch(self._real, self._sizes, set_index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Bug(NamedTuple):
    """``scaled`` where numbers need scales for it to show, ``idle`` where a group has to be without rows."""

    name: str
    launch: Callable[[], Launch]
    scaled: bool = False
    idle: bool = False

    def wrap(self, kernel: GroupedKernel, sizes: Sizes) -> BuggyKernel:
        return BuggyKernel(kernel, self.launch(), sizes)

    def applies(self, sizes: Sizes, scaled: bool) -> bool:
        return scaled >= self.scaled and (sizes.busy < sizes.groups) >= self.idle


def numbers(operand: Operand) -> torch.Tensor:
    return operand.numbers(0, operand.data.shape[0])


def written(kernel: GroupedKernel, sizes: Sizes, set_index: int, groups: Iterator[Group] | Sequence[Group]) -> None:
    """What rows times the B of these groups are, into C."""
    each = kernel.input_sets[set_index]
    a, b = (numbers(operand) for operand in each.operands[:2])
    for number, first, last in groups:
        each.output[first:last] = (a[first:last] @ b[number * sizes.n : (number + 1) * sizes.n].t()).to(each.output.dtype)


def _enqueue(kernel: GroupedKernel, set_index: int) -> torch.Tensor:
    """A real launch, with its result where it belongs."""
    kernel.enqueue(set_index)
    if getattr(kernel, "hands_over", False):
        kernel.hand_over([set_index])  # type: ignore[attr-defined]
    return kernel.input_sets[set_index].output


def another_group(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """The last group that has rows is multiplied by the B of the one before."""
    _enqueue(kernel, set_index)
    *_, before, last = groups_of(sizes)
    written(kernel, sizes, set_index, [last._replace(number=before.number)])


def neighbours_row(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """The first row of the last group is taken for the last row of the group before it."""
    _enqueue(kernel, set_index)
    *_, before, last = groups_of(sizes)
    written(kernel, sizes, set_index, [Group(before.number, last.first, last.first + 1)])


def written_without_rows(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """A group without rows has one written for it, where it would begin: a row of the group after it."""
    _enqueue(kernel, set_index)
    idle = next(group for group, count in enumerate(sizes.rows) if not count)
    place = min(sizes.ends[idle], sizes.height - 1)
    written(kernel, sizes, set_index, [Group(idle, place, place + 1)])


def stale_tail(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """The last row of the largest group stays what it was."""
    group = max(groups_of(sizes), key=lambda each: each.last - each.first)
    output = kernel.input_sets[set_index].output
    before = output[group.last - 1].clone()
    _enqueue(kernel, set_index)
    output[group.last - 1] = before


def swapped_ends(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """The first two groups of different size have each other's."""
    rows = list(sizes.stored_rows)
    place = next(place for place in range(len(rows) - 1) if rows[place] != rows[place + 1])
    rows[place : place + 2] = rows[place + 1], rows[place]
    ends = [sum(rows[: number + 1]) for number in range(len(rows))]
    groups = [Group(number, end - count, end) for number, (count, end) in enumerate(zip(rows, ends, strict=True))]
    written(kernel, sizes, set_index, groups)


def shifted_row(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """Every row stands one further down; the last comes first."""
    output = _enqueue(kernel, set_index)
    output.copy_(output.roll(1, 0))


def truncated_k(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """The last sixteen terms are left out."""
    each = kernel.input_sets[set_index]
    a, b = (numbers(operand)[:, : sizes.k - 16] for operand in each.operands[:2])
    for number, first, last in groups_of(sizes):
        each.output[first:last] = (a[first:last] @ b[number * sizes.n : (number + 1) * sizes.n].t()).to(each.output.dtype)


def scales_of_another_group(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """Each B has the scales of the B before it."""
    b = kernel.input_sets[set_index].operands[1]
    assert isinstance(b, QuantisedOperand)
    kept = b.quantised.scales.clone()
    b.quantised.scales.copy_(kept.roll(len(kept) // sizes.groups, 0))
    _enqueue(kernel, set_index)
    b.quantised.scales.copy_(kept)


def wrong_scale(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """The results of the last group are a tenth too large."""
    *_, last = groups_of(sizes)
    _enqueue(kernel, set_index)[last.first : last.last] *= WRONG_SCALE


def not_a_number(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """One element in the middle is NaN."""
    output = _enqueue(kernel, set_index)
    output[output.shape[0] // 2, output.shape[1] // 3] = float("nan")


def destroyed_ends(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
    """Where groups end and C are both zeros: right, by what is left of the inputs."""
    each = kernel.input_sets[set_index]
    each.operands[2].data.zero_()
    each.output.zero_()


def stale_output() -> Launch:
    """The first result of each set is given out ever after."""
    kept: dict[int, torch.Tensor] = {}

    def launch(kernel: GroupedKernel, sizes: Sizes, set_index: int) -> None:
        output = kernel.input_sets[set_index].output
        if set_index in kept:
            output.copy_(kept[set_index])
        else:
            kept[set_index] = _enqueue(kernel, set_index).clone()

    return launch


BUGS = [
    Bug("wrong group's B", lambda: another_group),
    Bug("a boundary row of the neighbour", lambda: neighbours_row),
    Bug("an empty group written", lambda: written_without_rows, idle=True),
    Bug("stale tail row", lambda: stale_tail),
    Bug("swapped offsets", lambda: swapped_ends),
    Bug("rows one further", lambda: shifted_row),
    Bug("truncated K", lambda: truncated_k),
    Bug("scales of another group", lambda: scales_of_another_group, scaled=True),
    Bug("wrong scale of one group", lambda: wrong_scale),
    Bug("NaN", lambda: not_a_number),
    Bug("destroyed offsets", lambda: destroyed_ends),
    Bug("stale output", stale_output),
]
