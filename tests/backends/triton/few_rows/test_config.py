"""Which products the kernel of few rows takes, and how they are cut."""

import pytest

from backends.triton.gemm.device import Device
from backends.triton.quantised.few_rows.config import CONFIGS, Config, candidates, columns, cycles, programs, reason, unfit
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.weight_config import candidates as others

HOPPER, AMPERE, CDNA = Device("90", 132, 232448), Device("80", 108, 166912), Device("gfx942", 304, 65536)
SQUARE = Problem("w4a16", 1, 8192, 8192)


def test_takes_a_few_rows_of_w4a16_on_nvidia_alone() -> None:
    assert reason(SQUARE, HOPPER) is None
    assert reason(SQUARE._replace(m=16, zero_point=True), AMPERE) is None
    assert reason(SQUARE._replace(m=17), HOPPER) == "X has 17 rows, and this kernel takes up to 16"
    assert "gfx942" in str(reason(SQUARE, CDNA))
    assert "w8a16" in str(reason(Problem("w8a16", 1, 8192, 8192), HOPPER))


def test_a_unit_holds_as_many_programs_as_its_registers_have_room_for() -> None:
    held = {config: config.resident for config in CONFIGS}
    assert held[Config(1, 4, 2, 128)] == 4
    assert held[Config(1, 8, 1, 80)] == 3
    assert held[Config(2, 1, 4, 255)] == 8
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
    assert [cycles(each, problem, device) for each in found] == sorted(cycles(each, problem, device) for each in found)


def test_more_parts_than_rounds_are_refused() -> None:
    problem = Problem("w4a16", 1, 64, 1024)
    assert str(unfit(Config(1, 4, 4, 168, split=2), problem)).endswith(
        "has more parts than the 1 rounds of its warps over k=1024"
    )


# Microseconds of one H200, operands cold: the three fastest of what is offered, for rows of X, rows of W and K.
TIMED: dict[tuple[int, int, int], dict[Config, float]] = {
    (16, 28672, 8192): {Config(4, 2, 1, 255): 39.86, Config(4, 4, 1, 255): 40.47, Config(4, 2, 1, 255, 2): 42.99},
    (16, 8192, 28672): {Config(4, 4, 1, 255, 2): 36.67, Config(4, 8, 1, 255): 36.75, Config(4, 8, 1, 255, 2): 43.91},
    (1, 8192, 28672): {Config(2, 4, 4, 255): 30.99, Config(1, 2, 4, 255): 31.32, Config(1, 2, 4, 168): 31.65},
    (8, 8192, 8192): {Config(2, 8, 1, 128): 11.49, Config(4, 8, 1, 255): 12.07, Config(2, 4, 1, 168, 2): 12.68},
    (8, 28672, 8192): {Config(4, 2, 1, 255): 34.41, Config(2, 2, 1, 168): 34.6, Config(2, 4, 1, 168): 36.54},
    (8, 8192, 28672): {Config(2, 8, 1, 128): 32.94, Config(4, 8, 1, 255): 33.32, Config(4, 4, 1, 255, 2): 34.72},
    (4, 8192, 8192): {Config(1, 4, 2, 128): 11.46, Config(2, 4, 2, 168): 11.63, Config(4, 8, 1, 255): 11.88},
    (4, 28672, 8192): {Config(4, 2, 2, 255): 33.61, Config(2, 1, 2, 255): 34.36, Config(1, 4, 2, 128): 34.77},
    (1, 28672, 8192): {Config(2, 1, 4, 255): 30.99, Config(2, 2, 4, 255): 31.71, Config(1, 4, 4, 168): 32.65},
    (1, 8192, 8192): {Config(1, 2, 4, 255): 10.94, Config(1, 2, 4, 168): 11.11, Config(2, 4, 4, 255): 11.22},
    (16, 8192, 8192): {Config(4, 8, 1, 255): 13.43, Config(4, 4, 1, 255, 2): 13.75, Config(2, 4, 1, 168): 15.94},
    (16, 4096, 4096): {Config(4, 4, 1, 255, 2): 7.1, Config(4, 8, 1, 255): 7.311, Config(2, 4, 1, 168): 8.077},
    (1, 4096, 4096): {Config(1, 8, 2, 128): 4.709, Config(1, 4, 4, 168): 4.783, Config(2, 4, 4, 255): 5.063},
    (8, 4096, 4096): {Config(1, 8, 1, 80): 5.488, Config(2, 8, 1, 128): 5.717, Config(4, 8, 1, 255): 6.211},
}


@pytest.mark.parametrize("sizes", TIMED)
def test_the_default_is_at_most_three_percent_slower_than_the_fastest(sizes: tuple[int, int, int]) -> None:
    times_us = TIMED[sizes]
    default = candidates(Problem("w4a16", *sizes), HOPPER)[0]
    assert times_us[default] <= 1.03 * min(times_us.values())


def test_more_rows_than_it_takes_go_to_the_other_kernel() -> None:
    assert others(SQUARE._replace(m=17), HOPPER)
