"""Attention with a known bug, wrapped around the real kernel: a check that passes any of them is worth nothing.

``BUGS`` take an ``AttentionKernel`` and give a kernel of the same contract whose every launch is wrong in one way.  All run on
the device, can be captured in a graph, and work forward and backward.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from backends.torch.attention.kernel import AttentionKernel
from backends.torch.attention.reference import Attention
from suite.jobs.attention import Sizes

TAIL = 16  # keys that are dropped, rows that are not written
WRONG_SCALE = 1.1


class BuggyKernel:
    """A kernel whose launches are replaced by ``launch``; everything else is the real one's."""

    def __init__(self, real: AttentionKernel, launch: Callable[[AttentionKernel, Sizes, int], None], sizes: Sizes) -> None:
        self._real, self._launch, self._sizes = real, launch, sizes

    def enqueue(self, set_index: int) -> None:
        self._launch(self._real, self._sizes, set_index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Bug(NamedTuple):
    name: str
    wrap: Callable[[AttentionKernel, Sizes], BuggyKernel]


class Off(Attention):
    """Attention that is wrong in one place, on whole heads in float64."""

    def __init__(self, sizes: Sizes, last: int = 0, first: int = 0, scale: float = 1.0, keys: int = 0) -> None:
        super().__init__(sizes)
        self._last, self._first, self._factor, self._dropped = last, first, scale, keys

    @property
    def _scale(self) -> float:
        return super()._scale * self._factor

    def _masked(self, scores: torch.Tensor, query: int, key: int) -> torch.Tensor:
        sizes = self._sizes
        rows, columns = (torch.arange(size, device=scores.device) for size in scores.shape)
        i, j = (rows + query)[:, None], (columns + key)[None, :]
        first, last = sizes.bounds
        hidden = j >= sizes.kv_len - self._dropped
        if last is not None:
            hidden = hidden | (j - i > last + self._last)
        if first is not None:
            hidden = hidden | (j - i < first + self._first)
        hidden &= j != 0  # no query is left without a key
        return scores.masked_fill_(hidden, float("-inf"))

    def _seen(self, rows: slice) -> slice:
        return slice(0, self._sizes.kv_len)


def computed(off: Off) -> Callable[[AttentionKernel, Sizes, int], None]:
    """Write what ``off`` computes."""

    def launch(kernel: AttentionKernel, sizes: Sizes, set_index: int) -> None:
        each = kernel.buffers[set_index]
        results = list(off._results(each.operands))
        names = ("q", "k", "v") if sizes.is_backward else ("o",)
        ordered = [result for name in names for found, result in results if found == name]
        each.output.view(-1).copy_(torch.cat([result.reshape(-1) for result in ordered]))

    return launch


def swapped_heads(kernel: AttentionKernel, sizes: Sizes, set_index: int) -> None:
    """The first two heads of every sequence stand in each other's place."""
    _enqueue(kernel, set_index)
    for result in kernel.buffers[set_index].results:
        if result.shape[1] > 1:
            result[:, :2] = result[:, :2].flip(1)


def wrong_scale(kernel: AttentionKernel, sizes: Sizes, set_index: int) -> None:
    """Every result is a tenth too large."""
    _enqueue(kernel, set_index)
    kernel.buffers[set_index].output.mul_(WRONG_SCALE)


def unwritten_tail(kernel: AttentionKernel, sizes: Sizes, set_index: int) -> None:
    """The last rows of every head stay what they were."""
    before = [result[:, :, -TAIL:].clone() for result in kernel.buffers[set_index].results]
    _enqueue(kernel, set_index)
    for result, kept in zip(kernel.buffers[set_index].results, before, strict=True):
        result[:, :, -TAIL:] = kept


def values_of_another_head(kernel: AttentionKernel, sizes: Sizes, set_index: int) -> None:
    """Query heads read K and V of the next head: the group is counted from the wrong end."""
    each = kernel.buffers[set_index]
    rolled = [operand.data.clone() for operand in (each.k, each.v)]
    for operand in (each.k, each.v):
        operand.data.view(torch.uint8).copy_(operand.data.view(torch.uint8).roll(1, dims=1))
    _enqueue(kernel, set_index)
    for operand, kept in zip((each.k, each.v), rolled, strict=True):
        operand.data.copy_(kept)


def stale_output() -> Callable[[AttentionKernel, Sizes, int], None]:
    """The first result of each set is given out ever after."""
    kept: dict[int, torch.Tensor] = {}

    def launch(kernel: AttentionKernel, sizes: Sizes, set_index: int) -> None:
        output = kernel.buffers[set_index].output
        if set_index in kept:
            output.copy_(kept[set_index])
            return
        _enqueue(kernel, set_index)
        kept[set_index] = output.clone()

    return launch


def not_a_number(kernel: AttentionKernel, sizes: Sizes, set_index: int) -> None:
    """One element in the middle is NaN."""
    _enqueue(kernel, set_index)
    output = kernel.buffers[set_index].output
    output[output.shape[0] // 2, output.shape[1] // 3].fill_(float("nan"))


def _enqueue(kernel: AttentionKernel, set_index: int) -> None:
    """A real launch, with its results where they belong."""
    kernel.enqueue(set_index)
    kernel.hand_over([set_index])


def _off(name: str, **changes: Any) -> Bug:
    return Bug(name, lambda kernel, sizes: BuggyKernel(kernel, computed(Off(sizes, **changes)), sizes))


def _broken(name: str, launch: Callable[[AttentionKernel, Sizes, int], None]) -> Bug:
    return Bug(name, lambda kernel, sizes: BuggyKernel(kernel, launch, sizes))


BUGS = [
    _off("mask off by one", last=1),
    _off("mask one short", last=-1),
    _off("wrong scale of the scores", scale=WRONG_SCALE),
    _off("dropped tail of keys", keys=TAIL),
    _broken("swapped heads", swapped_heads),
    _broken("wrong scale of the result", wrong_scale),
    _broken("unwritten tail", unwritten_tail),
    _broken("K and V of another head", values_of_another_head),
    Bug("stale output", lambda kernel, sizes: BuggyKernel(kernel, stale_output(), sizes)),
    _broken("NaN", not_a_number),
]
WINDOW_BUGS = [_off("window off by one", first=-1), _off("window one short", first=1)]
