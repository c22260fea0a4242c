"""The prior: what it counts, and what it makes of it."""

import numpy as np
import pytest

from suite.search.model import TILES, Machine, efficiency

H200 = Machine(132, 50 * 2**20, 989e12, 4.8e12)


def expected(m: int, n: int, k: int, machine: Machine = H200) -> float:
    return float(efficiency(np.array([[m, n, k]]), machine, 2, 2)[0])


def test_it_is_a_share_of_the_peak() -> None:
    sizes = np.random.default_rng(0).integers(1, 20480, size=(500, 3))
    found = efficiency(sizes, H200, 2, 2)
    assert found.min() > 0
    assert found.max() <= 1


def test_a_wave_that_one_tile_overflows_costs_nearly_a_wave() -> None:
    """On a machine of 100 units and one tile: 100 tiles are one wave, 101 are two."""
    machine = Machine(100, 0, 1e12, None)
    one = expected(128 * 10, 256 * 10, 8192, machine)
    more = expected(128 * 10, 256 * 11, 8192, machine)
    assert more < 0.85 * one


def test_an_edge_that_no_tile_fits_costs_what_it_leaves_idle() -> None:
    assert expected(4096, 4096, 8192) > expected(4097, 4097, 8192)


@pytest.mark.parametrize("k", [256, 1024, 4096])
def test_a_longer_k_hides_more_of_the_prologue(k: int) -> None:
    assert expected(4096, 4096, 2 * k) > expected(4096, 4096, k)


def test_a_launch_weighs_on_what_is_short() -> None:
    slow, fast = Machine(1, 0, 1e9, None), Machine(1, 0, 1e15, None)
    assert expected(256, 256, 256, fast) < 0.1 * expected(256, 256, 256, slow)


def test_what_memory_bounds_is_no_faster_than_memory() -> None:
    """One row: two operations for each element of the weight, two bytes."""
    assert expected(1, 8192, 8192) <= 4.8e12 / 989e12 * 1.001


def test_operands_that_a_cache_holds_cost_less_than_those_that_are_read_again() -> None:
    small, large = Machine(132, 2**20, 989e12, 4.8e12), Machine(132, 2**30, 989e12, 4.8e12)
    assert expected(8192, 8192, 8192, large) > expected(8192, 8192, 8192, small)


def test_nothing_need_be_known_of_a_device() -> None:
    assert 0 < expected(4096, 4096, 4096, Machine()) <= 1


def test_the_largest_tiles_are_the_measure_of_the_others() -> None:
    assert max(share for _, _, share in TILES) == 1.0
