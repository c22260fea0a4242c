"""What a plan says that an absent device would not offer is what the backend says of one that is there."""

from typing import Any

import pytest

from backends.torch.hip_target import HIPBLASLT, hip_target
from backends.torch.target import Target, cuda_target
from suite import cli
from suite.case import Case, Regime, Workload, items
from suite.hardware.catalogue import all_specs, load
from suite.hardware.lacking import capability, lacking, without_unit
from suite.hardware.spec import HardwareSpec
from suite.jobs.gemm import GemmJob
from suite.planned import PlannedCase

COLD = Regime("cold", "sustained", "device")
SHAPE = {"m": 64, "n": 64, "k": 64, "layout": "nt"}


def product(fmt: str, backend: str = "cuda", **switches: Any) -> PlannedCase:
    workload = Workload("gemm", fmt, items(SHAPE))
    given = items(switches)
    work = GemmJob().work(workload, given)
    return PlannedCase(0, 0, Case(workload, "library", backend, COLD, given), work, 0.1, 1, 1, 1.0)


def target_of(spec: HardwareSpec) -> Target | None:
    """As a backend describes the device of a sheet, where the sheet says which one it is."""
    found = capability(spec)
    if found is not None:
        return cuda_target(0, found)
    gfx = spec.runtime.gfx_target
    return hip_target(0, gfx, HIPBLASLT) if gfx else None


ASKED = {
    "tf32": ("tf32", {}),
    "int8": ("int8", {}),
    "fp32 by bf16x9": ("fp32", {"emulation": "bf16x9"}),
    "fp64 by int8": ("fp64", {"emulation": "int8"}),
    "bf16": ("bf16", {}),
    "fp64": ("fp64", {}),
}


@pytest.mark.parametrize("spec", [spec for spec in all_specs() if target_of(spec)], ids=lambda spec: spec.id)
def test_every_sheet_says_what_the_backend_would(spec: HardwareSpec) -> None:
    target = target_of(spec)
    assert target is not None
    backend = "rocm" if target.is_amd else "cuda"
    said = {name for name, (fmt, switches) in ASKED.items() if lacking(product(fmt, backend, **switches), spec)}
    assert said == set(target.missing)


def test_reasons_name_what_was_found_and_what_it_takes() -> None:
    v100, mi210 = load("nvidia-v100-sxm2-32gb"), load("amd-mi210")
    assert lacking(product("tf32"), v100) == "the sheet lists fp64, fp32, fp16 (tensor), int8 (dp4a only), and no tf32"
    assert lacking(product("int8"), v100) == "int8 tensor cores need compute capability 7.5, and the sheet says 7.0"
    assert lacking(product("fp64", emulation="int8"), v100) == (
        "fp64 by int8 needs compute capability 8.0, and the sheet says 7.0"
    )
    of_cublas = "fp32 by bf16x9 is a mode of NVIDIA's cuBLAS, which backend rocm does not call"
    for sheet in (mi210, None):
        assert lacking(product("fp32", "rocm", emulation="bf16x9"), sheet) == of_cublas


def test_nothing_is_said_of_what_no_sheet_tells() -> None:
    assert lacking(product("tf32"), None) == ""
    assert lacking(product("fp32", emulation="bf16x9"), None) == ""
    assert lacking(product("tf32", "of_a_plugin"), load("nvidia-v100-sxm2-32gb")) == ""
    assert lacking(product("tf32"), load("nvidia-a10g")) == ""  # no rate was found for it, and it is listed
    assert list(without_unit([product("int8")], load("nvidia-h20-3e-141gb"))) == []


def test_formats_without_a_unit_are_named_once() -> None:
    cases = [product(fmt) for fmt in ("bf16", "fp8_e4m3", "fp8_e4m3", "int8")]
    assert list(without_unit(cases, load("nvidia-a100-sxm4-80gb"))) == ["fp8_e4m3"]
    assert list(without_unit(cases, load("nvidia-h100-sxm5-80gb"))) == []


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    capsys.readouterr()
    assert cli.main(["plan", *arguments, "jobs.gemm.shapes=[1024]", "store.url=nothing.db"]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_plan_for_a_sheet_says_which_cases_would_be_unsupported(capsys: pytest.CaptureFixture[str]) -> None:
    lines = planned(capsys, "hardware=nvidia-v100-sxm2-32gb", "jobs.gemm.formats=[fp16,tf32,bf16]")
    (tf32,) = {line.partition("would be ")[2] for line in lines if " tf32 " in line and "library" in line}
    why = "the sheet lists fp64, fp32, fp16 (tensor), int8 (dp4a only), and no tf32"
    assert tf32 == f"unsupported: {why}"
    assert [line for line in lines if "would be unsupported there" in line] == [
        f"{sum(' tf32 ' in line for line in lines if 'library' in line)} cases would be unsupported there: {why}"
    ]
    assert "no unit by the sheet nvidia-v100-sxm2-32gb for bf16: such cases would be emulated, or unsupported" in lines
    assert not [line for line in lines if " fp16 library" in line and "would be unsupported:" in line]


def test_a_plan_for_a_device_that_lacks_nothing_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lines = planned(capsys, "hardware=nvidia-h100-sxm5-80gb", "jobs.gemm.formats=[fp16,tf32,fp8_e4m3]")
    assert not [line for line in lines if "would be" in line]
