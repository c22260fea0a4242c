"""Which cases the kernels take, and what they say of the others."""

from dataclasses import replace
from typing import Any

import pytest

from backends.torch import jobs
from backends.torch.target import Target, cuda_target
from backends.triton import works
from backends.triton.gemm import device as device_module
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import foreign, matrix_instructions
from backends.triton.gemm.port import emulation
from backends.triton.gemm.problem import NUMBERS
from suite.jobs.gemm import IMPLEMENTATIONS
from tests.backends.cases import any_cpu, gemm_case
from tests.backends.triton.compiled import DEVICES

HOPPER = cuda_target(0, (9, 0))


@pytest.fixture(autouse=True)
def _on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "of_torch", lambda index: DEVICES["sm_90"])
    monkeypatch.setattr(works, "why_not", lambda: "")


def reason(
    format_name: str, *sizes: int, target: Target = HOPPER, implementation: str = "triton", **options: Any
) -> str | None:
    case = replace(gemm_case(format_name, *(sizes or (64, 64, 64)), backend="cuda", **options), implementation=implementation)
    return jobs.reason(case, target)


@pytest.mark.parametrize("implementation", ["triton", "triton_tuned"])
def test_every_format_that_is_said_to_be_taken_is(implementation: str) -> None:
    for format_name in NUMBERS:
        for layout in ("nt", "nn", "tn", "tt"):
            assert reason(format_name, 17, 33, 65, implementation=implementation, layout=layout) is None
    taken = ", ".join(IMPLEMENTATIONS[implementation])
    assert reason("fp64", implementation=implementation) == f"implementation {implementation} takes {taken}, not fp64"


def test_what_a_library_refuses_is_no_limit_here() -> None:
    assert reason("int8", 16, 33, 32) is None
    assert reason("int8", 16, 33, 32, implementation="library") is not None
    assert reason("fp8_e4m3", 32, 40, 32, layout="nn") is None


@pytest.mark.parametrize(
    ("format_name", "switches", "words"),
    [
        ("fp16", {"fp16_accumulation": True}, "sums fp16 in fp32"),
        ("bf16", {"tunable_op": True}, "triton_tuned"),
        ("bf16", {"workspace_mib": 64}, "cuBLAS"),
        ("fp8_e4m3", {"fp8_fast_accum": True, "workspace_mib": 64}, "cuBLAS"),
    ],
)
def test_settings_of_the_libraries_are_not_the_kernels(format_name: str, switches: dict[str, Any], words: str) -> None:
    said = reason(format_name, switches=switches)
    assert said is not None
    assert words in said
    assert "\n" not in said


def test_fast_accumulation_off_is_a_setting_of_these_kernels_too() -> None:
    assert reason("fp8_e4m3", switches={"fp8_fast_accum": False}) is None


def test_a_cpu_has_none_of_it() -> None:
    said = reason("bf16", target=any_cpu())
    assert said == "implementation triton runs on GPUs; the device here is a CPU"


def test_where_triton_cannot_compile_the_case_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(works, "why_not", lambda: "Triton cannot compile here: no C compiler")
    assert reason("bf16") == "Triton cannot compile here: no C compiler"


@pytest.mark.parametrize(
    ("device", "format_name", "words"),
    [
        (Device("75", 40, 65_536), "fp16", "no configuration of this kernel is made for sm_75, only for sm_80,"),
        (Device("gfx1100", 96, 65_536), "fp16", "made for gfx1100"),
        (DEVICES["gfx950"], "tf32", "gfx950 does not multiply in tf32"),
        (DEVICES["gfx942"], "tf32", None),
        (DEVICES["gfx942"], "fp8_e4m3", None),
    ],
)
def test_devices_are_judged_by_what_they_have(
    monkeypatch: pytest.MonkeyPatch, device: Device, format_name: str, words: str | None
) -> None:
    monkeypatch.setattr(device_module, "of_torch", lambda index: device)
    said = reason(format_name)
    assert (said is None) if words is None else (said is not None and words in said)


def test_sizes_past_32_bits_are_refused() -> None:
    assert reason("int8", 2**31 - 1, 1, 1) == f"this kernel takes sizes up to {2**31 - 1024}, not {2**31 - 1}"
    assert reason("int8", 2**31 - 1024, 1, 1) is None


def test_an_unknown_implementation_is_named_with_its_neighbour() -> None:
    assert reason("bf16", implementation="tritn") == "gemm through torch has no implementation 'tritn'; did you mean 'triton'?"


@pytest.mark.parametrize(
    ("asm", "format_name", "others"),
    [
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {", "bf16", []),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {", "fp16", []),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {", "bf16", ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
            "fp16",
            ["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"],
        ),
        ("tcgen05.mma.cta_group::1.kind::f8f6f4 [%r1]", "fp8_e4m3", []),
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1]", "fp8_e4m3", ["tcgen05.mma.cta_group::1.kind::f16"]),
        ("\tv_mfma_f32_32x32x8bf16_1k a[0:15]", "bf16", []),
        ("\tv_mfma_f32_32x32x8f16 a[0:15]", "fp16", []),
        ("\tv_mfma_f32_32x32x8bf16_1k a[0:15]", "fp16", ["v_mfma_f32_32x32x8bf16_1k"]),
        ("\tv_mfma_f32_32x32x8_f16 a[0:15]", "fp8_e4m3", ["v_mfma_f32_32x32x8_f16"]),
        ("\tv_mfma_i32_32x32x8i8 a[0:15]", "int8", []),
        ("\tv_mfma_f32_32x32x4_xf32 a[0:15]", "tf32", []),
        ("\tv_mfma_f32_32x32x2f32 a[0:15]", "tf32", ["v_mfma_f32_32x32x2f32"]),
    ],
)
def test_instructions_tell_what_is_multiplied(asm: str, format_name: str, others: list[str]) -> None:
    names = matrix_instructions(asm)
    assert len(names) == 1
    assert foreign(names, format_name) == others
    assert bool(emulation({"instructions": names}, format_name)) is bool(others)


def test_a_kernel_without_matrix_instructions_is_emulated() -> None:
    assert emulation({"instructions": []}, "bf16") == "multiplied without matrix instructions"
