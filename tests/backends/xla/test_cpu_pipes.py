"""A plan for XLA on a CPU reckons with what XLA multiplies there."""

from dataclasses import replace

import pytest

from backends.xla import XlaBackend
from suite.case import Case
from suite.jobs.emulation import as_executed
from suite.jobs.gemm import GemmJob, GemmSettings
from suite.plan import COLD, Machine, left_out
from suite.planned import DeviceSlot
from suite.settings import RunConfig

ISA = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni")


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16", "fp16", "int8", "fp8_e4m3"])
def test_the_floor_of_a_plan_is_that_of_the_unit_that_results_are_judged_by(name: str) -> None:
    backend, job = XlaBackend({"platform": "cpu"}), GemmJob()
    info = replace(backend.select(0), isa=ISA, max_clock_hz=2.6e9)
    settings = GemmSettings(formats=[name], shapes=["512"])
    (workload,) = job.workloads(settings)
    kernel = backend.prepare(Case(workload, "library", "xla", COLD, ()), 1, 1)
    executed, slot = as_executed(job.work(workload), kernel.describe()), DeviceSlot(0, "xla", "x:Y", info)
    limits = Machine.of(slot, RunConfig(jobs={})).ceilings
    peak = limits and limits.peak_flop_s(executed.pipe)
    assert peak
    (line,) = left_out(RunConfig(jobs={"gemm": settings}, max_kernel_s=1e-12), [slot])
    assert float(line.partition("about ")[2].split(" s a launch")[0]) == pytest.approx(executed.flops / peak, rel=5e-3)
