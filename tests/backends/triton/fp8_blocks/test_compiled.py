"""What the kernel of one product becomes for Hopper, by every configuration that is tried there."""

from typing import Any

import pytest

from backends.triton.quantised.on_hopper import CONFIGS
from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.compiled import DEVICES
from tests.backends.triton.matrix import compile_apart

BY_LABEL = {config.label: config for config in CONFIGS}
# One of each width and way of adding up; others differ in stages and in the order of tiles.
FIRST_OF_A_KIND = {(config.block_n, config.sums, config.staged): config.label for config in reversed(CONFIGS)}


@pytest.fixture(scope="module")
def became(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    cache = str(tmp_path_factory.mktemp("compiled"))
    return compile_apart(names_asked(request), 280.0, cache, "tests.backends.triton.fp8_blocks.compiled")


def is_one_of_several(spec: str) -> bool:
    return spec not in FIRST_OF_A_KIND.values()


@pytest.mark.parametrize("spec", parameters(BY_LABEL, is_one_of_several))
def test_it_multiplies_in_wgmma_without_spills_or_waits(became: dict[str, dict[str, Any]], spec: str) -> None:
    config, found = BY_LABEL[spec], became[spec]
    assert "failed" not in found, found
    assert found["instructions"] == [f"wgmma.mma_async.sync.aligned.m64n{config.part}k32.f32.e4m3.e4m3"]
    assert (found["spilled_bytes"], found["scratch_bytes"], found["complaints"]) == (0, 0, [])
    assert {24, config.registers} <= set(found["limits"])
    assert found["shared_bytes"] <= found["expected_shared_bytes"] <= DEVICES["sm_90"].shared_bytes
    assert found["copies"] == 2 + config.block_n // config.part + 2 * config.staged


@pytest.mark.parametrize("spec", parameters(BY_LABEL, is_one_of_several))
def test_every_sum_is_added_up_once_with_its_scale(became: dict[str, dict[str, Any]], spec: str) -> None:
    """By each of the two groups; pairs have a block more where their number is odd."""
    config = BY_LABEL[spec]
    blocks = 3 if config.sums == "pairs" else 1
    assert became[spec]["additions"] == 2 * blocks * config.block_n // 2


def test_every_way_of_adding_up_is_tried_at_some_width() -> None:
    assert {config.sums for config in CONFIGS} == {"apart", "turns", "pairs"}
    assert len(set(CONFIGS)) == len(CONFIGS)
