"""Inputs: the stated distribution, in place, the same for a seed and different for every set."""

import pytest
import torch

from backends.distributions import CONSTANT, INT8_FACTOR, OUTLIER_FACTOR
from backends.torch import data, jobs
from backends.torch.data import DISTRIBUTIONS, Operand
from tests.backends.cases import CPU_FORMATS, addresses, any_cpu, gemm_case

CPU = torch.device("cpu")
FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def filled(dtype: torch.dtype, distribution: str, seed: int = 1, count: int = 40_000) -> Operand:
    operand = Operand.empty((count // 100, 100), dtype, CPU)
    operand.refill(distribution, seed)
    return operand


def numbers(operand: Operand) -> torch.Tensor:
    return operand.scaled(operand.data.to(torch.float64)).view(-1)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float8_e4m3fn], ids=str)
def test_the_shapes_of_distributions(dtype: torch.dtype) -> None:
    normal, uniform = numbers(filled(dtype, "normal")), numbers(filled(dtype, "uniform"))
    assert abs(normal.mean()) < 0.03
    assert normal.std() == pytest.approx(1.0, abs=0.03)
    assert uniform.abs().max() <= 1.0
    assert uniform.std() == pytest.approx(3**-0.5, abs=0.01)
    # An fp8 scale is the nearest float32 to 1/448: what it carries is off by its rounding.
    assert set(numbers(filled(dtype, "integer")).round(decimals=6).tolist()) == {-1.0, 0.0, 1.0}
    assert set(numbers(filled(dtype, "zeros")).tolist()) == {0.0}
    assert set(numbers(filled(dtype, "constant")).round(decimals=6).tolist()) == {CONSTANT}


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float8_e4m3fn, torch.int8], ids=str)
def test_outliers_are_few_and_far(dtype: torch.dtype) -> None:
    values = numbers(filled(dtype, "outliers", count=400_000)).abs()
    unit = INT8_FACTOR["outliers"] if dtype == torch.int8 else 1.0
    far = (values > 10 * unit).sum().item() / len(values)
    assert 0.0005 < far < 0.0010  # one in 1024, of which one in four is under 10 by chance
    assert values[values <= 10 * unit].std() < 1.1 * unit


def test_two_outliers_that_meet_fit_into_fp16() -> None:
    """The product of two normal numbers passes 40 once in 10^18, and both are outliers once in 2^20."""
    assert torch.finfo(torch.float16).max > 40 * OUTLIER_FACTOR**2


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float8_e4m3fn, torch.int8], ids=str)
def test_integers_come_in_equal_shares(dtype: torch.dtype) -> None:
    values = numbers(filled(dtype, "integer", count=90_000)).round(decimals=6)
    for number in (-1.0, 0.0, 1.0):
        assert (values == number).double().mean() == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.float8_e4m3fn, torch.int8], ids=str)
def test_halves_and_tails_are_as_they_should(dtype: torch.dtype, distribution: str) -> None:
    """Shares beyond one standard deviation, which mean and deviation alone would not tell from each other."""
    values = numbers(filled(dtype, distribution, count=90_000))
    scaled = values / (INT8_FACTOR[distribution] if dtype == torch.int8 else 1.0)
    deviation = {"normal": 1.0, "uniform": 3**-0.5}[distribution]
    beyond = (scaled.abs() > deviation).double().mean()
    expected = {"normal": 0.3173, "uniform": 1 - 3**-0.5}[distribution]
    assert beyond == pytest.approx(expected, abs=0.04)  # fp8 has steps of an eighth there
    assert (scaled > 0).double().mean() == pytest.approx(0.5, abs=0.02)


def test_int8_uses_its_range_without_the_number_that_has_no_negative() -> None:
    for name in DISTRIBUTIONS:
        values = filled(torch.int8, name).data
        assert values.abs().max() <= 127
        assert values.min() >= -127
    assert filled(torch.int8, "uniform").data.unique().numel() > 250
    assert filled(torch.int8, "normal").data.float().std() == pytest.approx(32, abs=1)
    assert set(filled(torch.int8, "integer").data.view(-1).tolist()) == {-1, 0, 1}
    assert set(filled(torch.int8, "constant").data.view(-1).tolist()) == {127}


def test_an_fp8_scale_carries_the_largest_number_to_the_largest_code() -> None:
    operand = filled(torch.float8_e4m3fn, "normal")
    assert operand.data.to(torch.float32).abs().max() == data.FP8_E4M3_MAX
    exact = filled(torch.float32, "normal").data
    assert operand.scale == pytest.approx(exact.abs().max() / data.FP8_E4M3_MAX)
    error = numbers(operand) - exact.double().view(-1)
    assert error.abs().max() <= exact.abs().max() * 2**-4 * 1.01
    assert error.norm() / exact.norm() < 0.04


def test_one_seed_means_the_same_numbers_in_every_format() -> None:
    exact = numbers(filled(torch.float32, "normal"))
    for dtype in (torch.bfloat16, torch.float16):
        assert torch.equal(numbers(filled(dtype, "normal")), exact.to(dtype).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.float8_e4m3fn], ids=str)
def test_chunks_neither_repeat_nor_depend_on_threads(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "CHUNK_ELEMENTS", 1000)
    several = filled(dtype, "normal").data.to(torch.float32).view(-1, 1000)
    assert not torch.equal(several[0], several[1])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert torch.equal(filled(dtype, "normal").data.to(torch.float32).view(-1, 1000), several)


@pytest.mark.parametrize("format_name", CPU_FORMATS)
def test_refill_is_in_place_fresh_repeatable_and_different_for_each_set(format_name: str) -> None:
    kernel = jobs.prepare(gemm_case(format_name, 24, 40, 56), any_cpu(), 3, seed=3)
    before = addresses(kernel)

    def contents() -> list[torch.Tensor]:
        return [operand.data.to(torch.float32).clone() for each in kernel.input_sets for operand in each.operands]

    first = contents()
    kernel.refill(4)
    second = contents()
    kernel.refill(3)
    third = contents()
    assert addresses(kernel) == before
    assert all(torch.equal(a, b) for a, b in zip(first, third, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    square = [a for a in first if a.shape == first[0].shape]
    assert not torch.equal(square[0], square[1])
