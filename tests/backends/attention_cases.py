"""Cases of the attention job, and their check as the measuring spine makes it."""

from collections.abc import Callable, Mapping
from typing import Any

from suite.case import Case, Regime, Workload, items
from suite.jobs.attention import AttentionJob, Sizes
from suite.jobs.attention.sizes import HEADS, SLIDING_WINDOW, params_of
from suite.measure.verify import check, expect, probe
from suite.measurement import Check

COLD = Regime("cold", "sustained", "device")
JOB = AttentionJob()


def attention_case(
    implementation: str,
    format_name: str = "bf16",
    heads: str = "4/2x64",
    batch: int = 2,
    length: int = 200,
    mask: str = "causal",
    direction: str = "forward",
    *,
    window: int = 37,
    distribution: str = "normal",
    semantics: Mapping[str, Any] | None = None,
    backend: str = "cpu",
    regime: Regime = COLD,
) -> Case:
    """One case; ``window`` is that of a sliding window."""
    q_heads, kv_heads, head_dim, v_head_dim = HEADS.parse(heads)
    windowed = window if mask == SLIDING_WINDOW else None
    sizes = Sizes(direction, batch, q_heads, kv_heads, length, length, head_dim, v_head_dim, mask, windowed)
    workload = Workload("attention", format_name, params_of(sizes), distribution, items(semantics or {}))
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
