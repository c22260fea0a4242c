"""What the default configurations become on devices that are not there; ``matrix`` has every target, format and layout."""

from pathlib import Path
from typing import Any

import pytest

from backends.targets.nvidia import waits_in
from tests.backends.triton.compiled import DEVICES, Spec
from tests.backends.triton.matrix import compile_apart, is_sound

EXPECTED = {
    "sm_80/bf16/nt": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "sm_90/bf16/nt": "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
    "sm_90/bf16/tn": "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
    "sm_90/fp8_e4m3/nt": "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3",
    "sm_90/fp8_e4m3/nt/promoted": "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
    "sm_90/int8/nt": "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8",
    "sm_90/int8/nt/row": "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8",
    "sm_90/fp8_e4m3/nt/row": "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3",
    "sm_90/tf32/nt": "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32",
    "sm_90/bf16/nt/odd": "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16",
    "gfx942/bf16/nt": "v_mfma_f32_32x32x8_bf16",
}


@pytest.fixture(scope="module")
def became(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    cache: Path = tmp_path_factory.mktemp("compiled")
    return compile_apart([*EXPECTED, "sm_80/fp8_e4m3/nt", "gfx950/tf32/nt"], 240.0, str(cache))


@pytest.mark.parametrize("spec", EXPECTED)
def test_it_multiplies_with_the_devices_own_instructions(became: dict[str, dict[str, Any]], spec: str) -> None:
    found = became[spec]
    assert is_sound(spec, found), found
    assert found["instructions"] == [EXPECTED[spec]]
    assert not found["emulation"]


@pytest.mark.parametrize("spec", [spec for spec in EXPECTED if spec.startswith("sm_90")])
def test_nothing_spills_on_the_device_that_was_measured(became: dict[str, dict[str, Any]], spec: str) -> None:
    assert became[spec]["spilled_bytes"] == 0


@pytest.mark.parametrize("spec", [spec for spec in EXPECTED if spec.startswith("sm_90")])
def test_products_do_not_wait_for_each_other(became: dict[str, dict[str, Any]], spec: str) -> None:
    assert became[spec]["complaints"] == []


@pytest.mark.parametrize("spec", EXPECTED)
def test_it_takes_no_more_shared_memory_than_was_reckoned_with(became: dict[str, dict[str, Any]], spec: str) -> None:
    found = became[spec]
    assert found["shared_bytes"] <= found["expected_shared_bytes"] <= DEVICES[spec.partition("/")[0]].shared_bytes


def test_promoted_sums_are_added_up_in_fp32(became: dict[str, dict[str, Any]]) -> None:
    assert became["sm_90/fp8_e4m3/nt"]["additions"] == 0
    assert became["sm_90/fp8_e4m3/nt/promoted"]["additions"] >= 64  # 128 x 128 sums over 256 threads


def test_what_a_target_has_not_is_refused_before_it_is_compiled(became: dict[str, dict[str, Any]]) -> None:
    assert became["sm_80/fp8_e4m3/nt"] == {"refused": "Triton has no fp8_e4m3 for sm_80"}
    assert became["gfx950/tf32/nt"] == {"refused": "gfx950 does not multiply in tf32"}


def test_a_compiler_that_does_not_end_is_left(tmp_path: Path) -> None:
    (found,) = compile_apart(["sm_90/bf16/nt"], 0.01, str(tmp_path)).values()
    assert found == {"failed": "not done after 0 s"}
    assert not is_sound("sm_90/bf16/nt", found)


@pytest.mark.parametrize(
    ("change", "sound"),
    [
        ({}, True),
        ({"spilled_bytes": 64}, True),
        ({"spilled_bytes": 120}, False),
        ({"shared_bytes": 232_449}, False),
        ({"scratch_bytes": 128}, False),  # a launch would allocate it
        ({"complaints": ["C7510: wgmma.mma_async instructions are serialized"]}, False),
    ],
)
def test_what_makes_a_kernel_sound(change: dict[str, Any], sound: bool) -> None:
    became = {"config": "", "shared_bytes": 232_448, "spilled_bytes": 0, "scratch_bytes": 0}
    assert is_sound("sm_90/bf16/nt", {**became, **change}) is sound


def test_what_the_assembler_says_of_waits_is_heard() -> None:
    """The line is what ptxas of CUDA 12.8 printed for a loop of products that may not run."""
    told = (
        "ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma "
        "instructions defining accumulator registers of a wgmma between start and end of the pipeline stage in the function 'f'"
    )
    assert waits_in(f"ptxas info    : Used 163 registers, used 1 barriers\n{told}\n") == [told]
    assert waits_in("ptxas info    : 0 bytes gmem\nptxas info    : Used 163 registers") == []


def test_a_spec_is_read_as_it_is_written() -> None:
    device, problem = Spec.parse("sm_90/fp8_e4m3/tn/promoted")
    assert (device, problem.format, problem.layout, problem.promoted) == (DEVICES["sm_90"], "fp8_e4m3", "tn", True)
    assert not problem.undescribed
    assert Spec.parse("sm_90/bf16/nt/odd").problem.undescribed == "rows of A have 16382 bytes, no multiple of 16"
