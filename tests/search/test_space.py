"""Which shapes are looked at first: unlike each other, the same each time, and none that takes too long."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from suite.errors import UsageError
from suite.jobs.gemm import GemmSettings
from suite.jobs.shapes import Shape
from suite.search.hunt import Allowance, Hunt
from suite.search.model import Machine, Shapes
from suite.search.settings import check_search
from suite.search.space import Space, _grid, _strata, candidates, space
from suite.settings import RunConfig, SearchSettings
from tests.search.scripted import Scripted

H200 = Machine(132, 50 * 2**20, 989e12, 4.8e12)
EVERYTHING = 1e30


def made(most_flops: float = EVERYTHING, **settings: int) -> Space:
    return space(SearchSettings(**settings), H200, (2.0, 2.0), most_flops)


def first(found: Space, number: int = 64, seed: int = 0) -> list[Shape]:
    return list(islice(candidates(found, (), seed), number))


def test_every_shape_of_the_grid_comes_once() -> None:
    sizes = (1024, 2048, 3072, 4096)
    listed = first(made(m=4096, n=4096, k=4096), 1000)
    assert sorted(listed) == [Shape(m, n, k) for m in sizes for n in sizes for k in sizes]


def test_the_first_are_of_every_size_and_every_k() -> None:
    found = made()
    chosen = set(first(found))
    for stratum in _strata(found.shapes):
        assert chosen & {Shape(*map(int, shape)) for shape in found.shapes[stratum]}


def test_a_seed_names_one_order_and_another_seed_another() -> None:
    found = made()
    assert first(found, seed=1) == first(found, seed=1)
    assert first(found, seed=1) != first(found, seed=2)


def test_given_shapes_come_before_all_unless_they_take_too_long() -> None:
    found = made(most_flops=2 * 4096.0**3)
    given = [Shape(100, 200, 300), Shape(8192, 8192, 8192)]
    listed = list(islice(candidates(found, given, 0), 64))
    assert listed[0] == given[0]
    assert given[1] not in listed


@pytest.mark.parametrize("most_flops", [1e9, 1e10, 1e12])
def test_no_shape_takes_too_long_and_a_slow_device_has_a_finer_grid(most_flops: float) -> None:
    found = made(most_flops=most_flops)
    assert (2.0 * np.prod(found.shapes.astype(float), axis=1)).max() <= most_flops
    assert len(found.shapes) >= 64
    assert found.step < 1024 or most_flops == 1e12


def test_a_device_that_nothing_suits_has_the_smallest_shape() -> None:
    assert made(most_flops=1.0).shapes.tolist() == [[64, 64, 64]]


def test_the_finest_grid_stays_small() -> None:
    assert len(made(most_flops=3e8, step=64).shapes) < 20_000


def test_no_grid_is_made_of_sizes_that_a_slow_device_has_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """All multiples of 128 up to the largest sizes would be two and a half million shapes."""
    lengths: list[int] = []

    def noted(*given: Any) -> Shapes:
        shapes = _grid(*given)
        lengths.append(len(shapes))
        return shapes

    monkeypatch.setattr("suite.search.space._grid", noted)
    made(most_flops=1e7, step=128)
    assert len(lengths) == 2, "of step 128, then of 64"
    assert max(lengths) < 20_000


def test_a_model_that_is_wrong_costs_places_and_not_the_optimum() -> None:
    """It likes large products; here small ones with a short K are the fastest."""
    found = made()

    def rate(shape: Shape, *_: float) -> float:
        return 0.95 if shape.k <= 4096 and shape.m * shape.n <= 2**25 else 0.8

    viewer = Scripted(lambda shape, *_: rate(shape) * 1e3, ready_s=0.01)  # a device of 1 PFLOP/s
    ranking = Hunt(candidates(found, (), 0), viewer, Allowance(10.0), clock=viewer.clock).run().ranking
    assert rate(ranking[0].shape) == 0.95


@pytest.mark.parametrize("depth", [16, 32, 128])
@pytest.mark.parametrize(("step", "most_flops"), [(1024, 3e6), (384, 1e8), (384, 1e10), (128, 1.0)])
def test_k_stays_a_multiple_of_what_shares_a_scale_however_fine_the_grid(step: int, most_flops: float, depth: int) -> None:
    found = space(SearchSettings(step=step, m=1152, n=1152, k=1152 * 2), H200, (1.0, 2.0), most_flops, depth)
    assert not (found.shapes[:, 2] % depth).any()
    assert found.step < step
    assert found.shapes[:, 2].min() == -(-found.step // depth) * depth


@pytest.mark.parametrize(
    ("formats", "scaling", "step", "message"),
    [
        (["bf16", "mxfp4"], None, 100, "search.step=100 is no multiple of 32: mxfp4 has scales for every 32 numbers along K; "
         "take search.step=96 for instance"),
        (["fp8_e4m3"], ["row", "block"], 64, "search.step=64 is no multiple of 128: fp8_e4m3 block has scales for every 128 "
         "numbers along K; take search.step=128 for instance"),
    ],
)  # fmt: skip
def test_a_step_that_a_format_does_not_divide_is_refused_by_its_name(
    formats: list[str], scaling: list[str] | None, step: int, message: str
) -> None:
    config = RunConfig(
        jobs={"gemm": GemmSettings(formats=formats, scaling=scaling)}, search=SearchSettings(m=2000, n=2000, k=2000, step=step)
    )
    with pytest.raises(UsageError) as refused:
        check_search(config)
    assert str(refused.value) == message


def test_a_job_under_a_search_may_name_no_shapes_and_none_that_is_wrong() -> None:
    search = SearchSettings()
    check_search(RunConfig(jobs={"gemm": GemmSettings(shapes=[])}, search=search))
    with pytest.raises(UsageError, match="k=100 is no multiple; pad K to 128"):
        check_search(RunConfig(jobs={"gemm": GemmSettings(formats=["w4a16"], shapes=["100"])}, search=search))
    with pytest.raises(UsageError, match="unknown format 'bf15'"):
        check_search(RunConfig(jobs={"gemm": GemmSettings(formats=["bf15"], shapes=[])}, search=search))
