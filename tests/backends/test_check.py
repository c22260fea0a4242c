"""What the check sees: poison, NaN and Inf anywhere, wrong numbers outside every sampled tile."""

import math

import numpy as np
import pytest
import torch

from backends.seeds import mixed_seed
from backends.torch import check, jobs
from suite.backend import Observed, Probe
from suite.measure.verify import judge
from tests.backends.cases import CPU_FORMATS, any_cpu, fresh_verdict, gemm_case, run_all, verdict

DTYPES = list(check.POISON)


def output_of(dtype: torch.dtype, rows: int = 37, columns: int = 29) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(rows, columns, generator=generator) * 10).to(dtype)


def seen(output: torch.Tensor) -> Observed:
    return check.observe(output, Probe(0, ((0, 0, 4, 4), (33, 25, 4, 4)), seed=9))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_poison_covers_everything_and_is_counted(dtype: torch.dtype) -> None:
    output = output_of(dtype)
    check.poison(output)
    assert seen(output).unwritten == output.numel()
    assert seen(output).nonfinite == 0
    output[:, :28] = 0
    assert seen(output).unwritten == 37


@pytest.mark.parametrize("value", [math.nan, -math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.is_floating_point], ids=str)
def test_a_written_nan_or_infinity_is_not_taken_for_poison(dtype: torch.dtype, value: float) -> None:
    output = output_of(dtype)
    check.poison(output)
    output[:] = 1
    output[20, 11] = value
    assert (seen(output).unwritten, seen(output).nonfinite) == (0, 1)


def test_infinities_that_cancel_are_still_counted() -> None:
    output = output_of(torch.float32)
    output[3, :] = math.inf
    output[3, ::2] = -math.inf
    assert seen(output).nonfinite == 29


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.is_floating_point], ids=str)
def test_arithmetic_does_not_produce_the_poison(dtype: torch.dtype) -> None:
    zero = torch.zeros(64, dtype=dtype)
    made = torch.stack([zero / zero, zero * math.inf, torch.full_like(zero, math.inf) - math.inf, (-zero).log() - math.inf])
    pattern = check.POISON[dtype]
    assert torch.isnan(made[:3]).all()
    assert not (made.view(pattern.view) == pattern.bits).any()


def test_block_by_block_is_the_same_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    output = output_of(torch.bfloat16)
    check.poison(output)
    output[:36] = output_of(torch.bfloat16)[:36]
    output[2, 3] = math.inf
    whole = seen(output)
    monkeypatch.setattr(check, "BLOCK_ELEMENTS", 60)
    blocks = seen(output)
    assert (whole.unwritten, whole.nonfinite) == (blocks.unwritten, blocks.nonfinite) == (29, 1)
    np.testing.assert_array_equal(np.isfinite(whole.projection), np.isfinite(blocks.projection))
    np.testing.assert_allclose(whole.projection[3:36], blocks.projection[3:36], rtol=1e-12)


@pytest.mark.parametrize("format_name", CPU_FORMATS)
def test_looking_changes_neither_the_output_nor_the_operands(monkeypatch: pytest.MonkeyPatch, format_name: str) -> None:
    """A float64 matrix in several blocks was once overwritten by its own check, and a right product called incorrect."""
    monkeypatch.setattr(check, "BLOCK_ELEMENTS", 1 << 10)
    kernel = jobs.prepare(gemm_case(format_name, 160, 144, 96), any_cpu(), 1, seed=3)
    run_all(kernel)
    (each,) = kernel.input_sets
    tensors = [each.output, *(operand.data for operand in each.operands)]
    before = [tensor.clone() for tensor in tensors]
    look = Probe(0, ((0, 0, 64, 64), (96, 80, 64, 64)), 7)
    seen, expected = kernel.observe(look), kernel.reference(look)
    assert all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(before, tensors, strict=True))
    kernel.poison()
    assert judge(seen, expected, 0.02, columns=144).passed  # what was seen stays what it was


def test_a_wrong_tile_outside_the_sampled_ones_is_seen() -> None:
    case = gemm_case("bf16", 256, 256, 64)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    run_all(kernel)
    tiles = ((0, 0, 16, 16), (240, 240, 16, 16))
    kernel.input_sets[0].output[100:116, 40:56] *= -1
    observed, reference = kernel.observe(Probe(0, tiles, 7)), kernel.reference(Probe(0, tiles, 7))
    for ours, theirs in zip(observed.tiles, reference.tiles, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.02, atol=0.05)
    wrong = np.abs(observed.projection - reference.projection) > 1.0
    assert wrong[100:116].sum() >= 8
    assert wrong.sum() == wrong[100:116].sum()
    assert not verdict(kernel, case).passed


def test_two_swapped_columns_are_seen() -> None:
    case = gemm_case("fp32", 64, 128, 64)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    run_all(kernel)
    output = kernel.input_sets[0].output
    output[:, [70, 71]] = output[:, [71, 70]]
    results = [verdict(kernel, case, seed=seed).passed for seed in range(12)]
    assert not all(results)  # columns of equal sign hide each other for one seed in two


@pytest.mark.parametrize("shape", [(64, 65536, 1), (256, 16384, 16), (512, 8192, 2)])
def test_wide_float64_products_of_few_terms_are_right(shape: tuple[int, int, int]) -> None:
    """Their projections cancel, and differ by more than their elements do."""
    case = gemm_case("fp64", *shape)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    assert [seed for seed in range(5) if not fresh_verdict(kernel, case, seed).passed] == []


def test_an_empty_output_has_nothing_to_find() -> None:
    empty = torch.empty(0, 0)
    observed = check.observe(empty, Probe(0, ((0, 0, 0, 0),), seed=1))
    assert (observed.unwritten, observed.nonfinite, observed.projection.size) == (0, 0, 0)


def test_signs_depend_on_the_seed_only() -> None:
    one, again = (check.sign_vector(1000, 5, torch.device("cpu")) for _ in range(2))
    other = check.sign_vector(1000, 6, torch.device("cpu"))
    assert torch.equal(one, again)
    assert set(one.tolist()) == {1.0, -1.0}
    assert 300 < (one != other).sum() < 700


def test_seeds_of_sets_and_operands_never_meet() -> None:
    seeds = {mixed_seed(seed, set_index, operand) for seed in range(20) for set_index in range(20) for operand in range(3)}
    assert len(seeds) == 20 * 20 * 3
    assert max(seeds) < 2**63
