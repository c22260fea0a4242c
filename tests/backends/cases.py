"""Cases and checks that the tests of all torch backends share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backends.torch.kernel import TorchKernel
from backends.torch.target import Target, cpu_target
from suite.case import Case, Regime, Workload, items
from suite.jobs.calibration import CalibrationJob
from suite.jobs.gemm import GemmJob
from suite.measure.verify import check, compare, expect, probe
from suite.measurement import Check

COLD = Regime("cold", "sustained", "device")
WARM = Regime("warm", "sustained", "device")
CALL = Regime("warm", "sustained", "call")

EVERY_FORMAT = ("fp64", "fp32", "tf32", "bf16", "fp16", "int8", "fp8_e4m3")
CPU_FORMATS = tuple(name for name in EVERY_FORMAT if name != "tf32")


def gemm_case(
    format_name: str,
    m: int,
    n: int,
    k: int,
    *,
    layout: str = "nt",
    distribution: str = "normal",
    backend: str = "cpu",
    regime: Regime = COLD,
    switches: Mapping[str, Any] | None = None,
    semantics: Mapping[str, Any] | None = None,
) -> Case:
    """A gemm case as the job plans it, with what a test wants otherwise."""
    params = items({"m": m, "n": n, "k": k, "layout": layout})
    workload = Workload("gemm", format_name, params, distribution, items(semantics or {}))
    job = GemmJob()
    planned, *_ = job.switches(job.settings_type(), workload)
    return Case(workload, "library", backend, regime, planned if switches is None else items(switches))


def calibration_case(op: str, size_bytes: int, *, backend: str = "cpu", regime: Regime = COLD) -> Case:
    return Case(Workload("calibration", "fp32", items({"op": op, "bytes": size_bytes})), "library", backend, regime)


def any_cpu() -> Target:
    return cpu_target(())


def tolerance_of(case: Case) -> float:
    job = CalibrationJob() if case.workload.job == "calibration" else GemmJob()
    return job.tolerance(case.workload, case.switches)


def run_all(kernel: Any) -> None:
    for set_index in range(kernel.sets):
        kernel.enqueue(set_index)


def verdict(kernel: Any, case: Case, seed: int = 1, sets: Sequence[int] | None = None) -> Check:
    """A check of the outputs as they stand now."""
    probes = [probe(kernel.output_shape, index, 4, seed + index) for index in (sets or range(kernel.sets))]
    return compare(kernel, probes, [kernel.reference(each) for each in probes], tolerance_of(case))


def fresh_verdict(kernel: Any, case: Case, seed: int, run: Callable[[], None] | None = None) -> Check:
    """Refill, and check as the measuring spine does: poison, launch every set (or ``run``), compare."""
    kernel.refill(seed)
    probes = [probe(kernel.output_shape, index, 4, seed + index) for index in range(kernel.sets)]
    return check(kernel, expect(kernel, probes), tolerance_of(case), run or (lambda: run_all(kernel)))


def addresses(kernel: TorchKernel) -> list[int]:
    return [
        tensor.data_ptr()
        for each in kernel.input_sets
        for tensor in (*(operand.data for operand in each.operands), each.output)
    ]
