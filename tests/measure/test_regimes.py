import pytest

from suite.case import Regime
from suite.measure.regimes import Reading, placed_sets, rotating_sets, settled
from suite.work import Footprint

COLD = Regime("cold", "sustained", "device")
WARM = Regime("warm", "sustained", "device")
MIB = 2**20


@pytest.mark.parametrize("set_mib", [0.0001, 1, 59, 60, 180, 400])
def test_rotation_covers_three_caches_between_two_uses_of_a_set(set_mib):
    """A rotation that is too small is warm, whatever it is called (flashinfer issue 4468)."""
    footprint = Footprint(int(set_mib * MIB), 0, 0)
    sets = rotating_sets(COLD, footprint, 60 * MIB, "rotation")
    between = (sets - 1) * footprint.set_bytes
    assert sets >= 2
    assert between >= 3 * 60 * MIB or sets == 4096 or sets == 2


@pytest.mark.parametrize("set_mib", [0.5, 7, 60, 400])
@pytest.mark.parametrize("margin", [1.0, 2.0, 3.5])
def test_a_margin_multiplies_what_is_displaced_between_two_uses(set_mib, margin):
    footprint = Footprint(int(set_mib * MIB), 0, 0)
    plain, sets = (rotating_sets(COLD, footprint, 60 * MIB, "rotation", by) for by in (1.0, margin))
    assert (sets - 1) * footprint.set_bytes >= margin * 3 * 60 * MIB or sets == 2
    assert (sets - 2) * footprint.set_bytes < margin * 3 * 60 * MIB
    assert plain == rotating_sets(COLD, footprint, 60 * MIB, "rotation")
    assert rotating_sets(WARM, footprint, 60 * MIB, "rotation", margin) == 1
    assert rotating_sets(COLD, footprint, 60 * MIB, "flush", margin) == 1


def test_an_unknown_cache_counts_as_the_largest_one_known():
    assert rotating_sets(COLD, Footprint(MIB, 0, 0), None, "rotation") > 3 * 256


def test_warm_and_flushed_cases_need_one_set():
    assert rotating_sets(WARM, Footprint(MIB, 0, 0), 60 * MIB, "rotation") == 1
    assert rotating_sets(COLD, Footprint(MIB, 0, 0), 60 * MIB, "flush") == 1


GIB = 2**30


@pytest.mark.parametrize(
    ("places", "set_mib", "memory_gib", "sets"),
    [
        (1, 1, 100, 1),
        (16, 13, 100, 16),
        (16, 233, 100, 16),
        (16, 466, 100, 8),  # not beyond 4 GiB: such sets lie in many places themselves
        (16, 5000, 100, 1),
        (16, 233, 8, 4),  # not beyond an eighth of a small device's memory
        (16, 2000, 8, 1),
        (16, 233, None, 16),
    ],
)
def test_places_in_memory_are_as_many_as_asked_within_a_bound(places, set_mib, memory_gib, sets):
    footprint = Footprint(set_mib * MIB, 0, 0)
    assert placed_sets(places, footprint, memory_gib and memory_gib * GIB) == sets


def test_clock_and_power_decide_where_they_are_read():
    assert settled([Reading(1.0, 1400e6, 690.0), Reading(1.2, 1405e6, 691.0)], 0.01)
    assert not settled([Reading(1.0, 1400e6, 690.0), Reading(1.0, 1440e6, 691.0)], 0.01)
    assert not settled([Reading(1.0, 1400e6, 500.0), Reading(1.0, 1400e6, 600.0)], 0.01)


def test_time_decides_where_neither_is_read():
    assert settled([Reading(1.0, None, None), Reading(1.005, None, None)], 0.01)
    assert not settled([Reading(1.0, None, None), Reading(1.05, None, None)], 0.01)


# Means of half a second of an H200 at its power limit, a bf16 product of 8192^3: clock in MHz and power in W.
AT_THE_LIMIT = ((1469.5, 709.5), (1453.5, 681.5), (1478, 700.5), (1450.5, 679), (1483, 705.5), (1458.5, 686))


def test_a_clock_that_goes_round_at_the_power_limit_is_steady_by_means_of_whole_rounds():
    readings = [Reading(1.6e-3, mhz * 1e6, watts) for mhz, watts in AT_THE_LIMIT]
    assert not any(settled(readings[first : first + 2], 0.01) for first in range(len(readings) - 1))
    assert not settled(readings[:3], 0.01)
    assert settled(readings[:4], 0.01)


def test_a_clock_that_goes_on_falling_is_not_steady_by_longer_means():
    falling = [Reading(1.0, 1.98e9 * 0.985**step, 700.0) for step in range(20)]
    assert not any(settled(falling[:count], 0.01) for count in range(2, 21))


def test_one_window_settles_nothing():
    assert not settled([Reading(1.0, 1400e6, 690.0)], 0.01)
