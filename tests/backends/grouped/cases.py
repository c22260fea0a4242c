"""Cases of the grouped_gemm job, and their check as the measuring spine makes it."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from backends.torch import jobs
from backends.torch.grouped_gemm.kernel import GroupedKernel
from backends.torch.target import Target
from suite.case import Case, Regime, Workload, items
from suite.jobs.grouped_gemm import GroupedGemmJob, Sizes
from suite.jobs.grouped_gemm.formats import semantics
from suite.jobs.grouped_gemm.sizes import params_of
from suite.measure.verify import check, expect, probe
from suite.measurement import Check
from tests.backends.cases import any_cpu, run_all

COLD = Regime("cold", "sustained", "device")
JOB = GroupedGemmJob()
SMALL = Sizes(5, 60, 128, 128, "balanced")
STORED = [("bf16", None), ("fp16", None), ("fp32", None), ("fp8_e4m3", "row"), ("fp8_e4m3", "block")]


def grouped_case(
    implementation: str,
    format_name: str = "bf16",
    sizes: Sizes = SMALL,
    *,
    scaling: str | None = None,
    distribution: str = "normal",
    switches: Mapping[str, Any] | None = None,
    said: Mapping[str, Any] | None = None,
) -> Case:
    """One case; ``scaling`` is the format's usual one where none is given."""
    numbers = items(said) if said is not None else semantics(format_name, scaling)
    workload = Workload("grouped_gemm", format_name, params_of(sizes), distribution, numbers)
    planned, *_ = JOB.switches(JOB.settings_type(), workload)
    return Case(workload, implementation, "cpu", COLD, planned if switches is None else items(switches))


def prepared(case: Case, sets: int = 1, seed: int = 3, target: Target | None = None) -> GroupedKernel:
    where = target or any_cpu()
    told = jobs.reason(case, where)
    assert told is None, told
    kernel = jobs.prepare(case, where, sets, seed)
    assert isinstance(kernel, GroupedKernel)
    return kernel


def fresh_verdict(kernel: Any, case: Case, seed: int, run: Callable[[], None] | None = None) -> Check:
    """Refill, and check as the measuring spine does: poison, launch every set (or ``run``), compare."""
    kernel.refill(seed)
    probes = [probe(kernel.output_shape, index, 4, seed + index) for index in range(kernel.sets)]
    allowed = JOB.tolerance(case.workload, case.switches)
    return check(kernel, expect(kernel, probes), allowed, run or (lambda: run_all(kernel)))


def by_definition(kernel: GroupedKernel, sizes: Sizes, set_index: int = 0) -> torch.Tensor:
    """Row by row in float64, each by the group that it is in: another way than that of the check's reference."""
    a, b, *_ = (each.numbers(0, each.data.shape[0]) for each in kernel.input_sets[set_index].operands[:2])
    group_of_row = [group for group, count in enumerate(sizes.stored_rows) for _ in range(count)]
    return torch.stack([b[group * sizes.n : (group + 1) * sizes.n] @ row for group, row in zip(group_of_row, a, strict=True)])
