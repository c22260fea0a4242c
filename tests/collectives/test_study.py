"""What is made of a run's rows: which belong together, what is fitted to them, and what stands beside."""

import math

import pytest

from suite.collectives import own
from suite.collectives.model.alpha_beta import Fit, Refusal, Timing, fit
from suite.collectives.model.formulas import formula, terms
from suite.collectives.model.holdout import HeldOut
from suite.collectives.names import Algo, Op
from suite.collectives.series import series
from suite.collectives.study import Study, _crossovers, larger_worlds, studies
from suite.errors import UsageError
from suite.rows import ResultRow
from tests.collectives.rows import Times, collective, curve

SIZES = [2**power for power in range(3, 27, 2)]


def ring(alpha_s: float, bandwidth: float) -> Times:
    return lambda ranks, size: 2 * (ranks - 1) * alpha_s + 2 * (ranks - 1) * size / ranks / bandwidth


def tree(alpha_s: float, bandwidth: float) -> Times:
    return lambda ranks, size: 2 * math.log2(ranks) * alpha_s + (1 if ranks == 2 else 2) * size / bandwidth


def run_of_both(worlds: list[int]) -> list[ResultRow]:
    return [
        *curve("all_reduce", "ring", worlds, SIZES, ring(20e-6, 1e9)),
        *curve("all_reduce", "tree", worlds, SIZES, tree(25e-6, 0.8e9)),
    ]


def one(rows: list[ResultRow]) -> Study:
    (found,) = studies(rows)
    return found


@pytest.mark.parametrize(
    ("op", "algo", "expected"),
    [
        (Op.ALL_REDUCE, Algo.RING, (14, 1750)),  # 2 x 7 steps of an eighth
        (Op.ALL_REDUCE, Algo.TREE, (6, 2000)),
        (Op.ALL_GATHER, Algo.RING, (7, 875)),
        (Op.REDUCE_SCATTER, Algo.RING, (7, 875)),
        (Op.ALL_TO_ALL, Algo.RING, (7, 875)),
        (Op.BROADCAST, Algo.RING, (7, 1000)),
        (Op.SEND_RECV, Algo.RING, (1, 1000)),
    ],
)
def test_steps_and_volume_of_eight_ranks(op: Op, algo: Algo, expected: tuple[float, float]) -> None:
    assert terms(op, algo, 8, 1000) == expected


def test_what_has_no_formula_says_what_has_one() -> None:
    assert formula(Op.ALL_GATHER, Algo.TREE) is None
    with pytest.raises(UsageError, match="for tree of all_gather; there is one for ring"):
        terms(Op.ALL_GATHER, Algo.TREE, 4, 8)
    with pytest.raises(UsageError, match="a broadcast over 1 rank"):
        terms(Op.BROADCAST, Algo.RING, 1, 8)


@pytest.mark.parametrize("op", [Op.ALL_GATHER, Op.ALL_TO_ALL, Op.BROADCAST, Op.SEND_RECV])
def test_every_operation_is_fitted_by_its_own_formula(op: Op) -> None:
    timings = []
    for ranks in (2, 4, 8):
        steps, volume = terms(op, Algo.RING, ranks, 1)
        timings += [Timing(ranks, size, steps * 3e-6 + volume * size / 5e9) for size in SIZES]
    found = fit(Algo.RING, timings, op)
    assert isinstance(found, Fit)
    assert (found.alpha_s, found.bandwidth_bytes_s) == (pytest.approx(3e-6), pytest.approx(5e9))
    assert [found.time_s(each.ranks, each.message_bytes) for each in timings] == pytest.approx(
        [each.time_s for each in timings]
    )


def test_a_run_of_ring_and_tree_gives_their_constants_and_where_they_cross() -> None:
    found = one(run_of_both([2, 4, 8]))
    fits = [(model.curve.way.label, model.fit) for model in found.models if isinstance(model.fit, Fit)]
    assert [(name, round(each.alpha_s * 1e6, 3), round(each.bandwidth_bytes_s / 1e6)) for name, each in fits] == [
        ("own ring", 20, 1000), ("own tree", 25, 800),
    ]  # fmt: skip
    by_ranks = {each.ranks: each for each in found.crossovers}
    assert sorted(by_ranks) == [2, 4, 8]
    # 2 ranks: the ring has 40 us and 1 ns a byte, the tree 50 us and 1.25 ns: the tree is never faster
    assert (by_ranks[2].measured, by_ranks[2].predicted, by_ranks[2].are_fitted) == ((), None, True)
    (crossing,) = by_ranks[8].measured
    predicted = by_ranks[8].predicted
    assert predicted is not None
    # 14 x 20 us + 1.75 S/B = 6 x 25 us + 2.5 S/B, in nanoseconds a byte
    assert predicted.at_bytes == pytest.approx((280e-6 - 150e-6) / (2.5e-9 - 1.75e-9))
    assert (crossing.faster_below, crossing.faster_above) == ("tree", "ring")
    assert crossing.between == (2**17, 2**19)
    assert 2**17 < predicted.at_bytes < 2**19


def test_the_held_out_world_is_the_largest_and_its_error_widens_the_band() -> None:
    slower = curve("all_reduce", "ring", [8], SIZES, lambda ranks, size: 1.5 * ring(20e-6, 1e9)(ranks, size))
    (model,) = one([*curve("all_reduce", "ring", [2, 4], SIZES, ring(20e-6, 1e9)), *slower]).models
    assert isinstance(model.held_out, HeldOut)
    assert model.held_out.ranks == 8
    assert model.held_out.near(2**25) == pytest.approx(1 / 3)
    sixteen, *_, largest = model.beyond(2**25)
    assert (sixteen.ranks, largest.ranks) == (16, 16384)
    # a third, once for the measured world and once for each doubling beyond it
    assert sixteen.high_s / sixteen.time_s == pytest.approx(1 + 2 / 3)
    assert largest.high_s / largest.time_s == pytest.approx(1 + 12 / 3)


def test_a_refused_fit_has_no_worlds_beyond() -> None:
    (model,) = one(curve("all_reduce", "ring", [2], SIZES, lambda ranks, size: 1e-3)).models
    assert isinstance(model.fit, Refusal)
    assert model.beyond(2**20) == ()


def test_worlds_beyond_are_every_second_power_of_two_and_the_largest() -> None:
    assert larger_worlds(8) == (16, 64, 256, 1024, 4096, 16384)
    assert larger_worlds(6) == (8, 32, 128, 512, 2048, 8192, 16384)
    assert larger_worlds(16384) == ()


@pytest.mark.parametrize(
    "other",
    [
        {"switches": {"transport": "device_link"}},
        {"switches": {"in_place": False}},
        {"evidence": "imported"},
        {"format": "bf16"},
        {"backend": "xla"},
        {"device_uid": "another"},
    ],
)
def test_what_comes_from_elsewhere_is_never_on_the_same_curve_nor_in_the_same_figure(other: dict[str, object]) -> None:
    rows = [collective("all_reduce", 2, 1024, 1e-3), collective("all_reduce", 2, 1024, 2e-3, **other)]
    first, second = studies(rows)
    assert [len(each.models) for each in (first, second)] == [1, 1]
    assert first.models[0].curve.points[0].time_s == 1e-3


@pytest.mark.parametrize(
    "row",
    [
        collective("all_reduce", 2, 1024, 1e-3, switches={"transport": "shared_gpu"}),
        collective("all_reduce", 2, 1024, 1e-3, outcome="incorrect"),
        collective("all_reduce", 2, 1024, 1e-3, p50_s=None),
        collective("all_reduce", 1, 1024, 1e-3),
        collective("nothing", 2, 1024, 1e-3),
        collective("all_reduce", 2, 1024, 1e-3, switches={"algo": "another"}),
        collective("all_reduce", 2, 1024, 1e-3, job="gemm"),
    ],
)
def test_what_is_no_verified_time_over_a_link_is_on_no_curve(row: ResultRow) -> None:
    assert series([row]) == ()


def test_a_choice_left_to_the_library_is_taken_for_a_ring_and_says_so() -> None:
    (curve_,) = series([collective("all_reduce", 2, 1024, 1e-3, interval_s=None)])
    assert (curve_.way.label, curve_.way.of_model, curve_.way.is_assumed) == ("library", Algo.RING, True)
    assert curve_.points[0].high_s == math.inf
    forced = collective("all_reduce", 2, 1024, 1e-3, switches={"algo": "tree", "proto": "ll"})
    assert series([forced])[0].way.label == "library tree/ll"


def test_bus_bandwidth_of_a_point() -> None:
    (curve_,) = series([collective("all_reduce", 4, 4_000_000, 2e-3)])
    assert curve_.points[0].busbw_bytes_s(Op.ALL_REDUCE) == pytest.approx(3e9)  # 2 GB/s x 1.5


@pytest.mark.parametrize("ranks", range(2, 18))
def test_the_trees_volume_is_what_the_busiest_rank_sends(ranks: int) -> None:
    elements = 2**20
    sent = [own.expected(Op.ALL_REDUCE, Algo.TREE, ranks, rank, elements, 4).sent_elements for rank in range(ranks)]
    assert terms(Op.ALL_REDUCE, Algo.TREE, ranks, elements).volume == max(sent)


def test_where_small_messages_follow_no_formula_the_fit_is_of_the_large_ones_and_says_from_where() -> None:
    """Two ranks have a core each, four and eight take turns: their latency is not a step's times the steps."""

    def busy(ranks: int, size: int) -> float:
        return ring(4e-4 if ranks == 2 else 4e-3, 25e6)(ranks, size)

    rows = curve("all_reduce", "ring", [2, 4, 8], [8, 1024, 16384, 2**21, 2**22, 2**23, 2**24], busy)
    (model,) = one(rows).models
    assert isinstance(fit(Algo.RING, model.curve.timings()), Refusal)
    assert isinstance(model.fit, Fit)
    assert model.fit.from_bytes == 2**21
    assert model.fit.bandwidth_bytes_s == pytest.approx(25e6, rel=0.02)
    assert isinstance(model.held_out, HeldOut)
    assert model.held_out.errors[0].message_bytes == model.held_out.fit.from_bytes > 1024
    assert abs(model.held_out.errors[-1].relative) < 0.05


def test_what_no_size_follows_is_refused_for_all_sizes() -> None:
    (model,) = one(curve("all_reduce", "ring", [2], SIZES, lambda ranks, size: 1e-3)).models
    assert isinstance(model.fit, Refusal)
    assert model.fit == fit(Algo.RING, model.curve.timings())


def test_a_latency_that_would_come_out_below_none_is_none() -> None:
    """Messages of the first bucket pass at once: the line through the others goes below the origin."""
    timings = [Timing(2, size, size / 25e6 - 0.004) for size in (2**20, 2**21, 2**22, 2**23, 2**24)]
    found = fit(Algo.RING, timings)
    assert isinstance(found, Fit)
    assert found.alpha_s == 0
    assert found.bandwidth_bytes_s == pytest.approx(25e6, rel=0.06)


def test_a_crossing_below_the_sizes_that_were_fitted_is_not_predicted() -> None:
    fits = one(run_of_both([8]))
    models = [model._replace(fit=model.fit._replace(from_bytes=2**20)) for model in fits.models if isinstance(model.fit, Fit)]
    (found,) = _crossovers(models)
    assert found.are_fitted
    assert found.predicted is None
