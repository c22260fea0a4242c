"""Fits of latency and bandwidth: right where the data is, refused where it is not, and honest about worlds nobody measured."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.collectives.model.alpha_beta import Fit, Refusal, Timing, fit
from suite.collectives.model.crossover import Measured, crossings, predicted_crossing
from suite.collectives.model.holdout import HeldOut, held_out
from suite.collectives.model.nccl import Communicator, Graph
from suite.collectives.model.simulate import LEAST_ERROR, band, simulated, simulated_library
from suite.collectives.names import Algo
from suite.collectives.version import NcclVersion
from suite.errors import UsageError
from suite.outcome import Evidence

SIZES = [2**power for power in range(3, 27)]
ALGOS = [Algo.RING, Algo.TREE]


def made(
    algo: Algo, alpha_s: float, bandwidth: float, worlds: list[int], noise: float = 0.0, sizes: list[int] = SIZES
) -> list[Timing]:
    """Times as the formula says, off by random factors."""
    random = np.random.default_rng(5)
    times = []
    for ranks in worlds:
        for size in sizes:
            steps, moved = (
                (2 * (ranks - 1), 2 * (ranks - 1) * size / ranks)
                if algo is Algo.RING
                else (2 * math.log2(ranks), (size if ranks == 2 else 2 * size))  # two ranks have one edge in each tree
            )
            exact = steps * alpha_s + moved / bandwidth
            times.append(Timing(ranks, size, exact * float(np.exp(noise * random.normal()))))
    return times


def fitted(algo: Algo, timings: list[Timing]) -> Fit:
    found = fit(algo, timings)
    assert isinstance(found, Fit), found
    return found


def refused(algo: Algo, timings: list[Timing]) -> str:
    found = fit(algo, timings)
    assert isinstance(found, Refusal), found
    return found.reason


@pytest.mark.parametrize("algo", ALGOS)
@given(alpha_us=st.floats(0.1, 50), gb_s=st.floats(0.1, 400))
@settings(deadline=None)
def test_times_of_the_formula_give_its_constants_back(algo: Algo, alpha_us: float, gb_s: float) -> None:
    sizes = [2**power for power in range(3, 34)]
    found = fitted(algo, made(algo, alpha_us * 1e-6, gb_s * 1e9, [2, 4, 8], sizes=sizes))
    assert found.alpha_s == pytest.approx(alpha_us * 1e-6, rel=1e-6)
    assert found.bandwidth_bytes_s == pytest.approx(gb_s * 1e9, rel=1e-6)
    assert found.r_squared == pytest.approx(1)
    assert found.largest_ranks == 8


@pytest.mark.parametrize("algo", ALGOS)
def test_noise_of_a_tenth_moves_the_constants_by_less_than_that(algo: Algo) -> None:
    found = fitted(algo, made(algo, 5e-6, 10e9, [2, 4, 8], noise=0.1))
    assert found.alpha_s == pytest.approx(5e-6, rel=0.1)
    assert found.bandwidth_bytes_s == pytest.approx(10e9, rel=0.1)


def test_a_bandwidth_that_small_messages_seem_to_have_is_refused() -> None:
    """Latency alone, with a slope that is noise: the fit would say thousands of GB/s."""
    timings = [Timing(8, size, 20e-6 + size / 3763e9) for size in (2**power for power in range(10, 24))]
    assert "transfer is" in refused(Algo.RING, timings)
    assert "GB/s would be noise" in refused(Algo.RING, timings)


def test_times_that_do_not_follow_the_formula_are_refused() -> None:
    random = np.random.default_rng(2)
    scattered = [Timing(4, size, 1e-4 * float(np.exp(1.5 * random.normal()))) for size in SIZES]
    assert "do not follow the formula" in refused(Algo.RING, scattered)
    falling = [Timing(4, size, 1e-3 / math.log2(size)) for size in SIZES]
    assert "do not follow the formula" in refused(Algo.RING, falling)


@pytest.mark.parametrize(
    ("timings", "told"),
    [
        ([Timing(4, size, 1e-5) for size in (8, 16, 32)] * 5, "3 message sizes"),
        ([Timing(4, size, 0.0) for size in SIZES], "nothing was measured"),
    ],
)
def test_too_little_is_refused(timings: list[Timing], told: str) -> None:
    assert told in refused(Algo.TREE, timings)


def test_what_has_no_formula_is_an_error() -> None:
    with pytest.raises(UsageError, match="no alpha-beta formula for nvls"):
        fit(Algo.NVLS, made(Algo.RING, 1e-6, 1e9, [2]))
    with pytest.raises(UsageError, match="over 1 rank"):
        fit(Algo.RING, [Timing(1, size, 1e-6) for size in SIZES])


def curve(algo: Algo, timings: list[Timing], ranks: int, half_width: float = 0.0) -> list[Measured]:
    return [
        Measured(each.message_bytes, each.time_s, each.time_s * (1 - half_width), each.time_s * (1 + half_width))
        for each in timings
        if each.ranks == ranks
    ]


def test_a_measured_crossing_is_where_the_fits_say_it_is() -> None:
    ring, tree = made(Algo.RING, 5e-6, 10e9, [4, 8, 16]), made(Algo.TREE, 6e-6, 9e9, [4, 8, 16])
    (found,) = crossings("ring", curve(Algo.RING, ring, 16), "tree", curve(Algo.TREE, tree, 16))
    predicted = predicted_crossing(fitted(Algo.RING, ring), fitted(Algo.TREE, tree), 16)
    assert predicted is not None
    assert (found.faster_below, found.faster_above) == ("tree", "ring")
    assert (predicted.faster_below, predicted.faster_above) == ("tree", "ring")
    assert found.between[0] <= predicted.at_bytes <= found.between[1]
    assert found.between[0] <= found.at_bytes <= found.between[1]
    # 30 x 5 + 1.875 S / 10 = 8 x 6 + 2 S / 9, in microseconds and KB
    assert predicted.at_bytes == pytest.approx((30 * 5e-6 - 8 * 6e-6) / (2 / 9e9 - 1.875 / 10e9))


def test_sizes_whose_intervals_overlap_decide_nothing() -> None:
    ring, tree = made(Algo.RING, 5e-6, 10e9, [16]), made(Algo.TREE, 6e-6, 9e9, [16])
    (sharp,) = crossings("ring", curve(Algo.RING, ring, 16), "tree", curve(Algo.TREE, tree, 16))
    (blurred,) = crossings("ring", curve(Algo.RING, ring, 16, 0.05), "tree", curve(Algo.TREE, tree, 16, 0.05))
    assert blurred.between[0] < sharp.between[0]
    assert crossings("ring", curve(Algo.RING, ring, 16, 0.9), "tree", curve(Algo.TREE, tree, 16, 0.9)) == ()


def test_curves_that_do_not_cross_have_no_crossing() -> None:
    slow, fast = Fit(Algo.TREE, 6e-6, 1e9, 1, 1, 8), Fit(Algo.RING, 1e-6, 10e9, 1, 1, 8)
    assert predicted_crossing(slow, fast, 2) is None
    assert predicted_crossing(fast, slow, 2) is None
    points = [Measured(size, 1e-6 * size, 1e-6 * size, 1e-6 * size) for size in SIZES]
    assert (
        crossings("a", points, "b", [Measured(each.message_bytes, *(3 * time for time in each[1:])) for each in points]) == ()
    )


def test_the_largest_world_is_predicted_from_the_others() -> None:
    found = held_out(Algo.RING, made(Algo.RING, 5e-6, 10e9, [2, 4, 8], noise=0.03))
    assert isinstance(found, HeldOut)
    assert (found.ranks, found.fit.largest_ranks, len(found.errors)) == (8, 4, len(SIZES))
    assert found.median < 0.05
    assert found.worst >= found.median


def test_a_network_that_was_never_crossed_shows_as_an_error() -> None:
    inside, outside = made(Algo.RING, 5e-6, 10e9, [2, 4]), made(Algo.RING, 5e-6, 5e9, [8])
    found = held_out(Algo.RING, inside + outside)
    assert isinstance(found, HeldOut)
    assert found.errors[-1].relative == pytest.approx(-0.5, abs=0.02)


def test_one_world_cannot_be_held_out() -> None:
    found = held_out(Algo.RING, made(Algo.RING, 5e-6, 10e9, [4]))
    assert isinstance(found, Refusal)
    assert "takes 2 or more" in found.reason


def test_simulated_worlds_are_modelled_and_their_bands_widen() -> None:
    fits = {algo: fitted(algo, made(algo, 5e-6, 10e9, [2, 4, 8])) for algo in ALGOS}
    worlds = [4, 8, 16, 1024, 16384]
    found = list(simulated(fits, worlds, [2**20], {Algo.RING: 0.3}))
    assert {each.evidence for each in found} == {Evidence.MODELLED}
    assert len(found) == len(worlds) * len(fits)
    for algo in ALGOS:
        own = [each for each in found if each.algo is algo]
        widths = [each.high_s / each.time_s for each in own]
        assert all(each.low_s < each.time_s < each.high_s for each in own)
        assert widths[0] == widths[1]
        assert all(narrow < wide for narrow, wide in pairwise(widths[1:]))
        assert own[-1].extrapolation == 2048


def test_a_band_is_never_narrower_than_published_simulators_are_off() -> None:
    assert band(8, 8, 0.01) == LEAST_ERROR
    assert band(8, 8, 0.4) == 0.4
    assert band(32, 8, 0.4) == pytest.approx(1.2)
    assert band(2, 8, 0.4) == 0.4


def test_nccls_own_choice_is_simulated_to_16384_ranks() -> None:
    def communicator(ranks: int) -> Communicator:
        graph = Graph(16, 22.5e9, 22.5e9)
        return Communicator(
            NcclVersion(2, 30, 7), ranks, max(1, ranks // 8), 90, "intel", 16, {Algo.RING: graph, Algo.TREE: graph}
        )

    found = list(simulated_library(communicator, [8, 16384], [2**20, 2**33], 8, 0.2))
    assert [each.algo for each in found] == [Algo.RING, Algo.RING, Algo.TREE, Algo.TREE]
    assert found[1].busbw_bytes_s / 1e9 == pytest.approx(359.5, abs=0.05)
    assert found[-1].high_s / found[-1].time_s == pytest.approx(1 + 0.2 * 12)


@pytest.mark.parametrize("ranks", [1, 16385])
def test_worlds_out_of_reach_are_refused(ranks: int) -> None:
    fits = {Algo.RING: Fit(Algo.RING, 1e-6, 1e9, 1, 1, 8)}
    with pytest.raises(UsageError, match="from 2 to 16384"):
        list(simulated(fits, [ranks], [8], {}))
