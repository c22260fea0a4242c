from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.jobs.gemm.formats import FORMATS
from suite.report.axes import Span
from suite.report.figures import log_axis, roofline_figure
from suite.report.palette import DOUBTFUL_OPACITY, INKS, faint, themed
from suite.report.panels import panel
from suite.report.roofs import RoofSet, roof_set
from suite.roofline import roof
from tests.report.builders import BANDWIDTH, CALIBRATION, PEAKS, SPEC, FakeReader, device, failed, result, sweep

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def roofs_of(rows):
    return panel(FakeReader(tuple(rows)), device(), rows).roofs


def figure_of(rows, **options):
    return roofline_figure(rows, roofs_of(rows), **options)


def traces(figure, kind):
    return [trace for trace in figure.data if trace.meta == kind]


def note_text(figure):
    return " ".join(annotation.text for annotation in figure.layout.annotations).replace("<br>", " ").replace("\u00a0", " ")


def test_the_points_are_the_verified_rows():
    rows = sweep()
    drawn = Counter((x, y) for trace in traces(figure_of(rows), "points") for x, y in zip(trace.x, trace.y, strict=True))
    assert drawn == Counter((row.arithmetic_intensity, row.flop_s) for row in rows if row.outcome == "ok")


def test_points_are_never_joined_and_regimes_never_share_a_symbol():
    rows = {row.result_id: row for row in sweep()}
    points = traces(figure_of(list(rows.values())), "points")
    assert {trace.mode for trace in points} == {"markers"}
    by_symbol: dict[str, set[str]] = {}
    for trace in points:
        by_symbol.setdefault(trace.marker.symbol, set()).update(rows[number].regime for number in trace.customdata)
    assert sorted(map(len, by_symbol.values())) == [1, 1, 1, 1]


def test_spec_roof_lines_carry_the_roofs_values():
    rows = [result(format="bf16"), result(format="tf32")]
    solid = [trace for trace in traces(figure_of(rows), "roof") if trace.line.dash is None]
    slope = max(solid, key=lambda trace: trace.x[-1] < 1e3)
    assert list(slope.y) == pytest.approx(roof(PEAKS["bf16"], BANDWIDTH, list(slope.x)))
    flats = sorted(trace.y[-1] for trace in solid if trace.y[0] == trace.y[-1])
    assert flats == [PEAKS["tf32"], PEAKS["bf16"]]


def test_ridge_points_are_marked_where_the_roof_bends():
    marks = traces(figure_of([result()]), "ridge")
    assert (PEAKS["bf16"] / BANDWIDTH, PEAKS["bf16"]) in [(trace.x[0], trace.y[0]) for trace in marks]


def test_the_empirical_roof_differs_by_dash_for_burst_and_sustained():
    rows = [result(share=0.6), result(share=0.8, regime="cold/burst/device")]
    flats = {trace.line.dash: trace.y[-1] for trace in traces(figure_of(rows), "roof") if trace.line.dash}
    assert flats["dot"] == rows[1].flop_s
    assert flats["dash"] in (rows[0].flop_s, rows[1].flop_s)
    assert {"dash", "dot"} <= set(flats)


def test_what_is_not_drawn_is_counted():
    rows = [
        result(),
        failed("incorrect", "no"),
        failed("incorrect", "no"),
        failed("timeout", "slow"),
        result(flops=0, flop_s=0.0),
    ]
    assert "not drawn: 2 incorrect, 1 timeout, 1 without arithmetic" in note_text(figure_of(rows))


def test_a_result_above_the_spec_roof_is_drawn_inside_the_axes():
    row = result(share=1.6)
    figure = figure_of([row])
    (trace,) = traces(figure, "points")
    low, high = (10**end for end in figure.layout.yaxis.range)
    assert trace.y[0] == row.flop_s
    assert low < row.flop_s < high


def test_a_simulated_point_is_hollow_and_the_key_says_so():
    rows = [result(), result(evidence="simulated")]
    figure = figure_of(rows)
    assert {trace.marker.symbol for trace in traces(figure, "points")} == {"circle", "circle-open"}
    assert "hollow: simulated" in note_text(figure)


def test_a_point_in_doubt_is_faded():
    figure = figure_of([result(), result(converged=False)])
    (trace,) = traces(figure, "points")
    assert sorted(trace.marker.opacity) == [DOUBTFUL_OPACITY, 1.0]
    assert "faded" in note_text(figure)


def test_hover_shows_the_whole_case():
    row = result(1024, 2048, 512, regime="warm/burst/call", share=0.5)
    (trace,) = traces(figure_of([row]), "points")
    for part in ("1024x2048x512", "bf16", "library", "warm/burst/call", "compute bound", "95 %", "spec 50.0 %", "boost 46.0 %",
                 "at clock 65.0 %", "empirical 52.5 %", "1.41 GHz", "1.7e-03", "8.0e-03", "ok", "converged"):  # fmt: skip
        assert part in trace.hovertext[0], part


def test_hover_tells_scalings_apart_and_says_what_rounding_costs():
    row = result(format="fp8_e4m3", semantics={"scaling": "row"}, quantisation_error=0.0374)
    (trace,) = traces(figure_of([row]), "points")
    assert "fp8_e4m3 row library" in trace.hovertext[0]
    assert "quantisation error 3.7e-02" in trace.hovertext[0]


def test_a_legend_of_many_formats_has_room_above_the_plot():
    few, many = (figure_of([result(format=name) for name in names]) for names in (["bf16"], FORMATS))
    rows_of_two = -(-len(FORMATS) // 2)
    assert many.layout.margin.t >= rows_of_two * 19 > few.layout.margin.t
    heights = [figure.layout.height - figure.layout.margin.t - figure.layout.margin.b for figure in (few, many)]
    assert heights[0] == heights[1]


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (Span(4e-3, 3e-2), ["5 ms", "10 ms", "20 ms"]),
        (Span(8e-7, 2.0), ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]),
    ],
)
def test_an_axis_of_seconds_has_its_units_on_its_ticks(span, words):
    axis = log_axis("Time (s)", span, INKS["light"], "~s")
    assert (axis["title"]["text"], axis["ticktext"], len(axis["tickvals"])) == ("Time", words, len(words))
    assert log_axis("Rate (B/s)", span, INKS["light"], "~s")["title"]["text"] == "Rate (B/s)"


def test_a_label_of_a_roof_has_the_pages_colour_behind_it():
    for theme, ink in INKS.items():
        labels = [note for note in figure_of(sweep(), theme=theme).layout.annotations if "FLOP/s" in note.text]
        assert labels
        assert {(note.bgcolor, note.font.color) for note in labels} == {(faint(ink.background, 0.75), ink.text)}


def test_hostile_text_is_never_markup():
    row = result(
        format=EVIL, implementation=EVIL, pipe=EVIL, params={EVIL: EVIL}, switches={"x": EVIL}, throttle=EVIL, bound=EVIL
    )
    figure = figure_of([row, failed(EVIL, EVIL)])
    shown = [annotation.text for annotation in figure.layout.annotations]
    shown += [text for trace in figure.data for text in (trace.name, trace.hovertext) if isinstance(text, str)]
    shown += [text for trace in traces(figure, "points") for text in trace.hovertext]
    assert any("&lt;script" in text for text in shown)
    assert not [text for text in shown if "<script" in text or "<img" in text]


def test_nothing_to_draw_is_still_a_figure():
    figure = roofline_figure([], RoofSet((), ()))
    assert not traces(figure, "points")
    assert figure.layout.xaxis.range[0] < figure.layout.xaxis.range[1]


def test_themes_differ_in_colours_only():
    light, dark = (figure_of(sweep(), theme=theme) for theme in ("light", "dark"))
    assert light.layout.paper_bgcolor != dark.layout.paper_bgcolor
    colours = [[trace.marker.color for trace in traces(figure, "points")] for figure in (light, dark)]
    assert colours[1] == [themed(colour, INKS["dark"]) for colour in colours[0]] != colours[0]
    places = [[(list(trace.x), list(trace.y), trace.marker.symbol) for trace in figure.data] for figure in (light, dark)]
    assert places[0] == places[1]
    assert len(light.data) == len(dark.data)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(1e-3, 1e6), st.floats(1e3, 1e18), st.sampled_from(["bf16", "fp8_e4m3"])), min_size=1, max_size=8
    )
)
def test_every_point_and_every_roof_lies_inside_the_axes(points):
    rows = [result(format=name, arithmetic_intensity=x, flop_s=y) for x, y, name in points]
    figure = roofline_figure(rows, roof_set(rows, SPEC, CALIBRATION.best_bytes_s, {}))
    x_low, x_high = (10**end for end in figure.layout.xaxis.range)
    y_low, y_high = (10**end for end in figure.layout.yaxis.range)
    for trace in traces(figure, "points") + traces(figure, "roof") + traces(figure, "ridge"):
        assert all(x_low * 0.999 <= x <= x_high * 1.001 for x in trace.x)
        assert all(y_low * 0.999 <= y <= y_high * 1.001 for y in trace.y)
