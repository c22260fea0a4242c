"""How near to the best a hunt of ten seconds comes where a power limit makes looks scatter as much as they differ."""

import math
from statistics import fmean, median, stdev

import pytest

from suite.jobs.shapes import Shape
from suite.measure.look import BRIEF_S, Glimpse
from suite.search.hunt import Allowance, Hunt
from tests.search.powered import Candidate, Powered, landscape

ALLOWED = Allowance(seconds=10.0, warm_up_s=30.0, window_s=0.02, idle_s=1.0)
NEAR, APART = math.log(1 / 0.995), 0.01
SEEDS = range(30)


def found(candidates: list[Candidate], seed: int) -> tuple[Candidate, Candidate]:
    """The first of the ranking, and the first from idle."""
    viewer = Powered(candidates, seed)
    standings = Hunt([each.shape for each in candidates], viewer, ALLOWED, clock=viewer.clock).run()
    assert standings.spent_s == pytest.approx(ALLOWED.seconds, abs=0.2)
    by_shape = {each.shape: each for each in candidates}
    return by_shape[standings.ranking[0].shape], by_shape[standings.burst_ranking[0].shape]


def test_what_is_found_is_mostly_within_half_a_per_cent_of_the_best_and_found_again() -> None:
    """A search whose first looks each made a sampler, whose rounds began cold and kept a third, and which took a look's middle
    sample in the place of its mean came so near in two of five, from idle in two of three.
    """
    near, near_from_idle, pairs = [], [], []
    for seed in SEEDS:
        candidates = landscape(seed)
        best, best_burst = (max(map(rate, candidates)) for rate in (lambda each: each.sustained, lambda each: each.burst))
        twice = [found(candidates, 1000 + 2 * seed + again) for again in range(2)]
        near += [best - lasting.sustained <= NEAR for lasting, _ in twice]
        near_from_idle += [best_burst - brief.burst <= NEAR for _, brief in twice]
        pairs.append(abs(twice[0][0].sustained - twice[1][0].sustained) <= APART)
    assert fmean(near) >= 0.65
    assert fmean(near_from_idle) >= 0.85
    assert fmean(pairs) >= 0.65


def rate(viewer: Powered, shape: Shape, seconds: float) -> float:
    glimpse = viewer.look(shape, seconds)
    assert isinstance(glimpse, Glimpse)
    lasting = glimpse.durations_ns[len(glimpse.durations_ns) // 3 :]
    return math.log(shape.flops * glimpse.launches / median(lasting))


def scatter(seconds: float, count: int) -> float:
    """By how much looks of ``count`` candidates differ from turn to turn, over the middle of a turn."""
    spreads = []
    for seed in range(6):
        shapes = [each.shape for each in landscape(seed)[:count]]
        viewer = Powered(landscape(seed), seed)
        viewer.look(shapes[0], 1.0)
        turns = [[rate(viewer, shape, seconds) for shape in shapes] for _ in range(5)]
        over = [[each - fmean(turn) for each in turn] for turn in turns[1:]]
        spreads += [stdev(looks) for looks in zip(*over, strict=True)]
    return fmean(spreads)


def test_the_simulated_device_scatters_as_the_recorded_one_did() -> None:
    """Looks of a tenth to three tenths of a second by half a per cent to one and a half, brief ones by several."""
    assert 0.005 < scatter(0.3, 6) < scatter(0.1, 6) < 0.015
    assert scatter(0.001, 64) > 0.02


def test_preparing_takes_as_long_as_it_did() -> None:
    """All of 64 candidates took 2.5 to 3 s with a sampler each."""
    for brief, least_s, most_s in ((False, 2.4, 3.6), (True, 1.2, 2.4)):
        taken_s = []
        for seed in range(10):
            viewer = Powered(landscape(seed), seed, brief=brief)
            for each in landscape(seed):
                viewer.look(each.shape, BRIEF_S / 40)
            taken_s.append(viewer.clock())
        assert least_s < fmean(taken_s) < most_s
