"""What the kernels of grouped products become on devices that are not there."""

from pathlib import Path
from typing import Any

import pytest

from tests.backends.triton.compiled import DEVICES
from tests.backends.triton.matrix import compile_apart, is_sound

# What each multiplies with; ``make thorough`` has the rest.
FEW = {
    "sm_90/bf16/prefill": "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
    "sm_90/fp8_e4m3/prefill/gluon": "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
    "gfx90a/bf16/prefill": "v_mfma_f32_32x32x8bf16_1k",
}
MORE = {
    "sm_90/bf16/step": "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
    "sm_90/bf16/odd": "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16",
    "sm_90/fp8_e4m3/prefill/fast": "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3",
    "sm_90/fp8_e4m3/prefill/row": "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
    "sm_90/fp8_e4m3/prefill/block": "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
    "sm_90/fp8_e4m3/step/gluon": "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
    "sm_90/fp8_e4m3/prefill/gluon/2": "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
    "sm_90/fp8_e4m3/step/block": "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
    "sm_80/bf16/prefill": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "sm_80/bf16/step": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "sm_89/fp8_e4m3/prefill/block": "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
    "sm_100/bf16/prefill": "tcgen05.mma.cta_group::1.kind::f16",
    "sm_100/fp8_e4m3/prefill/row": "tcgen05.mma.cta_group::1.kind::f8f6f4",
    "sm_100/fp8_e4m3/prefill/block": "tcgen05.mma.cta_group::1.kind::f8f6f4",
    "sm_120/bf16/prefill": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "gfx942/bf16/prefill": "v_mfma_f32_32x32x8_bf16",
    "gfx950/bf16/prefill": "v_mfma_f32_32x32x16_bf16",
    "gfx950/fp8_e4m3/prefill/block": "v_mfma_f32_32x32x64_f8f6f4",
}
CONVERTED = "gfx942/fp8_e4m3/prefill/block"
Became = dict[str, dict[str, Any]]


def compiled(specs: list[str], cache: Path) -> Became:
    return compile_apart(specs, 280.0, str(cache), "tests.backends.triton.grouped.compiled")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Became:
    return compiled([*FEW, "sm_80/fp8_e4m3/prefill/row"], tmp_path_factory.mktemp("few"))


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Became:
    return compiled([*MORE, CONVERTED], tmp_path_factory.mktemp("more"))


def hold(spec: str, found: dict[str, Any], instruction: str) -> None:
    """It multiplies with the device's own instructions, has room, and stores rows of one group alone.

    Where it was measured nothing spills; on the others a few registers may, as with plain products.
    """
    assert is_sound(spec, found), found
    assert found["instructions"] == [instruction]
    assert found["schedule"]["spilled_bytes"] == 0
    assert found["spilled_bytes"] == 0 or not spec.startswith("sm_90")
    assert found["shared_bytes"] <= found["expected_shared_bytes"] <= DEVICES[spec.partition("/")[0]].shared_bytes
    assert found["emulation"] == ""
    described = spec.startswith(("sm_90", "sm_1")) and "odd" not in spec
    assert (found["clipped_stores"] > 0) == described


@pytest.mark.parametrize("spec", FEW)
def test_it_multiplies_with_the_devices_own_instructions(few: Became, spec: str) -> None:
    hold(spec, few[spec], FEW[spec])


def test_on_hopper_one_warp_loads_and_two_groups_of_four_multiply(few: Became) -> None:
    """The registers of one go to the others; each of these stores rows of its own, and A comes in two halves beside B."""
    found = few["sm_90/fp8_e4m3/prefill/gluon"]
    assert {24, 240} <= set(found["limits"])
    assert 3 * found["registers"] >= 24 + 2 * 240, "three groups of four warps share what they were launched with"
    assert (found["clipped_stores"], found["copies"]) == (2, 3)


def test_what_a_target_has_not_is_refused_before_it_is_compiled(few: Became) -> None:
    assert few["sm_80/fp8_e4m3/prefill/row"] == {"refused": "Triton has no fp8_e4m3 for sm_80"}


@pytest.mark.thorough
@pytest.mark.parametrize("spec", MORE)
def test_it_does_so_on_every_target(more: Became, spec: str) -> None:
    hold(spec, more[spec], MORE[spec])


@pytest.mark.thorough
def test_what_a_target_multiplies_in_another_format_is_said_to_be_emulated(more: Became) -> None:
    assert is_sound(CONVERTED, more[CONVERTED]), more[CONVERTED]
    assert more[CONVERTED]["emulation"].startswith("operands converted, then multiplied by v_mfma")
