"""What products of quantised operands become on devices that are not there; ``matrix`` has every target and format."""

from pathlib import Path
from typing import Any

import pytest

from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.compiled import DEVICES
from tests.backends.triton.compiled_rungs import RUNGS
from tests.backends.triton.matrix import compile_apart, is_sound, rungs_of

SQUARE, FEW, SOME = "4096x4096x4096", "24x8192x8192", "64x8192x8192"
HOPPER = {
    "w4": "bf16.bf16",
    "w4zero": "bf16.bf16",
    "w8": "bf16.bf16",
    "mx4": "bf16.bf16",
    "mx4full": "bf16.bf16",
    "blocks": "e4m3.e4m3",
}
ON_HOPPER = [*(f"sm_90/{rung}/{sizes}" for rung in HOPPER for sizes in (SQUARE, FEW)), f"sm_90/w4/{SOME}"]
ELSEWHERE = {
    f"sm_80/w4/{SQUARE}": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    f"sm_80/w4zero/{FEW}": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    f"sm_89/blocks/{SQUARE}": "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
    f"sm_100/mx4/{SQUARE}": "tcgen05.mma.cta_group::1.kind::f16",
    f"sm_100/blocks/{SQUARE}": "tcgen05.mma.cta_group::1.kind::f8f6f4",
    f"gfx942/w8/{SQUARE}": "v_mfma_f32_32x32x8_bf16",
    f"gfx942/mx4/{FEW}": "v_mfma_f32_16x16x16_bf16",
    f"gfx950/w4/{SQUARE}": "v_mfma_f32_32x32x16_bf16",
    f"gfx950/blocks/{FEW}": "v_mfma_f32_32x32x64_f8f6f4",
}
EMULATED = f"gfx942/blocks/{FEW}"
# By default of each way to store weights one size, and one of each kind of device; other sizes take other tiles of the same.
MORE_OF_THE_SAME = {
    *(f"sm_90/{rung}/{FEW}" for rung in ("w4zero", "w8", "mx4full", "mx4")),
    f"sm_90/w4zero/{SQUARE}",
    f"sm_80/w4zero/{FEW}",
    f"sm_89/blocks/{SQUARE}",
    f"gfx942/mx4/{FEW}",
    f"gfx950/w4/{SQUARE}",
}
REFUSED = f"sm_80/blocks/{SQUARE}"


@pytest.fixture(scope="module")
def became(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    cache: Path = tmp_path_factory.mktemp("compiled")
    specs = names_asked(request, [EMULATED, REFUSED])
    return compile_apart(specs, 400.0, str(cache), "tests.backends.triton.compiled_rungs")


@pytest.mark.parametrize("spec", parameters(ON_HOPPER, MORE_OF_THE_SAME.__contains__))
def test_hopper_multiplies_in_wgmma_without_waits_or_spills(became: dict[str, dict[str, Any]], spec: str) -> None:
    found = became[spec]
    assert is_sound(spec, found), found
    assert all(name.startswith("wgmma") and HOPPER[spec.split("/")[1]] in name for name in found["instructions"])
    assert found["instructions"]
    assert (found["spilled_bytes"], found["complaints"], found["emulation"]) == (0, [], "")


@pytest.mark.parametrize("spec", parameters(ELSEWHERE, MORE_OF_THE_SAME.__contains__))
def test_other_devices_multiply_with_their_own_instructions(became: dict[str, dict[str, Any]], spec: str) -> None:
    found = became[spec]
    assert is_sound(spec, found), found
    assert found["instructions"] == [ELSEWHERE[spec]]
    assert not found["emulation"]


@pytest.mark.parametrize("spec", parameters([*ON_HOPPER, *ELSEWHERE, EMULATED], MORE_OF_THE_SAME.__contains__))
def test_it_takes_no_more_shared_memory_than_was_reckoned_with(became: dict[str, dict[str, Any]], spec: str) -> None:
    found = became[spec]
    assert found["shared_bytes"] <= found["expected_shared_bytes"] <= DEVICES[spec.partition("/")[0]].shared_bytes


def test_what_a_target_multiplies_in_another_format_is_said_to_be_emulated(became: dict[str, dict[str, Any]]) -> None:
    assert became[EMULATED]["emulation"].startswith("operands converted, then multiplied by v_mfma")


def test_what_a_target_has_not_is_refused_before_it_is_compiled(became: dict[str, dict[str, Any]]) -> None:
    assert became[REFUSED] == {"refused": "Triton has no fp8_e4m3 for sm_80"}


def test_the_matrix_has_every_rung() -> None:
    assert {spec.split("/")[1] for spec in rungs_of("sm_90")} == set(RUNGS)
