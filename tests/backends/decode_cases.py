"""Cases of the decode job, and their check as the measuring spine makes it."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from backends.torch import jobs
from backends.torch.decode.kernel import DecodeKernel
from suite.case import Case, Regime, Workload, items
from suite.jobs.decode import FORMATS, DecodeJob, Sizes, scaling_of, sizes_of
from suite.jobs.decode.sizes import HEADS, params_of
from suite.measure.verify import check, expect, probe
from suite.measurement import Check
from tests.backends.cases import any_cpu

COLD = Regime("cold", "sustained", "device")
JOB = DecodeJob()
# Formats with their scalings.
STORED = [(name, scaling) for name, fmt in FORMATS.items() for scaling in (fmt.scalings or (None,))]


def decode_case(
    implementation: str,
    format_name: str = "bf16",
    heads: str = "4/2x64",
    batch: int = 3,
    kv_len: int = 100,
    *,
    page_size: int = 16,
    lengths: str = "equal",
    order: str = "random",
    shared_prefix: int = 0,
    q_len: int = 1,
    scaling: str | None = None,
    activation: str | None = None,
    distribution: str = "normal",
    semantics: Mapping[str, Any] | None = None,
    backend: str = "cpu",
    regime: Regime = COLD,
) -> Case:
    """One case; ``scaling`` and ``activation`` are the format's usual ones where none is given."""
    q_heads, kv_heads, head_dim, v_head_dim = HEADS.parse(heads)
    sizes = Sizes(
        batch, q_heads, kv_heads, q_len, kv_len, head_dim, v_head_dim, page_size, order, lengths, shared_prefix=shared_prefix
    )
    fmt = FORMATS.get(format_name)
    chosen = {"activation": activation or fmt.activations[0]} if fmt is not None and (activation or fmt.is_quantised) else {}
    said = {"scaling": scaling} if scaling else {}
    params = items(dict(params_of(sizes)) | chosen)
    workload = Workload("decode", format_name, params, distribution, items(semantics or said))
    return Case(workload, implementation, backend, regime)


def run_all(kernel: Any) -> None:
    for set_index in range(kernel.sets):
        kernel.enqueue(set_index)


def fresh_verdict(
    kernel: Any, case: Case, seed: int, run: Callable[[], None] | None = None, tolerance: float | None = None
) -> Check:
    """Refill, and check as the measuring spine does: poison, launch every set (or ``run``), compare."""
    kernel.refill(seed)
    probes = [probe(kernel.output_shape, index, 4, seed + index) for index in range(kernel.sets)]
    expected = expect(kernel, probes)
    allowed = JOB.tolerance(case.workload, case.switches) if tolerance is None else tolerance
    return check(kernel, expected, allowed, run or (lambda: run_all(kernel)))


def prepared(case: Case, sets: int = 1, seed: int = 3) -> DecodeKernel:
    told = jobs.reason(case, any_cpu())
    assert told is None, told
    kernel = jobs.prepare(case, any_cpu(), sets, seed)
    assert isinstance(kernel, DecodeKernel)
    return kernel


def by_definition(kernel: DecodeKernel, case: Case, set_index: int = 0) -> torch.Tensor:
    """Token by token through the page table, in float64: another way than that of the check's reference."""
    each, sizes = kernel.buffers[set_index], sizes_of(case.workload)
    table, group = each.table.data.tolist(), sizes.num_q_heads // sizes.num_kv_heads

    def worth(cache: Any, sequence: int, token: int, head: int) -> torch.Tensor:
        page, place = table[sequence][token // sizes.page_size], token % sizes.page_size
        numbers = cache.data[page, head, place].double()
        scaling = scaling_of(case.workload)
        return (
            numbers
            * {
                "none": lambda: 1.0,
                "tensor": lambda: float(cache.scales),
                "token": lambda: float(cache.scales[page, head, place]),
            }[scaling]()
        )

    out = torch.zeros(each.o.shape, dtype=torch.float64)
    for sequence, length in enumerate(sizes.tokens):
        for head in range(sizes.num_kv_heads):
            keys, values = (torch.stack([worth(cache, sequence, j, head) for j in range(length)]) for cache in (each.k, each.v))
            for i in range(sizes.q_len):
                seen = length - (sizes.q_len - 1 - i)
                for h in range(head * group, (head + 1) * group):
                    scores = keys[:seen] @ each.q.data[sequence, i, h].double() / sizes.head_dim**0.5
                    weights = (scores - scores.max()).exp()
                    out[sequence, i, h] = (weights @ values[:seen, : sizes.v_head_dim]) / weights.sum()
    return out.flatten(0, 2)
