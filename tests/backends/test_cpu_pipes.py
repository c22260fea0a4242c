"""A plan reckons on a CPU with the unit that results are judged by, whatever is converted to what."""

from dataclasses import replace

import pytest

from backends.torch.gemm.library import way_of
from backends.torch.target import cpu_target
from suite.backend import DeviceInfo
from suite.case import Workload
from suite.jobs.emulation import EXECUTED_PIPE, as_executed
from suite.jobs.gemm import GemmJob, GemmSettings
from suite.jobs.gemm.formats import FORMATS
from suite.plan import Machine, left_out, plan
from suite.planned import DeviceSlot
from suite.search.subject import subjects
from suite.settings import RunConfig, SearchSettings

AVX2 = ("avx2", "fma")
BF16 = (*AVX2, "avx512f", "avx512_bf16", "avx512_vnni")
AMX = (*BF16, "amx_bf16", "amx_int8", "amx_fp16")
SETTINGS = GemmSettings(
    formats=[name for name in FORMATS if name != "tf32"],
    shapes=["512"],
    scaling=["none", "tensor", "row", "block"],
    zero_point=[False, True],
)
LADDER = tuple(GemmJob().workloads(SETTINGS))


def device(isa: tuple[str, ...]) -> DeviceInfo:
    return DeviceInfo(
        "cpu", 0, "Some CPU", "c" * 16, 24 * 2**30, architecture="x86_64", visible_units=2, max_clock_hz=2.6e9,
        llc_bytes=32 * 2**20, isa=isa, cold_by="flush",
    )  # fmt: skip


def slot(info: DeviceInfo) -> DeviceSlot:
    return DeviceSlot(0, info.backend, "x:Y", info)


def planned_compute_s(settings: GemmSettings, info: DeviceInfo) -> float:
    """What the shortest launch of the only workload is told to take, through the limit that leaves it out."""
    config = RunConfig(jobs={"gemm": settings}, max_kernel_s=1e-12)
    (line,) = left_out(config, [slot(info)])
    return float(line.partition("about ")[2].split(" s a launch")[0])


@pytest.mark.parametrize("isa", [AVX2, BF16, AMX], ids=["avx2", "bf16", "amx"])
@pytest.mark.parametrize("workload", LADDER, ids=lambda each: each.format_label)
def test_the_floor_of_a_plan_is_that_of_the_unit_that_multiplies(workload: Workload, isa: tuple[str, ...]) -> None:
    info, semantics = device(isa), dict(workload.semantics)
    settings = replace(
        SETTINGS,
        formats=[workload.format],
        scaling=semantics.get("scaling"),
        zero_point=bool(semantics.get("zero_point")),
    )
    work, way = GemmJob().work(workload), way_of(workload, cpu_target(isa))
    executed = as_executed(work, {EXECUTED_PIPE: way.pipe})
    limits = Machine.of(slot(info), RunConfig(jobs={})).ceilings
    peak = limits and (limits.peak_flop_s(executed.pipe) or limits.peak_flop_s("fp32"))
    assert peak
    assert planned_compute_s(settings, info) == pytest.approx(work.flops / peak, rel=5e-3)


def test_weights_of_integers_take_fp32_and_fp8_the_bf16_of_a_cpu_that_has_it() -> None:
    pipes = {each.format_label: way_of(each, cpu_target(BF16)).pipe for each in LADDER}
    of_fp32 = ("w8a16", "w4a16", "w4a16 zero point")
    as_stored = ("fp64", "fp32", "bf16", "fp16", "int8", "int8 tensor", "int8 row")
    assert {label for label, pipe in pipes.items() if pipe == "fp32"} == set(of_fp32)
    assert {label for label, pipe in pipes.items() if pipe is None} == set(as_stored)
    assert {pipe for label, pipe in pipes.items() if label not in of_fp32 + as_stored} == {"bf16"}
    assert {way_of(each, cpu_target(AVX2)).pipe for each in LADDER} == {"fp32", None}


def test_a_search_takes_a_format_for_no_faster_than_what_multiplies_it() -> None:
    """Of an unknown 20 TFLOP/s a CPU would be given launches of seconds, of which a look has not one."""
    formats = ["fp32", "bf16", "fp8_e4m3", "mxfp4", "w8a16"]
    config = RunConfig(jobs={"gemm": GemmSettings(formats=formats)}, search=SearchSettings())
    found = {each.example.case.workload.format: each.space().most_flops for each in subjects(config, [slot(device(BF16))])}
    assert found["fp8_e4m3"] == found["mxfp4"] == found["bf16"] == 2 * found["fp32"]
    assert found["w8a16"] == found["fp32"]


def test_what_does_no_arithmetic_has_no_unit() -> None:
    calibration = plan(RunConfig(jobs={"gemm": replace(SETTINGS, formats=["fp32"])}), [slot(device(AVX2))])[:3]
    assert [case.work.pipe for case in calibration] == [None] * 3
