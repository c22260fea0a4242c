"""What the kernels become on devices that are not there."""

from pathlib import Path
from typing import Any

import pytest

from tests.backends.triton import apart
from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.compiled import DEVICES

# A part of the names of the matrix instructions, by spec.
NATIVE = {
    "sm_80/bf16/none/8b/16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_80/int8/token/8b/16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/bf16/none/8b/16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_90/bf16/none/8b/16/2": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_90/fp16/none/mqa/1": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/bf16/none/256/16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_90/bf16/none/mla/64": "wgmma.mma_async.sync.aligned",
    "sm_90/bf16/none/mla-16/64": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_90/fp8_e4m3/tensor/8b/16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/fp8_e4m3/token/8b/1": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/fp8_e4m3/token/8b-4-tokens/16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/fp8_e4m3/token/mha-64/64": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/fp8_e4m3/tensor/mla/64": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/fp8_e4m3/token/mla-16/16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/int8/token/8b/16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_90/int8/token/256/16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_100/bf16/none/8b/16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_100/fp8_e4m3/token/8b/16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16",
    "sm_100/bf16/none/mla/64": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "gfx90a/bf16/none/8b/16": "v_mfma_f32_16x16x16bf16_1k",
    "gfx90a/int8/token/8b/16": "v_mfma_f32_16x16x16f16",
    "gfx942/bf16/none/8b/1": "v_mfma_f32_16x16x16_bf16",
    "gfx942/fp8_e4m3/token/8b/16": "v_mfma_f32_16x16x16_f16",
    "gfx950/bf16/none/8b/16": "v_mfma_f32_16x16x32_bf16",
    "gfx950/int8/token/8b/16": "v_mfma_f32_16x16x32_f16",
}
# By default one of each device, of each kernel on the device that was measured, and of each format that it reads; other heads
# and pages cut the same kernels otherwise.
ALWAYS = (
    "sm_80/bf16/none/8b/16",
    "sm_90/bf16/none/8b/16",
    "sm_90/bf16/none/mla/64",
    "sm_90/fp8_e4m3/token/8b/1",
    "sm_90/int8/token/8b/16",
    "sm_100/bf16/none/mla/64",
    "gfx942/fp8_e4m3/token/8b/16",
    "gfx950/bf16/none/8b/16",
)
FP32 = [f"sm_90/fp32/none/{heads}/16" for heads in ("8b", "mla-16", "mha-64", "mqa", "256", "8b-4-tokens")]
FEW_FP32 = FP32[:2]
REFUSED = "sm_80/fp8_e4m3/token/8b/16"
MEASURED = [spec for spec in NATIVE if spec.startswith("sm_90")]
COPIED = [spec for spec in NATIVE if spec.startswith("sm_") and "/none/" in spec]
BY_REGISTERS = [spec for spec in NATIVE if spec.startswith(("sm_90", "sm_100")) and "none" not in spec and "/8b" in spec]

Found = dict[str, dict[str, Any]]


def is_thorough(name: str) -> bool:
    return name not in ALWAYS


@pytest.fixture(scope="module")
def became(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    wanted = names_asked(request, [REFUSED])
    cache: Path = tmp_path_factory.mktemp("compiled")
    return apart.compiled("tests.backends.triton.decode.compiled", wanted, cache)


@pytest.mark.parametrize("spec", parameters(NATIVE, is_thorough))
def test_it_multiplies_with_the_devices_own_instructions(became: Found, spec: str) -> None:
    found = became[spec]
    assert "failed" not in found, found
    assert found["instructions"]
    assert all(NATIVE[spec] in each for each in found["instructions"]), found["instructions"]


@pytest.mark.parametrize("spec", parameters(NATIVE, is_thorough))
def test_it_has_room_on_the_device_and_no_more_than_was_reckoned(became: Found, spec: str) -> None:
    found = became[spec]
    assert found["shared_bytes"] <= DEVICES[spec.partition("/")[0]].shared_bytes
    assert found["shared_bytes"] <= found["expected_shared_bytes"]


@pytest.mark.parametrize("spec", parameters(MEASURED, is_thorough))
def test_nothing_spills_on_the_device_that_was_measured(became: Found, spec: str) -> None:
    assert became[spec]["spilled_bytes"] == 0


@pytest.mark.parametrize("spec", parameters(FP32, lambda name: name not in FEW_FP32))
def test_fp32_is_multiplied_in_registers_that_hold_it(became: Found, spec: str) -> None:
    """Whole columns of both operands of a product, in the threads that there are."""
    found = became[spec]
    assert found["instructions"] == []
    assert found["spilled_bytes"] == 0
    assert found["copies"] > 0
    assert found["shared_bytes"] <= found["expected_shared_bytes"] <= DEVICES["sm_90"].shared_bytes


@pytest.mark.parametrize("spec", parameters(COPIED, is_thorough))
def test_keys_and_values_are_copied_ahead_of_the_products(became: Found, spec: str) -> None:
    assert became[spec]["copies"] > 0


@pytest.mark.parametrize("spec", parameters(BY_REGISTERS, is_thorough))
def test_eight_bits_go_by_words_of_16_bytes_and_are_not_written_again(became: Found, spec: str) -> None:
    """Three times 16 loads of keys and values: ahead of the loops and in each; an operand in shared memory has 32 stores."""
    found = became[spec]
    assert found["kernel"] == "registers"
    assert found["copies"] == 0
    assert found["wide_loads"] == 48
    assert found["stored_words"] < 32
    assert found["conversions"] == (256 if "fp8" in spec else 0)  # two a word and loop, and no more


def test_fp8_is_refused_where_the_device_cannot_convert_it(became: Found) -> None:
    assert "sm_80" in became[REFUSED]["refused"]
