"""Slots for sums of squares: enough for every configuration that a product before a norm may have."""

import pytest

from backends.triton.streaming.config import candidates, tiles
from backends.triton.streaming.norm import slots
from backends.triton.streaming.problem import RESIDUAL, Problem
from tests.backends.triton.compiled import DEVICES


@pytest.mark.parametrize("m", [1, 2, 16, 17, 64])
@pytest.mark.parametrize("width", [16, 44, 80, 1040, 4096, 8192])
@pytest.mark.parametrize("format_name", ["bf16", "fp32"])
def test_no_configuration_has_more_parts_of_a_row_than_there_are_slots(format_name: str, width: int, m: int) -> None:
    p = Problem(format_name, m, width, 4096, RESIDUAL)
    most = max(tiles(p, each) for device in DEVICES.values() for each in candidates(p, device))
    assert most <= slots(width, m)


def test_slots_are_a_power_of_two_that_is_not_much_more_than_there_may_be() -> None:
    assert [slots(width, 1) for width in (16, 44, 4096, 4100)] == [4, 16, 1024, 2048]
    assert [slots(4096, m) for m in (2, 16, 17, 64)] == [256, 256, 128, 128]
