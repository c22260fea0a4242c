"""Verdicts from how far apart two results are, how noisy they are, and what is known of the device."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.compare.noise import NONE, UNKNOWN, Noise
from suite.compare.spread import Spread
from suite.compare.verdict import (
    Error,
    Gap,
    Verdict,
    judge,
    p_differs,
    p_same,
    ratio_interval,
    refuse_effect,
    together,
)
from suite.errors import UsageError
from tests.compare.builders import CERTAIN, QUIET

ALONE = Spread(None, NONE)


def gap(ratio: float, noise: float = 0.001, rel: float | None = None, min_effect: float = 0.01, spread: float = 0.0) -> Gap:
    """Two results with the same noise, known as well as can be."""
    known = Noise(noise, noise, CERTAIN)
    return Gap(math.log(ratio), (known, known), Spread(rel, Noise(spread, spread, CERTAIN)), min_effect)


def verdict(*args, **fields) -> Verdict:
    return judge([gap(*args, **fields)])[0].verdict


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (1.03, Verdict.SLOWER),
        (1 / 1.03, Verdict.FASTER),
        (1.0, Verdict.SAME),
        (1.005, Verdict.SAME),
        (1.01, Verdict.UNDECIDED),
        (1.012, Verdict.UNDECIDED),
    ],
)
def test_beyond_delta_within_it_and_at_its_edge(ratio, expected):
    """Noise of 0.1 % each is 0.14 % together: 1.96 of it is 0.28 %, 1.645 of it 0.23 %."""
    assert verdict(ratio) is expected


def test_the_edges_are_where_the_normal_distribution_puts_them():
    """Slower from 1 % and 1.95996 errors on, which is twice one side of 2.5 %; the same up to 1 % less 1.64485 errors."""
    error = 0.001 * math.sqrt(2)
    edge = math.exp(math.log(1.01) + 1.95996 * error)
    assert (verdict(edge * 1.00001), verdict(edge * 0.99999)) == (Verdict.SLOWER, Verdict.UNDECIDED)
    edge = math.exp(math.log(1.01) - 1.64485 * error)
    assert (verdict(edge * 0.99999), verdict(edge * 1.00001)) == (Verdict.SAME, Verdict.UNDECIDED)


def test_p_values_are_those_of_the_normal_distribution():
    """3 % is 1.9609 % beyond 1 % in logarithms, 13.87 errors; 1.5 % is 3.4922 errors beyond it, and 0.5 % 3.5096 within."""
    assert p_differs(gap(1.03)) == pytest.approx(0.0, abs=1e-40)
    assert p_differs(gap(1.015)) == pytest.approx(4.791e-4, rel=2e-3)
    assert p_same(gap(1.005)) == pytest.approx(2.243e-4, rel=2e-3)


def test_a_repeatability_above_the_least_difference_is_the_margin():
    assert gap(1.03, rel=0.05).delta == 0.05
    assert gap(1.03, rel=0.002).delta == 0.01
    assert gap(1.03).delta == 0.01
    assert verdict(1.03, rel=0.05) is Verdict.SAME
    assert verdict(1.10, rel=0.05) is Verdict.SLOWER


def test_the_least_difference_raises_or_lowers_its_part_alone():
    assert verdict(1.03, min_effect=0.05) is Verdict.SAME
    assert verdict(1.006, min_effect=0.002) is Verdict.SLOWER
    assert verdict(1.006, min_effect=0.002, rel=0.02) is Verdict.SAME
    assert verdict(1.006, min_effect=0.0) is Verdict.SLOWER


def test_a_device_that_wanders_is_neither_the_same_nor_different():
    """Repeatability of 5 %, a standard deviation of 2.5 % from run to run: 3 % and nothing at all are both undecided."""
    assert verdict(1.03, rel=0.05, spread=0.025) is Verdict.UNDECIDED
    assert verdict(1.01, rel=0.05, spread=0.025) is Verdict.UNDECIDED
    assert verdict(1.07, rel=0.05, spread=0.025) is Verdict.SLOWER


def test_what_passes_the_margin_must_pass_the_least_difference_with_the_spread_of_runs_too():
    """5.5 % is beyond a repeatability of 5 % by the noise within the runs; with the spread it is 1.74 errors beyond 1 %."""
    assert verdict(1.055, rel=0.05) is Verdict.SLOWER
    assert verdict(1.055, rel=0.05, spread=0.025) is Verdict.UNDECIDED
    assert p_differs(gap(1.055, rel=0.05, spread=0.025)) == pytest.approx(0.0818, rel=0.01)


def test_an_effect_among_many_cases_has_to_be_clearer_than_alone():
    """1.35 % is 2.42 errors beyond 1 %: p is 0.015, which of one case is enough and of twenty with nothing is not."""
    assert verdict(1.0135) is Verdict.SLOWER
    assert judge([gap(1.0135), *[gap(1.0)] * 19])[0].verdict is Verdict.UNDECIDED
    assert judge([gap(1.0135)] * 20)[0].verdict is Verdict.SLOWER


def test_each_judgement_stands_for_its_own_case():
    judged = judge([gap(1.0), gap(1.1), gap(0.9), gap(1.01)])
    assert [each.verdict for each in judged] == [Verdict.SAME, Verdict.SLOWER, Verdict.FASTER, Verdict.UNDECIDED]


def test_without_an_interval_nothing_is_decided():
    unknown = Gap(math.log(2), (UNKNOWN, QUIET), ALONE)
    assert judge([unknown])[0][:3] == (Verdict.UNDECIDED, 1.0, 1.0)
    assert ratio_interval(unknown) == (0.0, math.inf)


def test_without_any_noise_the_figures_speak():
    assert verdict(1.02, noise=0.0) is Verdict.SLOWER
    assert verdict(1.005, noise=0.0) is Verdict.SAME


def test_only_the_error_that_could_have_made_the_difference_counts():
    """The first run may in truth have been slower, by 2 % an error, and not faster: the second being slower is then open."""
    first, second = Noise(0.0005, 0.02, CERTAIN), Noise(0.0005, 0.0005, CERTAIN)
    assert judge([Gap(math.log(1.03), (first, second), ALONE)])[0].verdict is Verdict.UNDECIDED
    assert judge([Gap(math.log(1 / 1.03), (first, second), ALONE)])[0].verdict is Verdict.FASTER


def test_the_interval_of_the_ratio_has_an_end_for_each_error():
    """Downwards by the first's error above and the second's below: 3 and 4 make 5; upwards 6 and 8 make 10, in thousandths."""
    found = ratio_interval(Gap(0.0, (Noise(0.006, 0.003, CERTAIN), Noise(0.004, 0.008, CERTAIN)), ALONE))
    assert found.low == pytest.approx(math.exp(-1.96 * 0.005), rel=1e-4)
    assert found.high == pytest.approx(math.exp(1.96 * 0.010), rel=1e-4)


def test_degrees_of_a_sum_are_by_welch_and_satterthwaite():
    """Equal errors of 4 and 4 degrees have 8; of 4 and 16 (1/4)/(1/64 + ...): 0.25 / 4 + 0.25 / 16 = 0.078125, or 12.8."""
    assert together(Error(1.0, 4), Error(1.0, 4)) == (math.sqrt(2), 8)
    assert together(Error(1.0, 4), Error(1.0, 16)) == (math.sqrt(2), 12)
    assert together(Error(1.0, 4), Error(0.0, 1)) == (1.0, 4)
    assert together(Error(0.0, 3), Error(0.0, 1)) == (0.0, 1)
    assert together(Error(math.inf, 1), Error(1.0, 9)) == (math.inf, 1)


@given(st.floats(0.2, 5.0), st.floats(1e-4, 0.1), st.floats(0, 0.3), st.floats(0, 0.1))
def test_the_other_way_round_is_the_other_verdict(ratio, noise, rel, spread):
    there, back = gap(ratio, noise, rel, spread=spread), gap(1 / ratio, noise, rel, spread=spread)
    assert p_differs(there) == pytest.approx(p_differs(back), abs=1e-12)
    assert p_same(there) == pytest.approx(p_same(back), abs=1e-12)


@given(st.floats(0.5, 2.0), st.floats(1e-4, 0.1), st.floats(0, 0.3))
def test_no_case_is_both_different_and_the_same(ratio, noise, rel):
    found = gap(ratio, noise, rel)
    assert p_differs(found) > 0.05 or p_same(found) > 0.05


@pytest.mark.parametrize("effect", [-0.01, 1.0, 7.0, math.nan, math.inf])
def test_a_least_difference_that_is_none_is_refused(effect):
    with pytest.raises(UsageError, match=r"^--min-effect \S+ is not between 0 and 1; write 0.01 for 1 %$"):
        refuse_effect(effect)


def test_what_cannot_be_tested_is_undecided_and_not_among_those_corrected_over():
    """Their p-values, as small as can be, would lower what the correction asks of the others."""
    beside = gap(8.0)._replace(untestable="beside other work")
    judged = judge([beside, gap(1.0135), beside])
    assert [each.verdict for each in judged] == [Verdict.UNDECIDED, Verdict.SLOWER, Verdict.UNDECIDED]
    assert judged[1] == judge([gap(1.0135)])[0]
    assert (judged[0].why, judged[0].p_differs, judged[0].p_same) == ("beside other work", 1.0, 1.0)
