"""One product of a library for each group that has rows, one after the other: what is done without a grouped product.

Where groups end is known on the host before anything is launched; a router's choice would have to be waited for.  What no
library multiplies as it is stored is converted to bf16 in every launch: A whole, and one B after the other into one scratch.

cuBLASLt (of CUDA 13.0, on an H200) refused the first group whose scales did not begin at a multiple of 16 bytes, as most do
not: scales of A are copied to where each group's do when the data is written, not in a launch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import torch

from backends.torch.gemm.library import way_of
from backends.torch.gemm.operands import arranged_by, quantised_of
from backends.torch.gemm.sizes import Sizes as PlainSizes
from backends.torch.gemm.sizes import transposed
from backends.torch.gemm.way import CONVERTED
from backends.torch.gemm.way import Way as PlainWay
from backends.torch.gemm.widen import Widener
from backends.torch.grouped_gemm.operands import Buffers, part, scales_of
from backends.torch.grouped_gemm.product import Group, groups_of
from backends.torch.grouped_gemm.way import Task, Way
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload, items
from suite.jobs.emulation import EXECUTED_PIPE, PASSING_BYTES
from suite.jobs.grouped_gemm import Sizes, sizes_of
from suite.jobs.grouped_gemm.formats import BLOCK, scaling_of, semantics

Call = Callable[[], Any]
WIDE_BYTES = 2
SCALES_FROM_BYTES = 16
REFUSED = "CUBLAS_STATUS_NOT_SUPPORTED"


def refuses(workload: Workload, target: Target) -> str | None:
    """What the library refuses of one group's product."""
    if _converted(workload, target):
        return None
    sizes = sizes_of(workload)
    return _plain_way(workload, target).refuses(PlainSizes(max(sizes.rows), sizes.n, sizes.k, "nt"))


def make(task: Task) -> Made:
    """Launches that write C, group by group."""
    plain, why = _plain_way(task.workload, task.target), _converted(task.workload, task.target)
    known = {"groups_launched": task.sizes.busy, "offsets": "known on the host: nothing reads them in a launch"}
    if why:
        pipe = "fp32" if "bf16" in task.target.emulated else "bf16"
        of_bf16 = _plain_way(Workload("grouped_gemm", "bf16", task.workload.params), task.target)
        passing = WIDE_BYTES * (task.sizes.height + task.sizes.busy * task.sizes.n) * task.sizes.k
        facts = {"call": "torch.mm on bf16 copies", "library": of_bf16.library, EXECUTED_PIPE: pipe, PASSING_BYTES: passing}
        wide = _Wide(task)
        return Made([in_turn(wide.calls(each)) for each in task.buffers], {**facts, **known}, emulation=why)
    facts = {"call": plain.call, "library": plain.library, **known}
    if not scaling_of(task.workload):
        return Made([in_turn(_plain(task, each)) for each in task.buffers], facts)
    calls = [tuple(_scaled(task, each)) for each in task.buffers]
    _try_each_size(task.sizes, calls[0])
    scales = f"of each group from a multiple of {SCALES_FROM_BYTES} bytes on"
    return Made([in_turn(each) for each in calls], {**facts, "scales": scales})


def in_turn(calls: Iterable[Call]) -> Call:
    """One launch of several calls."""
    ready = tuple(calls)

    def launch() -> None:
        for call in ready:
            call()

    return launch


def _plain_way(workload: Workload, target: Target) -> PlainWay:
    """How the library takes a product of one group."""
    sizes = sizes_of(workload)
    params = items({"m": max(sizes.rows), "n": sizes.n, "k": sizes.k})
    said = semantics(workload.format, scaling_of(workload))
    return way_of(Workload("gemm", workload.format, params, workload.distribution, said), target)


def _converted(workload: Workload, target: Target) -> str:
    """Why numbers are converted to bf16; empty where they are multiplied as they are stored."""
    told = _plain_way(workload, target).emulation
    if scaling_of(workload) == BLOCK and not told:
        return f"{CONVERTED}: a library would want the scales of each group apart"
    return told


def _plain(task: Task, each: Buffers) -> Iterator[Call]:
    for group in groups_of(task.sizes):
        a, b, c = _of_group(task.sizes, group, each)
        yield partial(torch.mm, a, transposed(b), out=c)


def _scaled(task: Task, each: Buffers) -> Iterator[Call]:
    """Scales of A are rows x 1, of B 1 x n."""
    of_b = scales_of(each.b)
    assert of_b is not None
    for group, of_a in zip(groups_of(task.sizes), _aligned_scales(task.sizes, each), strict=True):
        a, b, c = _of_group(task.sizes, group, each)
        first = group.number * task.sizes.n
        yield partial(
            torch._scaled_mm,
            a,
            b.t(),
            scale_a=of_a,
            scale_b=of_b[first : first + task.sizes.n].t(),
            out_dtype=c.dtype,
            use_fast_accum=task.fast_accum,
            out=c,
        )


def _aligned_scales(sizes: Sizes, each: Buffers) -> Iterator[torch.Tensor]:
    """Scales of A of each group that has rows (rows x 1), kept from refill to refill."""
    stored = scales_of(each.a)
    assert stored is not None
    step, counts = SCALES_FROM_BYTES // stored.itemsize, [group.last - group.first for group in groups_of(sizes)]
    starts = list(accumulate((-(-rows // step) * step for rows in counts), initial=0))
    aligned, spans = stored.new_zeros(starts.pop(), 1), list(zip(starts, counts, strict=True))
    places = torch.cat([torch.arange(start, start + rows) for start, rows in spans]).to(stored.device)
    arranged_by(each.a, lambda: aligned.index_copy_(0, places, stored))
    return iter([aligned[start : start + rows] for start, rows in spans])


def _try_each_size(sizes: Sizes, calls: Sequence[Call]) -> None:
    """One product of each number of rows: which ones cuBLASLt has no algorithm for, it says in a launch only.

    Raises ``NotImplementedError`` for those.
    """
    of_rows = {group.last - group.first: call for group, call in zip(groups_of(sizes), calls, strict=True)}
    for rows, call in of_rows.items():
        try:
            call()
        except RuntimeError as error:
            if REFUSED not in str(error):
                raise
            raise NotImplementedError(
                f"torch._scaled_mm does not multiply a group of {rows} rows by n={sizes.n} k={sizes.k} here, in fp8 with "
                f"scales of rows (cuBLASLt: {REFUSED}); take library or triton, or other rows of groups"
            ) from error


def _of_group(sizes: Sizes, group: Group, each: Buffers) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A, B and C of one group as they are stored: views."""
    number, first, last = group
    return each.a.data[first:last], each.b.data[number * sizes.n : (number + 1) * sizes.n], each.output[first:last]


class _Wide:
    """bf16 scratch for A and for one B, which all input sets and groups share."""

    def __init__(self, task: Task) -> None:
        self._sizes, first = task.sizes, task.buffers[0]
        n, k, device = task.sizes.n, task.sizes.k, task.target.device
        self._a = torch.empty(task.sizes.height, k, dtype=torch.bfloat16, device=device)
        self._b = torch.empty(n, k, dtype=torch.bfloat16, device=device)
        self._of_a = Widener(quantised_of(first.a).format, (task.sizes.height, k), device)
        self._of_b = Widener(quantised_of(first.b).format, (n, k), device)

    def calls(self, each: Buffers) -> Iterator[Call]:
        yield self._of_a.bind(quantised_of(each.a), self._a)
        n = self._sizes.n
        for number, first, last in groups_of(self._sizes):
            yield self._of_b.bind(part(quantised_of(each.b), number * n, (number + 1) * n), self._b)
            yield partial(torch.mm, self._a[first:last], transposed(self._b), out=each.output[first:last])


WAY = Way(refuses, make)
