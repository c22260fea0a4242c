"""What each AMD target computes, how, and what it refuses; products as torch hands them to its libraries."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from backends.torch import jobs
from backends.torch.gemm.library import way_of
from backends.torch.gemm.scaled_hip import REORDERED_SINCE
from backends.torch.hip_target import HIPBLASLT, hip_target, preferred_blas
from backends.torch.kernel import TorchKernel
from backends.torch.target import Target
from suite.jobs.fp8 import FNUZ, OCP
from tests.backends.cases import gemm_case, run_all, verdict
from tests.rocm.conftest import Attach
from tests.rocm.hip import Hip

DEVICE_OF = {"gfx942": "mi300x", "gfx90a": "mi250x", "gfx950": "mi350x"}


def on_host(architecture: str) -> Target:
    return replace(hip_target(0, architecture, HIPBLASLT), device=torch.device("cpu"))


def attached(attach: Attach, architecture: str) -> Hip:
    """A device of this target; of targets without a recorded one, an MI300X that says so."""
    hip = attach(DEVICE_OF.get(architecture, "mi300x"))
    hip.properties[0].gcnArchName = f"{architecture}:sramecc+:xnack-"
    return hip


def prepared(case: Any, target: Target) -> TorchKernel:
    kernel = jobs.prepare(case, target, 2, seed=3)
    assert isinstance(kernel, TorchKernel)
    run_all(kernel)
    return kernel


@pytest.mark.parametrize(
    ("architecture", "missing"),
    [
        ("gfx90a", {"tf32"}),
        ("gfx942", set()),
        ("gfx950", {"tf32"}),
        ("gfx1201", {"tf32"}),
        ("gfx1030", {"tf32", "int8"}),
    ],
)
def test_what_a_target_lacks(architecture: str, missing: set[str]) -> None:
    target = hip_target(0, architecture, HIPBLASLT)
    always = {"fp32 by bf16x9", "fp64 by int8"}
    assert set(target.missing) == missing | always
    assert all(architecture in reason for reason in target.missing.values())
    assert target.is_amd


def test_tf32_of_gfx942_is_hipblaslt_s(attach: Attach) -> None:
    """torch takes the switch without a word where nothing would follow from it: rocBLAS multiplies in fp32."""
    assert "tf32" not in hip_target(0, "gfx942", HIPBLASLT).missing
    assert "torch prefers rocBLAS here; set backends.rocm.options.blas" in hip_target(0, "gfx942", "rocBLAS").missing["tf32"]
    assert "gfx950 has none" in hip_target(0, "gfx950", HIPBLASLT).missing["tf32"]
    hip = attach("mi300x")
    names = []
    for hip.blas in ("Cublas", "Cublaslt", "Ck"):
        names.append(preferred_blas())
    assert names == ["rocBLAS", "hipBLASLt", "CK"]


def test_a_device_without_matrix_cores_emulates() -> None:
    assert hip_target(0, "gfx1030", "rocBLAS").execution("bf16") == "emulated"
    assert hip_target(0, "gfx90a", HIPBLASLT).execution("bf16") == "native"
    assert hip_target(0, "gfx90a", HIPBLASLT).execution("fp64") == "native"


@pytest.mark.parametrize(
    ("architecture", "encoding", "dtype"),
    [("gfx942", FNUZ, torch.float8_e4m3fnuz), ("gfx950", OCP, torch.float8_e4m3fn), ("gfx1201", OCP, torch.float8_e4m3fn)],
)
@pytest.mark.parametrize("scaling", ["tensor", "row"])
def test_fp8_is_multiplied_in_the_encoding_of_the_device(
    attach: Attach, architecture: str, encoding: str, dtype: torch.dtype, scaling: str
) -> None:
    hip = attached(attach, architecture)
    target = on_host(architecture)
    case = gemm_case("fp8_e4m3", 48, 64, 96, backend="rocm", semantics={"scaling": scaling})
    assert jobs.reason(case, target) is None
    kernel = prepared(case, target)
    assert hip.scaled_dtypes == {(dtype, dtype)}
    assert verdict(kernel, case).passed
    described = kernel.describe()
    assert (kernel.execution, described["library"], described["fp8_encoding"]) == ("native", HIPBLASLT, encoding)
    assert described["operand_dtype"] == str(dtype).removeprefix("torch.")


def test_a_gradient_times_a_weight_on_gfx942(attach: Attach) -> None:
    hip = attached(attach, "gfx942")
    case = gemm_case("fp8_e5m2", 48, 64, 96, backend="rocm")
    kernel = prepared(case, on_host("gfx942"))
    assert hip.scaled_dtypes == {(torch.float8_e5m2fnuz, torch.float8_e4m3fnuz)}
    assert verdict(kernel, case).passed


def test_a_reference_that_takes_one_encoding_for_the_other_does_not_pass(attach: Attach) -> None:
    """The same bits are worth twice as much."""
    attached(attach, "gfx942")
    case = gemm_case("fp8_e4m3", 48, 64, 96, backend="rocm")
    kernel = prepared(case, on_host("gfx942"))
    assert verdict(kernel, case).passed
    first, *others = kernel.input_sets
    a, b = first.operands
    misread = replace(a, data=a.data.view(torch.uint8).view(torch.float8_e4m3fn))
    kernel.input_sets = (first._replace(operands=(misread, b)), *others)
    assert not verdict(kernel, case).passed


@pytest.mark.parametrize("architecture", ["gfx90a", "gfx1030"])
def test_fp8_where_there_is_none_is_converted(attach: Attach, architecture: str) -> None:
    attached(attach, architecture)
    target = on_host(architecture)
    case = gemm_case("fp8_e4m3", 48, 64, 96, backend="rocm")
    assert jobs.reason(case, target) is None
    kernel = prepared(case, target)
    assert kernel.execution == "emulated"
    assert verdict(kernel, case).passed
    assert f"not {architecture}" in kernel.describe()["emulation"]
    assert kernel.describe()["fp8_encoding"] == OCP


def test_blocks_of_128_are_converted_on_gfx942_and_stay_fnuz(attach: Attach) -> None:
    attached(attach, "gfx942")
    case = gemm_case("fp8_e4m3", 128, 128, 256, backend="rocm", semantics={"scaling": "block"})
    kernel = prepared(case, on_host("gfx942"))
    described = kernel.describe()
    assert (kernel.execution, described["fp8_encoding"]) == ("emulated", FNUZ)
    assert described["stored"]["a"]["element"] == "e4m3fnuz"
    assert verdict(kernel, case).passed


@pytest.mark.parametrize(
    ("architecture", "execution"),
    [("gfx90a", "emulated"), ("gfx942", "emulated"), ("gfx950", "native"), ("gfx1201", "emulated")],
)
@pytest.mark.parametrize("format_name", ["mxfp8_e4m3", "mxfp4"])
def test_mx_formats_are_gfx950_s(attach: Attach, architecture: str, execution: str, format_name: str) -> None:
    attached(attach, architecture)
    way = way_of(gemm_case(format_name, 64, 64, 128, backend="rocm").workload, on_host(architecture))
    assert ("emulated" if way.emulation else "native") == execution
    if execution == "native":
        assert (way.call, way.library) == ("torch._scaled_mm_v2", HIPBLASLT)
        odd = gemm_case(format_name, 48, 64, 128, backend="rocm")
        assert "multiples of 32, not m=48" in str(jobs.reason(odd, on_host(architecture)))


def test_mx_formats_are_converted_where_rocm_wants_scales_in_another_order(
    attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached(attach, "gfx950")
    monkeypatch.setattr(torch.version, "hip", ".".join(map(str, (*REORDERED_SINCE, 0))))
    way = way_of(gemm_case("mxfp4", 64, 64, 128, backend="rocm").workload, on_host("gfx950"))
    assert "torch for ROCm 7.13 wants scales of MX blocks in an order" in way.emulation


@pytest.mark.parametrize("format_name", ["mxfp6_e2m3", "nvfp4"])
def test_what_no_library_of_rocm_takes_is_converted(attach: Attach, format_name: str) -> None:
    attached(attach, "gfx950")
    assert way_of(gemm_case(format_name, 64, 64, 128, backend="rocm").workload, on_host("gfx950")).pipe == "bf16"


@pytest.mark.parametrize(
    ("format_name", "library"),
    [("bf16", HIPBLASLT), ("fp64", HIPBLASLT), ("int8", HIPBLASLT), ("fp8_e4m3", HIPBLASLT), ("w4a16", "torch's own kernel")],
)
def test_libraries_have_their_own_names(attach: Attach, format_name: str, library: str) -> None:
    attached(attach, "gfx942")
    assert way_of(gemm_case(format_name, 64, 64, 128, backend="rocm").workload, on_host("gfx942")).library == library


def test_weights_of_4_bits_take_tiles_of_16_rows(attach: Attach) -> None:
    attached(attach, "gfx942")
    reason = jobs.reason(gemm_case("w4a16", 64, 72, 128, backend="rocm"), on_host("gfx942"))
    assert reason == "torch._weight_int4pack_mm takes n that are multiples of 16, not n=72; pad to n=80"


def test_fast_accumulation_of_fp8_does_nothing_on_amd(attach: Attach) -> None:
    attached(attach, "gfx942")
    case = gemm_case("fp8_e4m3", 32, 48, 64, backend="rocm", switches={"fp8_fast_accum": True, "tunable_op": True})
    assert prepared(case, on_host("gfx942")).describe()["switches_without_effect"] == ["fp8_fast_accum"]


def test_other_jobs_store_fp8_as_ocp_does() -> None:
    """Kernels of roofbench's own, and products of groups, convert OCP's fp8 where a device has none of it."""
    target = on_host("gfx942")
    assert jobs.PORTS["gemm"].stored(target).fp8 == FNUZ
    assert {name for name, port in jobs.PORTS.items() if port.stored(target).fp8 == FNUZ} == {"gemm"}
