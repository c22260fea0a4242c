import math

import pytest

from suite.report.axes import Span, powers_of_two
from suite.report.curve_choice import levels_of, strongest
from suite.report.curves import DASHES, Level, Line, curve_figure
from suite.report.figures import PLOT_PX
from suite.report.lines import WHO, Member, lines_of, param, rest_of, switch
from suite.report.palette import DEVICE_COLOURS, DOUBTFUL_OPACITY
from suite.report.values import BANDWIDTH, RATE, SHARES, TIME, VALUES, sized
from tests.report.builders import RUN, failed, result

LENGTH = sized("k", "Length (tokens)")


def row(k, **fields):
    return result(k=k, **fields)


def drawn(figure):
    return [trace for trace in figure.data if trace.meta == "points"]


def test_a_line_goes_through_its_results_in_order_with_their_intervals():
    rows = (row(1024, share=0.5), row(512, share=0.4), row(2048, share=0.6))
    figure = curve_figure([Line("a", "#0099fe", rows)], LENGTH, RATE)
    (trace,) = drawn(figure)
    assert list(trace.x) == [512, 1024, 2048]
    assert list(trace.y) == [rows[1].flop_s, rows[0].flop_s, rows[2].flop_s]
    assert trace.mode == "lines+markers"
    # A median that may be 0.2 % longer may be as much slower, and the other way round.
    assert trace.error_y.arrayminus[0] == pytest.approx(rows[1].flop_s * (1 - 1 / 1.002))
    assert trace.error_y.array[0] == pytest.approx(rows[1].flop_s * (1 / 0.998 - 1))
    assert [list(each) for each in trace.customdata] == [[RUN, rows[place].case_key, 0] for place in (1, 0, 2)]


def test_the_interval_of_a_time_is_its_own():
    (trace,) = drawn(curve_figure([Line("a", "#0099fe", (row(512),))], LENGTH, TIME))
    p50_s = trace.y[0]
    assert trace.error_y.arrayminus[0] == pytest.approx(p50_s * 0.002)
    assert trace.error_y.array[0] == pytest.approx(p50_s * 0.002)


def test_operations_per_joule_have_no_interval_for_that_of_the_time_is_none_of_the_energy():
    figure = curve_figure([Line("a", "#0099fe", (row(512, energy_j=0.5),))], LENGTH, VALUES["per joule"])
    (trace,) = drawn(figure)
    assert list(trace.y) == [2 * 4096 * 4096 * 512 / 0.5]
    assert trace.error_y.array is None
    assert "upright" not in figure.layout.annotations[0].text


@pytest.mark.parametrize(
    "other", [{"regime": "cold/burst/device"}, {"regime": "warm/sustained/device"}, {"evidence": "simulated"}]
)
def test_regimes_and_kinds_of_evidence_are_never_joined(other):
    rows = (row(512), row(1024), row(2048, **other))
    first, second = drawn(curve_figure([Line("a", "#0099fe", rows)], LENGTH, RATE))
    assert sorted([len(first.x), len(second.x)]) == [1, 2]
    assert first.marker.symbol != second.marker.symbol
    assert sum(trace.showlegend for trace in (first, second)) == 1
    if "evidence" in other:
        (simulated,) = (trace for trace in (first, second) if len(trace.x) == 1)
        assert (simulated.marker.symbol, simulated.line.dash) == ("circle-open", "dot")


def test_two_results_at_one_place_are_points_and_no_line():
    (trace,) = drawn(curve_figure([Line("a", "#0099fe", (row(512), row(512), row(1024)))], LENGTH, RATE))
    assert trace.mode == "markers"


def test_results_in_doubt_are_faded_and_what_has_no_place_is_counted():
    rows = (row(512, converged=False), row(1024), failed("incorrect", "off", k=2048))
    figure = curve_figure([Line("a", "#0099fe", rows)], LENGTH, RATE)
    assert list(drawn(figure)[0].marker.opacity) == [DOUBTFUL_OPACITY, 1.0]
    key = figure.layout.annotations[0].text.replace("\u00a0", " ")
    assert "faded: in doubt" in key
    assert "not drawn: 1 of 3 results have no rate" in key


def test_nothing_to_draw_is_no_figure():
    assert curve_figure([], LENGTH, RATE) is None
    assert curve_figure([Line("a", "#0099fe", (failed("timeout", "", k=8),))], LENGTH, RATE) is None


def test_shares_start_at_nothing_and_rates_are_logarithmic():
    shares = curve_figure([Line("a", "#0099fe", (row(512, share=0.5),))], LENGTH, SHARES["of spec"])
    assert (shares.layout.yaxis.type, shares.layout.yaxis.range) == ("linear", (0, 1.0))
    assert curve_figure([Line("a", "#0099fe", (row(512),))], LENGTH, RATE).layout.yaxis.type == "log"


def test_sizes_have_powers_of_two_for_ticks():
    figure = curve_figure([Line("a", "#0099fe", (row(500), row(5000)))], LENGTH, RATE)
    assert list(figure.layout.xaxis.tickvals) == [512, 1024, 2048, 4096]
    assert list(figure.layout.xaxis.ticktext) == ["512", "1,024", "2,048", "4,096"]


def test_ticks_lie_level_and_are_as_many_as_a_telephone_has_room_for():
    words = [f"{2**power:,}" for power in range(3, 28)]
    for low, high in ((8, 2**27), (8, 2**9), (2**20, 2**27), (1, 2)):
        ticks = powers_of_two(Span(low, high), lambda value: f"{value:,}")
        assert set(ticks["ticktext"]) <= {"1", "2", "4", *words}
        assert sum(7 * len(text) + 8 for text in ticks["ticktext"]) <= 280
        assert len(ticks["tickvals"]) >= 2
        assert ticks["tickangle"] == 0
    assert ticks["tickvals"] == [1, 2]


def test_a_level_is_drawn_once_for_all_who_share_it():
    shared = [(name, "spec 4 TB/s", 4e12, "solid") for name in ("a", "b")]
    found = levels_of([*shared, ("a", "measured", 3e12, "dash")])
    assert found == [Level("spec 4 TB/s", 4e12, "solid"), Level("a: measured", 3e12, "dash")]
    figure = curve_figure([Line("x", "#0099fe", (row(512),))], LENGTH, BANDWIDTH, found)
    assert [shape.y0 for shape in figure.layout.shapes] == [4e12, 3e12]
    notes = [note for note in figure.layout.annotations if note.xref == "paper" and note.y]
    assert [(note.text, note.y) for note in notes] == [
        ("spec 4 TB/s", math.log10(4e12)),
        ("a: measured", math.log10(3e12)),
    ]


def test_of_one_device_colours_tell_what_differs_and_only_that_is_named():
    rows = (row(512), row(512, implementation="triton"), row(1024, implementation="triton"))
    lines = lines_of([Member("T1", "#000000", rows)], WHO)
    assert [(line.name, line.colour, len(line.rows)) for line in lines] == [
        ("library", DEVICE_COLOURS[0], 1),
        ("triton", DEVICE_COLOURS[1], 2),
    ]
    (alone,) = lines_of([Member("T1", "#123456", rows[:1])], WHO)
    assert (alone.name, alone.colour) == ("T1", DEVICE_COLOURS[0])


def test_of_several_devices_colours_are_theirs_and_dashes_tell_the_rest():
    members = [
        Member("T1", "#0099fe", (row(512), row(512, implementation="triton"))),
        Member("T2", "#a64621", (row(512, implementation="triton"),)),
    ]
    lines = lines_of(members, WHO)
    assert [(line.name, line.colour, line.dash) for line in lines] == [
        ("T1, library", "#0099fe", DASHES[0]),
        ("T1, triton", "#0099fe", DASHES[1]),
        ("T2, triton", "#a64621", DASHES[1]),
    ]
    figure = curve_figure(lines, LENGTH, RATE)
    assert [trace.name for trace in figure.data if trace.showlegend] == ["T1", "T2", "library", "triton"]
    assert {trace.legendgroup for trace in drawn(figure)} == {"T1", "T2"}


def test_what_differs_in_anything_is_no_line():
    rows = (row(512), row(1024, distribution="zeros"), row(2048, switches={"tf32": True}))
    assert len(lines_of([Member("T1", "#000000", rows)], {"rest": rest_of("m", "n", "k")})) == 3


def test_parts_of_names():
    found = result(params={"batch": 32}, switches={"algo": "ring"}, distribution="zeros")
    assert param("batch")(found) == "batch 32"
    assert param("page_size", "page")(found) == ""
    assert switch("algo")(found) == "ring"
    assert rest_of("batch")(found) == "zeros data algo=ring"


def test_the_strongest_lines_of_each_device_stay_in_their_order():
    slow, fast = row(512, share=0.1), row(512, share=0.9)
    lines = [Line(f"{colour}{n}", colour, (each,)) for colour in ("#111111", "#222222") for n, each in enumerate((slow, fast))]
    assert [line.name for line in strongest(lines, RATE, 2)] == ["#1111111", "#2222221"]
    assert [line.name for line in strongest(lines, TIME, 2)] == ["#1111111", "#2222221"]
    assert strongest(lines, RATE, 4) == lines


def test_names_are_text():
    rows = (row(512),)
    figure = curve_figure(
        [Line("<b>x</b>", "#0099fe", rows, member="<i>", variant="<u>"), Line("y", "#a64621", rows, member="z", variant="v")],
        LENGTH,
        RATE,
        [Level("<a>", 1e12)],
    )
    shown = [trace.name for trace in figure.data if trace.name] + [note.text for note in figure.layout.annotations]
    assert not [text for text in shown if "<i>" in text or "<u>" in text or "<a>" in text]


def heights_said(levels, up=RATE):
    figure = curve_figure([Line("a", "#0099fe", (row(512),))], LENGTH, up, levels)
    return [note for note in figure.layout.annotations if note.name != "key"]


def test_levels_closer_than_their_words_share_a_place_with_a_line_of_text_each():
    near = [Level("b: spec 4.80 PFLOP/s", 4.8e15), Level("b: measured 4.44 PFLOP/s", 4.44e15), Level("a: 1 GFLOP/s", 1e9)]
    both, low = heights_said(near)
    assert low.text == "a: 1 GFLOP/s"
    assert both.text == "b: spec 4.80 PFLOP/s<br>b: measured 4.44 PFLOP/s"
    assert (both.y, both.yanchor) == (pytest.approx(math.log10(4.8e15)), "bottom")
    assert (low.y, low.yanchor) == (9, "bottom")


def test_the_words_of_the_highest_levels_have_room_below_the_top_of_the_plot():
    figure = curve_figure(
        [Line("a", "#0099fe", (row(512),))], LENGTH, RATE, [Level("b", 4.8e15), Level("c", 4.4e15), Level("d", 1e9)]
    )
    low, high = figure.layout.yaxis.range
    assert (high - math.log10(4.8e15)) * PLOT_PX / (high - low) >= 2 * 14


def test_the_label_of_a_level_ends_with_its_whole_height():
    what = "measured 30.1 GB/s, contended"
    (level, _) = levels_of(
        [("a processor with a name that goes on and on (7f629...)", what, 3e10, "dash"), ("b", "spec", 1e12, "dash")]
    )
    (_, note) = heights_said([level, Level("b: spec", 1e13)])
    assert note.text.endswith(f": {what}")
    assert "(7f629...)" in note.text or note.text.startswith("a pro")
