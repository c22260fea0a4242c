import pytest

from suite.report.gemm_shapes import MOST_CELLS, shape_map
from suite.report.heat import FAILED, Cell, HeatMap, heat_figure, label, width_px
from suite.report.palette import INKS
from suite.report.values import VALUES
from suite.rows import NO_FRACTIONS
from tests.report.builders import failed, result

EVIL = '<a href="javascript:alert(1)">x</a><b>' + "y" * 5000


def points(figure):
    return next(trace for trace in figure.data if trace.meta == "cells")


def test_every_shape_has_one_cell_with_the_best_of_its_results():
    rows = [
        result(16, 4096, 4096, share=0.2),
        result(16, 4096, 4096, share=0.6, implementation="triton"),
        result(512, 4096, 4096, share=0.4),
        result(16, 1024, 4096, share=0.5),
    ]
    heat, left_out = shape_map(rows, VALUES["of spec"])
    assert (heat.rows, heat.columns, left_out) == (["16", "512"], ["1024 x 4096", "4096 x 4096"], 0)
    assert {place: (cell.text, cell.level) for place, cell in heat.cells.items()} == {
        (0, 0): ("50.0 %", 0.5),
        (0, 1): ("60.0 %", 0.6),
        (1, 1): ("40.0 %", 0.4),
    }
    assert heat.cells[0, 1].row.implementation == "triton"


def test_of_times_the_shortest_is_the_best_and_the_scale_goes_to_the_longest():
    rows = [result(16, p50_s=3e-6), result(16, p50_s=2e-6), result(32, p50_s=8e-6)]
    heat, _ = shape_map(rows, VALUES["time"])
    assert [(cell.text, cell.level) for cell in heat.cells.values()] == [("2.000 µs", 0.25), ("8.000 µs", 1.0)]
    assert heat.scale == ("Time of one launch (s)", "0", "8.000 µs")


@pytest.mark.parametrize(
    ("value", "format", "text"),
    [
        ("rate", "bf16", "446 GFLOP/s"),
        ("rate", "int8", "446 GOP/s"),
        ("bandwidth", "bf16", "253 MB/s"),
        ("per joule", "bf16", "550 GFLOP/J"),
        ("per joule", "int8", "550 GOP/J"),
    ],
)
def test_every_cell_has_its_unit(value, format, text):
    row = result(format=format, flop_s=4.46e11, bytes_s=2.53e8, energy_j=0.25)
    heat, _ = shape_map([row], VALUES[value])
    assert heat.cells[0, 0].text == text


def test_a_shape_that_failed_keeps_its_place_and_says_why_on_hover():
    rows = [failed("incorrect", "row 3 is off by 2", m=16), result(32)]
    heat, _ = shape_map(rows, VALUES["of spec"])
    assert (heat.cells[0, 0].text, heat.cells[0, 0].level) == (FAILED, None)
    figure = heat_figure(heat)
    assert "incorrect: the output differs from the reference" in points(figure).hovertext[0]
    assert "row 3 is off by 2" in points(figure).hovertext[0]
    assert list(figure.data[0].z) == [[None], [0.7]]
    assert f"{FAILED}\u00a0no\u00a0result" in figure.layout.annotations[0].text


def test_a_verified_result_outranks_a_failure_of_the_same_shape():
    for rows in ([failed("timeout", "over 120 s", m=16), result(16)], [result(16), failed("timeout", "over 120 s", m=16)]):
        heat, _ = shape_map(rows, VALUES["of spec"])
        assert heat.cells[0, 0].text == "70.0 %"


def test_more_sizes_than_can_be_read_are_counted():
    heat, left_out = shape_map([result(m, m, m) for m in range(64, 64 * 60, 64)], VALUES["rate"])
    assert len(heat.rows) == len(heat.columns) == MOST_CELLS
    assert left_out == 59 - MOST_CELLS


def test_what_is_not_measured_in_the_usual_regime_or_beyond_doubt_is_marked_and_the_key_says_with_what():
    rows = {
        (0, 0): result(),
        (0, 1): result(regime="cold/burst/device"),
        (0, 2): result(converged=False),
        (0, 3): result(evidence="simulated"),
    }
    cells = {place: Cell("70.0", 0.7, row) for place, row in rows.items()}
    figure = heat_figure(HeatMap(["a"], list("wxyz"), cells, ("Share", "0 %", "100 %")))
    assert list(points(figure).text) == ["70.0", "70.0▲", "70.0?", "70.0°"]
    key = figure.layout.annotations[0].text.replace("\u00a0", " ")
    for said in ("▲ cold/burst/device", "° not measured", "? in doubt", "Share: dark 0 % to bright 100 %"):
        assert said in key
    assert list(map(list, points(figure).customdata)) == [[row.run, row.case_key, 0] for row in rows.values()]


@pytest.mark.parametrize("theme", INKS)
def test_text_stands_out_from_its_cell(theme):
    cells = {(0, column): Cell("x", level, result()) for column, level in enumerate((0.0, 0.5, 0.6, 1.0, None))}
    figure = heat_figure(HeatMap(["a"], list("vwxyz"), cells, ("", "", "")), theme)
    assert list(points(figure).textfont.color) == ["#ffffff", "#ffffff", "#111111", "#111111", INKS[theme].text]


def test_names_are_text_and_end():
    figure = heat_figure(HeatMap([EVIL], [EVIL], {(0, 0): Cell(EVIL[:20], 0.5, result())}, ("", "", ""), note=EVIL[:60]))
    shown = [*figure.layout.xaxis.ticktext, *figure.layout.yaxis.ticktext, *points(figure).text]
    own = '<br><span style="font-size:10px">'  # between a number and its unit
    assert not [text for text in shown if "<" in text.replace(own, "").removesuffix("</span>")]
    assert "<a" not in figure.layout.annotations[0].text
    assert all(len(text) < 120 for text in figure.layout.xaxis.ticktext)
    assert label("a\nb\x1b[31m") == "a b\\x1b[31m"


def test_a_figure_is_as_wide_as_its_cells_and_a_single_one_is_no_bar():
    one, many = (HeatMap(["a"], ["x"] * count, {}, ("", "", "")) for count in (1, 20))
    assert width_px(many) - width_px(one) == 15 * 62
    assert heat_figure(one).layout.xaxis.domain == (0, 0.2)
    assert heat_figure(many).layout.xaxis.domain == (0, 1)


def test_the_last_column_s_name_has_room_where_it_stands_aslant():
    """Plotly drops a name that would leave the figure, and a column is then without one."""
    named, short = (HeatMap(["a"], names, {}, ("", "", "")) for names in (["gemm fp8_e4m3"] * 7, ["x"] * 7))
    right = heat_figure(named).layout.margin.r
    assert right >= 13 * 6.6 * 0.75 - 31
    assert width_px(named) - width_px(short) == right - 16
    assert heat_figure(short).layout.margin.r == 16


def test_long_names_of_rows_stand_over_their_cells_where_a_telephone_shows_both():
    """The names of devices took 250 of 358 pixels, and one and a half columns of seven were seen."""
    names = [f"Intel(R) Xeon(R) Processor ({folder}/roofbench.db)" for folder in ("roofbench", "user")]
    cells = {(row, column): Cell("1", 0.5, result()) for row in range(2) for column in range(7)}
    figure = heat_figure(HeatMap(names, ["gemm bf16"] * 7, cells, ("", "", "")))
    assert figure.layout.margin.l + 5 * 62 <= 358
    assert not figure.layout.yaxis.showticklabels
    over = {note.text: note.y for note in figure.layout.annotations if note.text in names}
    assert over == {names[0]: -0.5, names[1]: 0.5}
    short = heat_figure(HeatMap(["4096", "16"], ["x"] * 7, cells, ("", "", "")))
    assert short.layout.yaxis.showticklabels
    assert list(short.layout.yaxis.range) == [1.5, -0.5]


def test_of_several_results_of_a_shape_the_one_that_is_known_is_shown():
    known, wide = result(share=0.3, contended=True), result(share=0.9, interval_s=(1e-9, 1.0))
    for rows in ([known, wide], [wide, known]):
        heat, _ = shape_map(rows, VALUES["of spec"])
        assert [cell.row for cell in heat.cells.values()] == [known]


def test_a_unit_has_a_line_of_its_own_where_both_are_wider_than_a_cell():
    cells = {(0, 0): Cell("446 GFLOP/s", None, result(converged=False)), (0, 1): Cell("13.9 %", 0.139, result())}
    figure = heat_figure(HeatMap(["a"], ["x", "y"], cells, ("Share", "0 %", "100 %")))
    assert list(points(figure).text) == ['446?<br><span style="font-size:10px">GFLOP/s</span>', "13.9 %"]
    alone = heat_figure(HeatMap(["a"], ["x", "y"], {(0, 1): cells[0, 1]}, ("Share", "0 %", "100 %")))
    assert figure.layout.height - alone.layout.height == 10 + 16  # the key has a line on doubt


def test_what_hovers_is_no_wider_than_the_narrowest_figure_and_says_only_what_is_known():
    row = result(fractions=NO_FRACTIONS, clock_hz=None, power_w=None, converged=False, contended=True, execution="emulated")
    figure = heat_figure(HeatMap(["a"], ["x"], {(0, 0): Cell("1", None, row)}, ("Share", "0 %", "100 %")))
    (hover,) = points(figure).hovertext
    lines = hover.replace("<b>", "").replace("</b>", "").split("<br>")
    assert max(map(len, lines)) <= 48
    assert "n/a" not in hover
    assert "contended: others used the device meanwhile" in lines
    assert "no share of a roof is known" in lines
