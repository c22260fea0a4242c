"""What the kernels become on devices that are not there."""

from pathlib import Path
from typing import Any

import pytest

from backends.triton.attention.choices import SPARED_OF_FORWARD
from tests.backends.triton import apart
from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.compiled import DEVICES

# A part of the names of the matrix instructions, by spec.
NATIVE = {
    "sm_80/forward/causal/bf16/128": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_80/keys/causal/bf16/128": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_90/forward/full/bf16/128": "wgmma.mma_async.sync.aligned",
    "sm_90/forward/causal/bf16/128": "wgmma.mma_async.sync.aligned",
    "sm_90/fastest/causal/bf16/128": "wgmma.mma_async.sync.aligned",
    "sm_90/forward/window/fp16/64": "wgmma.mma_async.sync.aligned",
    "sm_90/forward/ragged/bf16/256": "wgmma.mma_async.sync.aligned",
    "sm_90/forward/causal/bf16/192": "wgmma.mma_async.sync.aligned",
    "sm_90/forward/full/fp8_e4m3/128": "f32.e4m3.e4m3",
    "sm_90/keys/full/bf16/128": "wgmma.mma_async.sync.aligned",
    "sm_90/queries/causal/bf16/128": "wgmma.mma_async.sync.aligned",
    "sm_90/hopper/full/bf16/128": "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
    "sm_90/hopper/causal/bf16/128": "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
    "sm_90/hopper/causal/bf16/256": "wgmma.mma_async.sync.aligned",
    "sm_100/forward/causal/bf16/128": "tcgen05.mma",
    "sm_100/queries/causal/bf16/128": "tcgen05.mma",
    "gfx90a/forward/causal/bf16/128": "v_mfma_f32_32x32x8bf16_1k",
    "gfx90a/keys/causal/bf16/128": "v_mfma_f32_32x32x8bf16_1k",
    "gfx942/forward/causal/bf16/128": "v_mfma_f32_32x32x8_bf16",
    "gfx942/queries/causal/bf16/192": "v_mfma_f32_32x32x8_bf16",
    "gfx950/forward/causal/bf16/128": "v_mfma_f32_32x32x16_bf16",
    "gfx950/forward/full/fp8_e4m3/128": "f8f6f4",
}
# By default one of each device, and of each kernel on the device that was measured, with the widest heads.
ALWAYS = (
    "sm_80/keys/causal/bf16/128",
    "sm_90/forward/ragged/bf16/256",
    "sm_90/forward/full/fp8_e4m3/128",
    "sm_90/fastest/causal/bf16/128",
    "sm_90/keys/full/bf16/128",
    "sm_90/queries/causal/bf16/128",
    "sm_90/hopper/causal/bf16/128",
    "sm_100/forward/causal/bf16/128",
    "gfx942/queries/causal/bf16/192",
    "gfx950/forward/causal/bf16/128",
)
BY_COPY_ENGINE = [spec for spec in NATIVE if spec.startswith(("sm_90", "sm_100"))]
NO_SPILLS = [spec for spec in NATIVE if spec.startswith("sm_90") and "/fastest/" not in spec]


def is_thorough(name: str) -> bool:
    return name not in ALWAYS


@pytest.fixture(scope="module")
def became(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    asked = names_asked(request)
    cache: Path = tmp_path_factory.mktemp("compiled")
    return apart.compiled("tests.backends.triton.attention.compiled", asked, cache)


@pytest.mark.parametrize("spec", parameters(NATIVE, is_thorough))
def test_it_multiplies_with_the_devices_own_instructions(became: dict[str, dict[str, Any]], spec: str) -> None:
    found = became[spec]
    assert "failed" not in found, found
    assert found["instructions"]
    assert all(NATIVE[spec] in each for each in found["instructions"]), found["instructions"]


@pytest.mark.parametrize("spec", parameters(NATIVE, is_thorough))
def test_it_has_room_on_the_device(became: dict[str, dict[str, Any]], spec: str) -> None:
    assert became[spec]["shared_bytes"] <= DEVICES[spec.partition("/")[0]].shared_bytes


@pytest.mark.parametrize("spec", parameters(BY_COPY_ENGINE, is_thorough))
def test_it_loads_by_the_copy_engine(became: dict[str, dict[str, Any]], spec: str) -> None:
    assert became[spec]["tensor_copies"] > 0


@pytest.mark.parametrize("spec", parameters(NO_SPILLS, is_thorough))
def test_nothing_spills_on_the_device_that_was_measured(became: dict[str, dict[str, Any]], spec: str) -> None:
    assert became[spec]["spilled_bytes"] == 0


@pytest.mark.parametrize("spec", ["sm_90/hopper/causal/bf16/128"])
def test_a_group_computes_exponentials_while_its_own_values_are_multiplied(
    became: dict[str, dict[str, Any]], spec: str
) -> None:
    """The assembler moves a wait above any arithmetic that nothing holds in front of it; then the counts are 0."""
    counts = became[spec]["overlapped"]
    block_of_a_thread = 64 * 128 // 128
    assert len(counts) == 2  # one a group
    assert min(counts) >= block_of_a_thread


@pytest.mark.parametrize("spec", ["sm_90/fastest/causal/bf16/128"])
def test_what_the_fastest_forward_spills_is_nothing_of_the_loop_of_whole_blocks(
    became: dict[str, dict[str, Any]], spec: str
) -> None:
    """The second loop is that of the blocks that a causal mask cuts, one or two of a tile."""
    whole, _masked = became[spec]["spills_of_loops"]
    assert whole == 0
    assert became[spec]["spilled_bytes"] <= 4 * SPARED_OF_FORWARD
