"""Which products the kernel of few rows takes, and how they are cut."""

import pytest

from backends.triton.gemm.device import Device
from backends.triton.quantised.few_rows.config import CONFIGS, Config, candidates, columns, programs, reason, steps, unfit
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.weight_config import candidates as others

HOPPER, AMPERE, CDNA = Device("90", 132, 232448), Device("80", 108, 166912), Device("gfx942", 304, 65536)
SQUARE = Problem("w4a16", 1, 8192, 8192)


def test_takes_a_few_rows_of_w4a16_on_nvidia_alone() -> None:
    assert reason(SQUARE, HOPPER) is None
    assert reason(SQUARE._replace(m=8, zero_point=True), AMPERE) is None
    assert reason(SQUARE._replace(m=9), HOPPER) == "X has 9 rows, and this kernel takes up to 8"
    assert "gfx942" in str(reason(SQUARE, CDNA))
    assert "w8a16" in str(reason(Problem("w8a16", 1, 8192, 8192), HOPPER))


def test_a_unit_holds_as_many_programs_as_its_registers_have_room_for() -> None:
    held = {config: config.resident for config in CONFIGS}
    assert held[Config(1, 4, 2, 128)] == 4
    assert held[Config(1, 4, 1, 80)] == 6
    assert held[Config(4, 4, 1, 255)] == 2


@pytest.mark.parametrize(("m", "most"), [(1, 4), (2, 4), (3, 2), (4, 2), (5, 1), (8, 1), (9, 1), (16, 1)])
def test_columns_that_x_leaves_are_for_other_groups_of_k(m: int, most: int) -> None:
    problem = SQUARE._replace(m=m)
    assert {config.sets for config in CONFIGS if unfit(config, problem) is None} == {each for each in (1, 2, 4) if each <= most}
    assert columns(problem) == (8 if m <= 8 else 16)
    assert str(unfit(Config(1, 4, 2, 128), SQUARE._replace(m=5))).endswith("has 8 columns, too few for m=5 rows of each group")


@pytest.mark.parametrize("sizes", [(1, 1, 128), (8, 33, 128), (1, 80, 1024), (4, 128256, 4096), (2, 1024, 28672)])
@pytest.mark.parametrize("device", [HOPPER, AMPERE])
def test_every_size_has_a_configuration_whose_parts_all_have_a_turn(sizes: tuple[int, int, int], device: Device) -> None:
    problem = Problem("w4a16", *sizes)
    found = candidates(problem, device)
    assert found
    assert len({each.label for each in found}) == len(found)
    for config in found:
        assert unfit(config, problem) is None
        assert config.split <= -(-problem.k // (512 * config.warps))
        assert programs(config, problem) * config.rows >= problem.n * config.split
    assert [steps(each, problem, device) for each in found] == sorted(steps(each, problem, device) for each in found)


def test_more_parts_than_rounds_are_refused() -> None:
    problem = Problem("w4a16", 1, 64, 1024)
    assert str(unfit(CONFIGS[0]._replace(split=2), problem)).endswith(
        "has more parts than the 1 rounds of its warps over k=1024"
    )


def test_more_rows_than_it_takes_go_to_the_other_kernel() -> None:
    assert others(SQUARE._replace(m=16), HOPPER)
