"""Every table of choices has one that fits its devices and spills nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.backends.triton import apart
from tests.backends.triton.asked import names_asked, parameters

# One device of each kind, the widest heads, and what a limit is given for.
SPECS = (
    "sm_80/forward/causal/bf16/128",
    "sm_80/keys/causal/bf16/192",
    "sm_80/queries/causal/bf16/192",
    "sm_90/forward/full/bf16/128",
    "sm_90/forward/causal/bf16/128",
    "sm_90/forward/causal/bf16/256",
    "sm_90/forward/full/fp8_e4m3/128",
    "sm_90/hopper/full/bf16/128",
    "sm_90/hopper/window/bf16/128",
    "sm_90/hopper/causal/bf16/256",
    "sm_90/keys/causal/bf16/128",
    "sm_90/keys/causal/bf16/128/1",
    "sm_90/keys/causal/bf16/256",
    "sm_90/keys/causal/bf16/256/1",
    "sm_90/keys/ragged-window/bf16/256/1",
    "sm_90/keys/ragged-window/bf16/192/8",
    "sm_90/keys/ragged-window/bf16/128/8",
    "sm_90/queries/causal/bf16/128",
    "sm_90/queries/causal/bf16/256",
    "sm_90/queries/ragged-window/bf16/256/1",
    "sm_100/forward/causal/bf16/128",
    "sm_100/keys/causal/bf16/256",
    "sm_120/keys/causal/bf16/128",
    "gfx942/forward/causal/bf16/128",
    "gfx942/keys/causal/bf16/256",
    "gfx942/queries/causal/bf16/256",
)
FIRST_OF_ITS_TABLE = (
    "sm_90/forward/full/bf16/128",
    "sm_90/forward/causal/bf16/128",
    "sm_90/hopper/full/bf16/128",
    "sm_90/keys/causal/bf16/128/1",
)


# What is compiled by default: one of each table on the device with limits, and the widest heads elsewhere.
ALWAYS = (
    *FIRST_OF_ITS_TABLE,
    "sm_90/keys/ragged-window/bf16/256/1",
    "sm_90/queries/causal/bf16/256",
    "gfx942/queries/causal/bf16/256",
)


@pytest.fixture(scope="module")
def chosen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    asked = names_asked(request)
    cache: Path = tmp_path_factory.mktemp("chosen")
    return apart.compiled("tests.backends.triton.attention.chosen", asked, cache)


@pytest.mark.parametrize("spec", parameters(SPECS, lambda name: name not in ALWAYS))
def test_a_choice_fits_and_spills_no_more_than_it_may(chosen: dict[str, dict[str, Any]], spec: str) -> None:
    assert chosen[spec]["chosen"], chosen[spec]["passed_over"]


@pytest.mark.parametrize("spec", FIRST_OF_ITS_TABLE)
def test_the_default_on_the_device_with_limits_is_the_first_of_its_table(chosen: dict[str, dict[str, Any]], spec: str) -> None:
    assert chosen[spec]["passed_over"] == {}
