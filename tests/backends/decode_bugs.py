"""Decoding with a known bug, wrapped around the real kernel: a check that passes any of them is worth nothing.

``BUGS`` take a ``DecodeKernel`` and give a kernel of the same contract whose every launch is wrong in one way.  All run on the
device and can be captured in a graph but ``stale page table``, which looks at the host.
"""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from backends.torch.decode.cache import CacheOperand
from backends.torch.decode.kernel import DecodeKernel
from backends.torch.decode.operands import Buffers
from backends.torch.decode.reference import Decoding, Group
from backends.torch.decode.stored import as_bytes
from suite.jobs.decode import Sizes

WRONG_SCALE = 1.1
Launch = Callable[[DecodeKernel, Sizes, int], None]


class BuggyKernel:
    """A kernel whose launches are replaced by ``launch``; everything else is the real one's."""

    def __init__(self, real: DecodeKernel, launch: Launch, sizes: Sizes) -> None:
        self._real, self._launch, self._sizes = real, launch, sizes

    def enqueue(self, set_index: int) -> None:
        self._launch(self._real, self._sizes, set_index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Bug(NamedTuple):
    """``reads_pages`` where the real kernel has to go through the page table for the bug to show."""

    name: str
    wrap: Callable[[DecodeKernel, Sizes], BuggyKernel]
    reads_pages: bool = False
    scaled: bool = False


class Off(Decoding):
    """Decoding that is wrong in one place: ``seen`` tokens of a sequence, given its length, and the size of scores."""

    def __init__(self, sizes: Sizes, seen: Callable[[int], int] = lambda length: length, scale: float = 1.0) -> None:
        super().__init__(sizes)
        self._seen, self._factor = seen, scale

    @property
    def _scale(self) -> float:
        return super()._scale * self._factor

    def _output(self, operands: Any, group: Group, on: torch.device | None = None) -> torch.Tensor:
        tokens = self._seen(self._sizes.tokens[group.sequence])
        k, v = (read(each, group, tokens) for each in (operands[2], operands[-1]))
        return self.of(self.queries(operands, group), k, v)


def read(cache: CacheOperand, group: Group, tokens: int) -> torch.Tensor:
    """The first tokens of a sequence as the page table has them, those behind its end too."""
    pages = cache.table.data[group.sequence, : -(-tokens // cache.sizes.page_size)].to(torch.int64)
    numbers = as_bytes(cache.data)[pages, group.kv_head].view(cache.data.dtype).flatten(0, 1)[:tokens].to(torch.float64)
    if cache.scales is None:
        return numbers
    scales = cache.scales if cache.scales.numel() == 1 else cache.scales[pages, group.kv_head].flatten()[:tokens, None]
    return numbers * scales.to(numbers)


def computed(off: Off) -> Launch:
    """Write what ``off`` computes."""

    def launch(kernel: DecodeKernel, sizes: Sizes, set_index: int) -> None:
        each = kernel.buffers[set_index]
        for group in off._groups():
            off._heads(each.o[group.sequence], group.kv_head).copy_(off._output(each.operands, group))

    return launch


def while_changed(change: Callable[[Buffers, Sizes], None]) -> Launch:
    """The real launch on inputs that ``change`` makes wrong; they are put right after it."""

    @contextmanager
    def changed(each: Buffers, sizes: Sizes) -> Any:
        tensors = [tensor for operand in each.operands for tensor in operand.buffers]
        kept = [tensor.clone() for tensor in tensors]
        change(each, sizes)
        yield
        for tensor, before in zip(tensors, kept, strict=True):
            tensor.copy_(before)

    def launch(kernel: DecodeKernel, sizes: Sizes, set_index: int) -> None:
        with changed(kernel.buffers[set_index], sizes):
            _enqueue(kernel, set_index)

    return launch


def stale_page(each: Buffers, sizes: Sizes) -> None:
    """The first sequence reads a page of the last one."""
    own = sizes.shared_prefix // sizes.page_size
    each.table.data[0, own] = each.table.data[-1, own]


def larger_key_scales(each: Buffers, sizes: Sizes) -> None:
    assert each.k.scales is not None
    each.k.scales.mul_(WRONG_SCALE)


def larger_value_scales(each: Buffers, sizes: Sizes) -> None:
    assert each.v.scales is not None
    each.v.scales.mul_(WRONG_SCALE)


def scales_of_the_next_head(each: Buffers, sizes: Sizes) -> None:
    """Or of the next token, where there is one head; of a tensor's one scale, half."""
    assert each.v.scales is not None
    if each.v.scales.numel() == 1:
        each.v.scales.mul_(0.5)
    else:
        each.v.scales.copy_(each.v.scales.roll(1, dims=1 if sizes.num_kv_heads > 1 else 2))


def next_head(each: Buffers, sizes: Sizes) -> None:
    """Query heads read K and V of the next KV head: groups are counted from the wrong end."""
    for cache in dict.fromkeys((id(each.k), id(each.v))):
        found = each.k if cache == id(each.k) else each.v
        for tensor in found.buffers:
            if tensor.dim() > 1:
                as_bytes(tensor).copy_(as_bytes(tensor).roll(1, dims=1))


def swapped_heads(kernel: DecodeKernel, sizes: Sizes, set_index: int) -> None:
    """The first two query heads of every sequence stand in each other's place."""
    _enqueue(kernel, set_index)
    output = kernel.buffers[set_index].o
    output[:, :, :2] = output[:, :, :2].flip(2)


def unwritten_sequence(kernel: DecodeKernel, sizes: Sizes, set_index: int) -> None:
    """The last sequence's rows stay what they were."""
    before = kernel.buffers[set_index].o[-1:].clone()
    _enqueue(kernel, set_index)
    kernel.buffers[set_index].o[-1:] = before


def not_a_number(kernel: DecodeKernel, sizes: Sizes, set_index: int) -> None:
    """One element in the middle is NaN."""
    _enqueue(kernel, set_index)
    output = kernel.buffers[set_index].output
    output[output.shape[0] // 2, output.shape[1] // 3].fill_(float("nan"))


def stale_table() -> Launch:
    """The page table of the first launch is used ever after."""
    kept: dict[int, torch.Tensor] = {}

    def launch(kernel: DecodeKernel, sizes: Sizes, set_index: int) -> None:
        table = kernel.buffers[set_index].table.data
        old = kept.setdefault(set_index, table.clone())
        now = table.clone()
        table.copy_(old)
        _enqueue(kernel, set_index)
        table.copy_(now)

    return launch


def _enqueue(kernel: DecodeKernel, set_index: int) -> None:
    """A real launch, with its result where it belongs."""
    kernel.enqueue(set_index)
    kernel.hand_over([set_index])


def _off(name: str, make: Callable[[Sizes], Off]) -> Bug:
    return Bug(name, lambda kernel, sizes: BuggyKernel(kernel, computed(make(sizes)), sizes))


def _broken(name: str, launch: Launch, **more: bool) -> Bug:
    return Bug(name, lambda kernel, sizes: BuggyKernel(kernel, launch, sizes), **more)


def without_last_page(page_size: int) -> Callable[[int], int]:
    """A length is divided by a page's and rounded down: what is left of it falls away, or a whole page."""
    return lambda length: max(1, (length - 1) // page_size * page_size)


MASK_BUGS = [
    _off("one key too many", lambda sizes: Off(sizes, lambda length: length + 1)),
    _off("one key too few", lambda sizes: Off(sizes, lambda length: max(1, length - 1))),
]
BUGS = [
    *MASK_BUGS,
    _off("dropped tail page", lambda sizes: Off(sizes, without_last_page(sizes.page_size))),
    _off("wrong scale of the scores", lambda sizes: Off(sizes, scale=WRONG_SCALE)),
    _broken("stale page", while_changed(stale_page), reads_pages=True),
    Bug("stale page table", lambda kernel, sizes: BuggyKernel(kernel, stale_table(), sizes), reads_pages=True),
    _broken("K and V of another head", while_changed(next_head), reads_pages=True),
    _broken("wrong scale of keys", while_changed(larger_key_scales), reads_pages=True, scaled=True),
    _broken("wrong scale of values", while_changed(larger_value_scales), reads_pages=True, scaled=True),
    _broken("scales of another head", while_changed(scales_of_the_next_head), reads_pages=True, scaled=True),
    _broken("swapped heads", swapped_heads),
    _broken("unwritten sequence", unwritten_sequence),
    _broken("NaN", not_a_number),
]
