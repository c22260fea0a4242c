"""How well a fit is known: its intervals hold what was put in as often as they say, and grow with those of the times."""

import numpy as np
import pytest

from suite.collectives.model.alpha_beta import Fit, Refusal, Timing, _quantile, fit
from suite.collectives.model.crossover import predicted_crossing
from suite.collectives.model.simulate import LEAST_ERROR, simulated
from suite.collectives.names import Algo
from tests.collectives.test_models import made

SIZES = [2**power for power in range(12, 24, 2)]
ALPHA_S, BANDWIDTH = 50e-6, 1e9
SIGMAS = 1.96  # in half of a 95 % interval


def noisy(random: np.random.Generator, sigma: float, told: float) -> list[Timing]:
    """Times off by ``sigma``, whose intervals say ``told``."""
    exact = made(Algo.RING, ALPHA_S, BANDWIDTH, [2, 4], sizes=SIZES)
    return [each._replace(time_s=each.time_s * (1 + sigma * random.normal()), error=told) for each in exact]


@pytest.mark.parametrize("told", [SIGMAS * 0.05, 0.0])  # by the intervals, and by the scatter alone
def test_intervals_hold_the_constants_as_often_as_they_say(told: float) -> None:
    random, trials, held = np.random.default_rng(3), 400, np.zeros(2)
    for _ in range(trials):
        found = fit(Algo.RING, noisy(random, 0.05, told))
        assert isinstance(found, Fit)
        held += [
            abs(ALPHA_S / found.alpha_s - 1) < found.alpha_error,
            abs(found.bandwidth_bytes_s / BANDWIDTH - 1) < found.bandwidth_error,
        ]
        assert found.bandwidth_error < 0.2  # and not by being of any width
    assert (held / trials >= 0.92).all()


def test_exact_times_with_intervals_are_known_to_these_and_without_them_exactly() -> None:
    exact = made(Algo.RING, ALPHA_S, BANDWIDTH, [2, 4], sizes=SIZES)
    sharp, vague = (fit(Algo.RING, [each._replace(error=error) for each in exact]) for error in (0.0, 0.3))
    assert isinstance(sharp, Fit)
    assert isinstance(vague, Fit)
    assert sharp.bandwidth_error == pytest.approx(0, abs=1e-9)
    assert 0.05 < vague.bandwidth_error < 0.3
    assert vague.error(2, SIZES[-1]) == pytest.approx(vague.bandwidth_error, rel=0.1)  # the largest is all transfer


def test_a_bandwidth_that_is_known_to_no_more_than_its_order_is_refused() -> None:
    exact = made(Algo.RING, ALPHA_S, BANDWIDTH, [2], sizes=SIZES[:4])
    found = fit(Algo.RING, [each._replace(error=1.0) for each in exact])
    assert isinstance(found, Refusal)
    assert found.reason.startswith("B is not resolved")


def test_a_band_begins_at_what_the_fit_is_known_to() -> None:
    exact = made(Algo.RING, ALPHA_S, BANDWIDTH, [2, 4], sizes=SIZES)
    found = fit(Algo.RING, [each._replace(error=0.9) for each in exact])
    assert isinstance(found, Fit)
    (eight,) = simulated({Algo.RING: found}, [8], [SIZES[-1]], {})
    assert found.error(4, SIZES[-1]) > LEAST_ERROR
    assert eight.high_s / eight.time_s == pytest.approx(1 + 2 * found.error(4, SIZES[-1]))  # once more for the doubling


def test_a_predicted_crossing_is_between_the_sizes_at_which_the_fits_are_told_apart() -> None:
    ring, tree = made(Algo.RING, 5e-6, 10e9, [4, 8, 16]), made(Algo.TREE, 6e-6, 9e9, [4, 8, 16])

    def crossing(error: float) -> tuple[float, float, bool]:
        one, other = (fit(algo, [each._replace(error=error) for each in times])
                      for algo, times in ((Algo.RING, ring), (Algo.TREE, tree)))  # fmt: skip
        assert isinstance(one, Fit)
        assert isinstance(other, Fit)
        found = predicted_crossing(one, other, 16)
        assert found is not None
        low, high = found.between
        for size, half in ((low, -1), (high, 1)) if found.is_resolved else ():
            apart = one.time_s(16, round(size)) - other.time_s(16, round(size))
            known = np.hypot(one.error(16, round(size)) * one.time_s(16, round(size)),
                             other.error(16, round(size)) * other.time_s(16, round(size)))  # fmt: skip
            assert apart == pytest.approx(-half * known, rel=1e-3)
        assert low <= found.at_bytes <= high
        return low, high, found.is_resolved

    sharp, blurred = crossing(0.01), crossing(0.05)
    assert blurred[0] < sharp[0] < sharp[1] < blurred[1]
    assert crossing(0.9)[2] is False


@pytest.mark.parametrize(("degrees", "known"), [(1, 12.706), (2, 4.303), (10, 2.228), (500, 1.960)])
def test_the_quantile_is_that_of_tables(degrees: int, known: float) -> None:
    assert _quantile(degrees) == pytest.approx(known, abs=2e-3 if degrees > 400 else 6e-4)
