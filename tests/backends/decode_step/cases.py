"""Cases of the decode_step job in small, and their check as the measuring spine makes it."""

from collections.abc import Callable
from typing import Any

from backends.torch import jobs
from backends.torch.decode_step.kernel import StepKernel
from suite.backend import Probe
from suite.case import Case, Regime, Workload
from suite.jobs.decode_step import DecodeStepJob, DecodeStepSettings
from suite.measure.verify import TILE, check, expect
from suite.measurement import Check
from tests.backends.cases import any_cpu

COLD = Regime("cold", "sustained", "device")
JOB = DecodeStepJob()
SIZES: dict[str, Any] = {
    "layers": 3,
    "hidden_sizes": 64,
    "heads": "4/2x16",
    "intermediate_sizes": 96,
    "vocabularies": 300,
    "batches": [3],
    "kv_lens": [37],
    "page_sizes": [8],
}
LOOKED_AT = 3  # rows of a tile: what is looked at on the host takes the most time


def workload_of(part: str = "step", format_name: str = "bf16", **settings: Any) -> Workload:
    given = DecodeStepSettings(parts=[part], formats=[format_name], **{**SIZES, **settings})
    JOB.check(given)
    (workload,) = JOB.workloads(given)
    return workload


def step_case(
    implementation: str = "library",
    format_name: str = "bf16",
    part: str = "step",
    *,
    backend: str = "cpu",
    regime: Regime = COLD,
    **settings: Any,
) -> Case:
    """One case; ``settings`` are those of the job in the place of ``SIZES``."""
    return Case(workload_of(part, format_name, **settings), implementation, backend, regime)


def prepared(case: Case, sets: int = 1, seed: int = 3) -> Any:
    told = jobs.reason(case, any_cpu())
    assert told is None, told
    return jobs.prepare(case, any_cpu(), sets, seed)


def prepared_step(case: Case, sets: int = 1) -> StepKernel:
    kernel = prepared(case, sets)
    assert isinstance(kernel, StepKernel)
    return kernel


def run_all(kernel: Any) -> None:
    for set_index in range(kernel.sets):
        kernel.enqueue(set_index)


def probes_of(kernel: Any, seed: int) -> list[Probe]:
    """A tile in the first rows and one in the last of each set: few rows, for all of them are looked at in a projection."""
    rows, columns = kernel.output_shape
    height, width = min(LOOKED_AT, rows), min(TILE, columns)
    return [
        Probe(index, ((seed % (rows - height + 1), 0, height, width), (rows - height, columns - width, height, width)), seed)
        for index in range(kernel.sets)
    ]


def fresh_verdict(kernel: Any, case: Case, seed: int, run: Callable[[], None] | None = None) -> Check:
    """Refill, and check as the measuring spine does: poison, launch every set (or ``run``), compare."""
    kernel.refill(seed)
    expected = expect(kernel, probes_of(kernel, seed))
    return check(kernel, expected, JOB.tolerance(case.workload, case.switches), run or (lambda: run_all(kernel)))
