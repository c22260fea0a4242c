"""Ticks of logarithmic axes: where they are labelled, and that nothing is left with one label alone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.report.axes import Span, powers_of_two, ticks, with_two_powers
from suite.report.curves import Quantity, curve_figure
from suite.report.figures import log_axis
from suite.report.lines import Member, lines_of
from suite.report.palette import INKS
from suite.report.values import TIME, sized
from tests.report.browsing import INTERPRETED, chromium, looking, until
from tests.report.builders import result

SPANS = st.builds(lambda low, ratio: Span(10**low, 10 ** (low + ratio)), st.floats(-9, 15), st.floats(0.01, 9))
DIGITS = {1: (1,), "D2": (1, 2, 5)}


def labelled(axis, span):
    """The numbers that Plotly writes on an axis: at its ``tickvals``, or by its ``dtick`` at digits of every decade."""
    if axis.get("tickmode") == "array":
        values = axis["tickvals"]
    else:
        powers = range(math.floor(math.log10(span.low)), math.ceil(math.log10(span.high)) + 1)
        values = [digit * 10.0**power for power in powers for digit in DIGITS[axis["dtick"]]]
    return [value for value in values if span.low <= value <= span.high]


@given(SPANS)
def test_every_logarithmic_axis_has_two_labels_or_more_and_never_a_crowd(span):
    for title in ("Rate (FLOP/s)", "Time (s)"):
        found = labelled(log_axis(title, span, INKS["light"], "~s"), span)
        assert 2 <= len(found) <= 12, found


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (Span(0.5, 200), [1, 10, 100]),
        (Span(0.9, 15), [1, 2, 5, 10]),
        (Span(0.2, 9), [0.2, 0.5, 1, 2, 5]),  # over a decade and a half with one power of ten
        (Span(310, 470), [350, 400, 450]),
        (Span(6e12, 9.3e12), [6e12, 7e12, 8e12, 9e12]),
    ],
)
def test_labels_are_round_numbers(span, expected):
    assert labelled(ticks(span), span) == pytest.approx(expected)


def test_a_short_axis_of_time_has_its_units_at_every_label():
    axis = log_axis("Time (s)", Span(2.2e-5, 4.6e-5), INKS["light"], "~s")
    assert axis["ticktext"] == ["25 µs", "30 µs", "35 µs", "40 µs", "45 µs"]


def test_an_axis_of_powers_of_two_has_two_of_them():
    span = with_two_powers(Span(4096 / 1.25, 4096 * 1.25))
    assert powers_of_two(span, str)["tickvals"] == [2048, 4096, 8192]
    assert with_two_powers(Span(1000, 5000)) == Span(1000, 5000)


@pytest.mark.parametrize("span", [Span(2e-6, 6e-3), Span(1e-6, 1e4), Span(310, 470)])
def test_small_ticks_beside_labels_at_places_of_their_own_are_few(span):
    small = log_axis("Time (s)", span, INKS["light"], "~s")["minor"]["tickvals"]
    assert set(small) >= {10.0**power for power in range(-9, 9) if span.low <= 10.0**power <= span.high}
    assert len(small) <= 60


@pytest.mark.browser
def test_plotly_writes_two_labels_or_more_on_both_axes_of_a_figure_whose_points_lie_close_together(tmp_path):
    lines = lines_of([Member("T1", "#0099fe", (result(4096, p50_s=3.1e-4), result(4096, p50_s=3.3e-4)))], {})
    rate = Quantity("Rate (FLOP/s)", lambda row: row.flop_s)
    pairs = [(sized("m", "Rows"), rate), (sized("m", "Rows"), TIME), (rate, TIME)]
    figures = [curve_figure(lines, across, up) for across, up in pairs]
    parts = [each.to_html(full_html=False, include_plotlyjs=not n, div_id=f"f{n}") for n, each in enumerate(figures)]
    (tmp_path / "f.html").write_text("".join(["<!doctype html><meta charset='utf-8'>", *parts]), encoding="utf-8")
    with chromium(INTERPRETED) as browser, looking(browser) as (page, complaints):
        page.goto((tmp_path / "f.html").as_uri())
        for number in range(len(pairs)):
            until(page, f"document.querySelectorAll('#f{number} .ytick text').length > 0")
            for axis in "xy":
                assert page.locator(f"#f{number} .{axis}tick text").count() >= 2, (number, axis)
        assert complaints == []
