"""Every operation over real ranks, by gloo, ring and trees: right data, and the bytes and steps of the formulas."""

from collections.abc import Iterator

import pytest

from backends.failures import Classified
from backends.torch.collective.crew import Crew
from backends.torch.collective.sampler import AT_ONCE, KEPT_TIMES, SlowestRankSampler
from suite.collectives import own
from suite.collectives.choice import OWN_ALGOS
from suite.collectives.names import Algo, Op
from suite.jobs.collective.settings import OPS
from suite.jobs.collective.task import forms
from suite.measure.verify import probe
from tests.backends.collective.helpers import checked, crew_of, prepared, task

BY = [(op, algo, form) for op in OPS for algo in (None, *OWN_ALGOS.get(op, ())) for form in forms(op, (True, False))]
SUMS = (Op.ALL_REDUCE, Op.REDUCE_SCATTER)


@pytest.fixture(scope="module", params=[2, 4, pytest.param(8, marks=pytest.mark.thorough)])
def crew(request: pytest.FixtureRequest, pair: Crew) -> Iterator[Crew]:
    if request.param == 2:
        yield pair
        return
    with crew_of(request.param) as started:
        yield started


# What is timed is timed by more ranks in the same way, on cores that they have to share.
few_ranks = pytest.mark.parametrize(
    "crew", [2, *(pytest.param(ranks, marks=pytest.mark.thorough) for ranks in (4, 8))], indirect=True
)


@pytest.mark.parametrize(("op", "algo", "in_place"), BY)
def test_every_rank_gets_what_it_must(crew: Crew, op: Op, algo: Algo | None, in_place: bool) -> None:
    for size in (4, 40_000):
        kernel = prepared(crew, task(op, crew.world.ranks, size, own=algo, in_place=in_place))
        for seed in (1, 2):
            assert checked(kernel, seed).passed
        kernel.close()


@pytest.mark.parametrize("fmt", ["fp64", "fp16", "bf16", "int64", "int32", "int8"])
@pytest.mark.parametrize(("op", "algo"), [(Op.ALL_REDUCE, None), (Op.ALL_REDUCE, Algo.TREE), (Op.REDUCE_SCATTER, Algo.RING)])
def test_in_every_format(crew: Crew, op: Op, algo: Algo | None, fmt: str) -> None:
    kernel = prepared(crew, task(op, crew.world.ranks, 3000, fmt=fmt, own=algo))
    found = checked(kernel, 5)
    assert found.passed
    exact = fmt.startswith("int") or (fmt == "fp64" and crew.world.ranks == 2)
    assert (found.error_rel == 0) == exact
    kernel.close()


@pytest.mark.parametrize(("op", "algo"), [(op, algo) for op, algos in OWN_ALGOS.items() for algo in algos])
def test_what_the_own_algorithms_hand_over_is_counted_and_is_their_formulas(crew: Crew, op: Op, algo: Algo) -> None:
    kernel = prepared(crew, task(op, crew.world.ranks, 2**21, own=algo))
    told, given = kernel.describe(), kernel.task.message
    elements = max(given.send_elements, given.receive_elements)
    by_rank = [own.expected(op, algo, given.ranks, rank, elements, 4) for rank in range(given.ranks)]
    assert told["sent_bytes"] == [4 * each.sent_elements for each in by_rank]
    assert told["received_bytes"] == [4 * each.received_elements for each in by_rank]
    assert told["messages"] == [each.messages for each in by_rank]
    assert told["steps"] == own.step_count(op, algo, given.ranks, elements, 4)
    assert (told["transport"], told["algorithm_source"]) == ("host", "own")
    kernel.close()


def test_a_count_that_is_not_the_formulas_is_an_error(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "expected", lambda *_: (1, 1, 1))
    with pytest.raises(Classified, match=r"rank 0 moves .* by the formula of the ring it is \(1, 1, 1\)"):
        prepared(crew, task(Op.ALL_REDUCE, crew.world.ranks, 1000, own=Algo.RING))


@pytest.mark.parametrize(("op", "algo", "in_place"), BY)
def test_a_launch_that_moves_nothing_is_caught(crew: Crew, op: Op, algo: Algo | None, in_place: bool) -> None:
    kernel = prepared(crew, task(op, crew.world.ranks, 1000, own=algo, in_place=in_place))
    assert not checked(kernel, 4, run=lambda: None).passed
    kernel.close()


@few_ranks
def test_what_was_timed_a_hundred_times_is_still_right(crew: Crew) -> None:
    """In place a sum grows with every launch; the check begins with the data again."""
    kernel = prepared(crew, task(Op.ALL_REDUCE, crew.world.ranks, 1000, own=Algo.RING))
    sampler = SlowestRankSampler(kernel)
    sampler.sample(100)
    assert checked(kernel, 3, run=sampler.replay).passed
    kernel.close()


@few_ranks
@pytest.mark.parametrize(("op", "algo"), [(op, algo) for op in SUMS for algo in (None, *OWN_ALGOS[op])])
def test_what_is_timed_in_place_stays_finite(crew: Crew, op: Op, algo: Algo | None) -> None:
    kernel = prepared(crew, task(op, crew.world.ranks, 1000, fmt="fp16", own=algo))
    sampler = SlowestRankSampler(kernel)
    for iterations in (sampler.details["iterations_on_the_same_data"], 100):
        sampler.sample(iterations)
        assert kernel.observe(probe(kernel.output_shape, 0, 4, 1)).nonfinite == 0
    kernel.close()


@few_ranks
def test_a_sample_is_the_slowest_ranks_and_every_ranks_time_is_kept(crew: Crew) -> None:
    ranks = crew.world.ranks
    kernel = prepared(crew, task(Op.BROADCAST, ranks, 1000))
    sampler = SlowestRankSampler(kernel)
    durations = sampler.sample(40)
    sampler.replay()
    told = sampler.details
    assert [max(times) for times in told["rank_times_ns"]] == list(durations)
    assert all(len(times) == ranks for times in told["rank_times_ns"])
    assert (told["ranks"], told["iterations"]) == (ranks, 40)
    assert told["iterations_are"] == f"the latest {AT_ONCE} iterations, warm-up included"
    assert told["untimed"] == "a barrier of all ranks before each iteration"
    assert not {"logging", "iterations_on_the_same_data"} & set(told)  # gloo logs nothing, and a broadcast adds nothing
    assert len(told["rank_p50_s"]) == len(told["rank_max_s"]) == ranks
    assert sum(told["slowest_share"]) == pytest.approx(1, abs=0.01)
    assert max(told["rank_max_s"]) == pytest.approx(max(durations) * 1e-9)
    sampler.sample(3 * KEPT_TIMES)
    sampler.replay()
    assert len(sampler.details["rank_times_ns"]) <= KEPT_TIMES
    kernel.close()
