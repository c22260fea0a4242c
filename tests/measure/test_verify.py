import numpy as np
import pytest

from suite.backend import Observed, Reference
from suite.measure.verify import judge, probe, projection_error, relative_error


def product(m=256, n=512, k=128, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, k)) @ rng.normal(size=(k, n))


def look(out, ref, tiles, tolerance, seed=3):
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], out.shape[1])
    cuts = [(slice(r, r + h), slice(c, c + w)) for r, c, h, w in tiles]
    observed = Observed(tuple(out[cut] for cut in cuts), 0, int(np.sum(~np.isfinite(out))), out @ signs)
    return judge(observed, Reference(tuple(ref[cut] for cut in cuts), ref @ signs), tolerance, out.shape[1])


def test_rounding_passes_and_is_reported():
    ref = product()
    out = ref.astype(np.float16).astype(np.float64)
    result = look(out, ref, probe(ref.shape, 0, 4, 1).tiles, tolerance=2 * 2.0**-11)
    assert result.passed
    assert 0 < result.error_rel < 2.0**-11


def test_one_wrong_tile_outside_the_sampled_ones_is_found():
    ref = product()
    out = ref.copy()
    out[0:32, 0:32] = product(seed=9)[0:32, 0:32]
    corner = ((192, 448, 64, 64),)
    result = look(out, ref, corner, tolerance=0.016)
    assert not result.passed
    assert "outside the sampled tiles" in result.reason


def test_nan_and_unwritten_fail_even_where_no_tile_looks():
    ref = product()
    nan = ref.copy()
    nan[3, 5] = np.nan
    assert not look(nan, ref, ((192, 448, 64, 64),), 0.1).passed
    unwritten = judge(Observed((ref,), 1, 0, np.empty(0)), Reference((ref,), np.empty(0)), 0.1, ref.shape[1])
    assert not unwritten.passed
    assert "1 elements never written" in unwritten.reason


def test_integers_must_be_exact():
    ref = np.arange(64.0).reshape(8, 8)
    off_by_one = ref.copy()
    off_by_one[0, 0] += 1
    tiles = ((0, 0, 8, 8),)
    assert look(ref, ref, tiles, 0.0).passed
    assert not look(off_by_one, ref, tiles, 0.0).passed


def test_a_zero_reference_is_compared_absolutely():
    zeros = np.zeros((4, 4))
    assert relative_error(zeros, zeros) == 0.0
    assert relative_error(zeros + 1e-3, zeros) == pytest.approx(4e-3)
    assert projection_error(np.array([0.0, 1e-3]), np.zeros(2)) == pytest.approx(1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (17, 33), (4096, 70)])
def test_tiles_stay_inside_and_the_last_corner_is_always_looked_at(shape):
    tiles = probe(shape, 0, 4, 99).tiles
    assert len(tiles) == 4
    assert all(r + h <= shape[0] and c + w <= shape[1] and r >= 0 and c >= 0 for r, c, h, w in tiles)
    assert any(r + h == shape[0] and c + w == shape[1] for r, c, h, w in tiles)


def test_tiles_follow_the_seed():
    assert probe((999, 999), 0, 4, 1) == probe((999, 999), 0, 4, 1)
    assert probe((999, 999), 0, 4, 1).tiles != probe((999, 999), 0, 4, 2).tiles


@pytest.mark.parametrize("rows", [1, 2])
def test_rounding_never_fails_an_output_of_few_rows(rows):
    """The projection of a single row is one random number; near 0 it must not be what its error is compared with."""
    failed = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        ref = rng.normal(size=(rows, 512)) * 90.0
        out = ref * (1 + 2.0**-9 * rng.uniform(-1, 1, ref.shape))
        signs = rng.choice([-1.0, 1.0], 512)
        tiles = (ref[:, 448:],)
        seen = Observed((out[:, 448:],), 0, 0, out @ signs)
        failed += not judge(seen, Reference(tiles, ref @ signs), 3 * 2.0**-8, columns=512).passed
    assert failed == 0


def test_garbage_that_overflows_the_norm_is_incorrect_and_still_a_number_json_can_hold():
    ref = product(8, 8, 8)
    with np.errstate(over="ignore"):
        result = look(np.full_like(ref, 1e300), ref, ((0, 0, 8, 8),), 0.1)
    assert not result.passed
    assert result.error_rel is None
    assert "inf" in result.reason


def test_rows_of_very_different_size_are_each_judged_by_their_own():
    """The first queries of a causal mask see few keys: their rows are many times as large as the typical one."""
    rng = np.random.default_rng(4)
    sizes = np.array([100.0] * 40 + [1.0] * 4000)
    ref = rng.normal(size=(len(sizes), 128)) * sizes[:, None]
    signs = rng.choice([-1.0, 1.0], 128)
    tiles, norms = (ref[-64:, :64],), np.linalg.norm(ref, axis=1)

    def passed(out):
        seen = Observed((out[-64:, :64],), 0, 0, out @ signs)
        return judge(seen, Reference(tiles, ref @ signs, norms), 3 * 2.0**-8, 128).passed

    sound = ref * (1 + 2.0**-8 * rng.uniform(-1, 1, ref.shape))
    assert passed(sound)
    wrong = sound.copy()
    wrong[7] = -ref[7]
    assert not passed(wrong)
    wrong = sound.copy()
    wrong[500] = -ref[500]  # far below the mean square, which the large rows make
    assert not passed(wrong)


@pytest.mark.parametrize("rest", [0.0, 1e-6, -1e-3])
def test_what_is_left_when_terms_cancel_is_judged_by_the_size_they_are_expected_to_have(rest):
    """A product of one element; rounding is that of its terms."""
    ref, tolerance, expected = np.array([[rest]]), 1e-2, 30.0

    def passed(out, **size):
        return judge(Observed((out,), 0, 0, out[:, 0]), Reference((ref,), ref[:, 0], **size), tolerance, 1).passed

    assert passed(ref + 0.2, expected_size=expected)
    assert not passed(ref + 0.2)
    assert not passed(ref + 0.4, expected_size=expected)
    assert not passed(ref - 30.0, expected_size=expected)


def test_elements_larger_than_expected_are_judged_by_themselves():
    ref = np.full((1, 4), 100.0)
    assert relative_error(ref * 1.01, ref, 3.0) == pytest.approx(0.01)
    assert relative_error(ref * 1.01, ref, 1000.0) == pytest.approx(0.001)
