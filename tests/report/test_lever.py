"""Batch size as a lever: which weight matrices have one, where memory gives way to arithmetic, and what is drawn of it."""

import math
from dataclasses import replace

import pytest

from suite.config import compose
from suite.jobs.gemm import GemmJob
from suite.report.document import build
from suite.report.html import render_html
from suite.report.lever import Crossing, Lever, levers, notes
from suite.report.lever_figure import SYMBOLS, lever_figure
from suite.report.markdown import render_markdown
from suite.report.palette import INKS, format_colour, themed
from suite.report.roofs import EmpiricalKey, Memory, Roof, RoofSet, roof_set
from suite.rows import ResultRow
from tests.report.builders import BANDWIDTH, PEAKS, SPEC, FakeReader, failed, result
from tests.report.pages import Page

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
SIZES = tuple(2**power for power in range(14))  # 1 to 8192
SIDE = 8192


def curve(sizes=SIZES, **fields) -> list[ResultRow]:
    return [result(m, SIDE, SIDE, **fields) for m in sizes]


def one(rows) -> Lever:
    (found,) = levers(rows)
    return found


def roofs_of(rows) -> RoofSet:
    return roof_set(rows, SPEC, 4.2e12, {})


def crossing_by_hand(number_bytes: int, peak: float) -> int:
    """The least power of two with 2 m n k operations longer at the peak than its bytes at the sheet's bandwidth."""
    for m in SIZES:
        moved = number_bytes * (m * SIDE + SIDE * SIDE) + 2 * m * SIDE
        if 2 * m * SIDE * SIDE / peak > moved / BANDWIDTH:
            return m
    raise AssertionError("no crossing")


def test_four_batch_sizes_of_one_weight_matrix_are_a_lever_and_three_are_none() -> None:
    assert levers(curve((1, 16, 4096))) == ()
    assert levers([*curve((1, 16, 4096)), failed("error", "it broke", params={"m": 64, "n": SIDE, "k": SIDE})]) == ()
    assert one(curve((1, 16, 64, 4096))).sizes == (1, 16, 64, 4096)


def test_squares_and_other_jobs_make_none() -> None:
    assert levers([result(side, side, side) for side in (256, 512, 1024, 2048, 4096)]) == ()
    assert levers([replace(row, job="grouped_gemm") for row in curve()]) == ()
    assert levers([replace(row, params={"op": "copy"}) for row in curve()]) == ()


def test_each_matrix_regime_layout_and_kind_of_data_has_its_own() -> None:
    rows = [
        *curve(),
        *curve(regime="warm/sustained/device"),
        *curve(distribution="zeros"),
        *[replace(row, params={**row.params, "layout": "nn"}) for row in curve()],
        *[replace(row, params={**row.params, "layout": "nt", "epilogue": "bias"}) for row in curve()],
        *[result(m, 4096, SIDE) for m in SIZES],
        *[replace(row, run="another") for row in curve()],
        *[replace(row, evidence="simulated") for row in curve()],
    ]
    found = levers(rows)
    assert len(found) == 8
    assert [lever.n for lever in found] == [SIDE] * 7 + [4096]
    assert all(len(lever.lines) == 1 for lever in found)
    titles = [lever.title for lever in found]
    assert titles[0] == "N 8192, K 8192, cold/sustained/device: M 1 to 8192"
    assert "N 8192, K 8192, zeros data, cold/sustained/device: M 1 to 8192" in titles
    assert "N 8192, K 8192, simulated, cold/sustained/device: M 1 to 8192" in titles
    assert "N 8192, K 8192, layout nn, cold/sustained/device: M 1 to 8192" in titles
    assert "N 8192, K 8192, epilogue bias, cold/sustained/device: M 1 to 8192" in titles


def test_a_line_is_a_format_by_an_implementation_and_those_of_few_sizes_are_left_out() -> None:
    rows = [
        *curve(),
        *curve(implementation="triton"),
        *curve(format="fp8_e4m3", semantics={"scaling": "row"}, switches={"fp8_fast_accum": True}),
        *curve(format="fp8_e4m3", semantics={"scaling": "row"}, switches={"fp8_fast_accum": False}),
        *curve((1, 2, 4), format="fp16"),
    ]
    lever = one(rows)
    assert [line.name for line in lever.lines] == [
        "bf16, library, cuda",
        "bf16, triton, cuda",
        "fp8_e4m3 row fp8_fast_accum=True, library, cuda",
        "fp8_e4m3 row fp8_fast_accum=False, library, cuda",
    ]
    assert [line.number for line in lever.lines] == [1, 2, 3, 4]


def test_points_go_from_the_least_rows_to_the_most_whatever_came_first() -> None:
    (line,) = one(list(reversed(curve()))).lines
    assert [point.m for point in line.points] == list(SIZES)
    intensities = [point.row.arithmetic_intensity for point in line.points]
    assert intensities == sorted(intensities)


def test_of_two_attempts_the_later_is_shown() -> None:
    rows = curve()
    again = replace(rows[3], attempt=2, result_id=rows[3].result_id + 10_000, flop_s=1.0)
    (line,) = one([again, *rows]).lines
    assert line.points[3].row is again


@pytest.mark.parametrize(("name", "pipe"), [("bf16", "bf16"), ("fp8_e4m3", "fp8")])
def test_memory_gives_way_to_arithmetic_where_the_floors_are_equal(name, pipe) -> None:
    first = crossing_by_hand(2 if name == "bf16" else 1, PEAKS[pipe])
    (line,) = one(curve(format=name)).lines
    crossing = line.crossing
    assert crossing is not None
    assert (crossing.before.m, crossing.after.m) == (first // 2, first)
    assert line.told == f"memory bound up to M = {first // 2}, compute bound from M = {first}"


def bounds(*names):
    rows = [result(2**place, SIDE, SIDE, bound=name) for place, name in enumerate(names)]
    (line,) = one(rows).lines
    return line


def test_a_crossing_is_where_arithmetic_bounds_for_good() -> None:
    line = bounds("launch", "memory", "compute", "memory", "compute", "compute")
    assert line.crossing == Crossing(line.points[3], line.points[4])
    between = bounds("memory", "memory", "launch", "compute", "compute")
    assert between.crossing == Crossing(between.points[1], between.points[3])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("cache", "cache", "compute", "compute"), "cache bound up to M = 2, compute bound from M = 4"),
        (("cache", "memory", "compute", "compute"), "memory bound up to M = 2, compute bound from M = 4"),
        (("memory", "cache", "compute", "compute"), "cache bound up to M = 2, compute bound from M = 4"),
        (("launch", "cache", "launch", "compute"), "cache bound up to M = 2, compute bound from M = 8"),
    ],
)
def test_warm_weights_give_way_to_arithmetic_from_the_cache(names, said) -> None:
    line = bounds(*names)
    assert line.told == said
    (tick,) = drawn(lever_figure(one([point.row for point in line.points]), roofs_of([])), "crossing")
    assert said in tick.hovertext


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("memory",) * 4, "memory bound throughout"),
        (("compute",) * 4, "compute bound throughout"),
        ((None,) * 4, "unknown bound throughout"),
        (("launch", "launch", "launch", "compute"), "launch bound from M = 1 to 4, compute bound at M = 8"),
        (("compute", "compute", "memory", "memory"), "compute bound from M = 1 to 2, memory bound from M = 4 to 8"),
        (("cache", "memory", "memory", None), "cache bound at M = 1, memory bound from M = 2 to 4, unknown bound at M = 8"),
        (("compute", "memory") * 3, "bound by compute and memory in turns"),
    ],
)
def test_without_both_sides_there_is_no_crossing(names, said) -> None:
    line = bounds(*names)
    assert line.crossing is None
    assert line.told == said


def test_a_table_cell_is_rate_and_bound_and_what_is_missing_a_dash() -> None:
    rows = [*curve(), *curve(SIZES[4:], implementation="triton", contended=True)]
    lever = one(rows)
    assert lever.cells(1) == ("3.15 TFLOP/s, memory", "–")
    assert lever.cells(8192) == ("672 TFLOP/s, compute", "672 TFLOP/s, compute, in doubt")


def drawn(figure, meta):
    return [trace for trace in figure.data if trace.meta == meta]


def test_the_figure_has_a_line_each_under_the_roofs_of_the_units_that_multiplied() -> None:
    rows = [*curve(), *curve(implementation="triton"), *curve(format="fp8_e4m3"), result(64, format="fp32")]
    lever, roofs = one(rows), roofs_of(rows)
    figure = lever_figure(lever, roofs)
    lines = drawn(figure, "line")
    assert [trace.line.color for trace in lines] == [format_colour(name) for name in ("bf16", "bf16", "fp8_e4m3")]
    assert [trace.line.dash for trace in lines] == ["solid", "dash", "solid"]
    for trace, line in zip(lines, lever.lines, strict=True):
        assert list(trace.x) == [point.row.arithmetic_intensity for point in line.points]
        assert list(trace.y) == [point.row.flop_s for point in line.points]
        assert list(trace.marker.symbol) == [SYMBOLS[point.row.bound] for point in line.points]
    flat = {max(trace.y) for trace in drawn(figure, "roof")}
    assert flat == {PEAKS["bf16"], PEAKS["fp8"]}, "and not the one of fp32, which multiplied none of these"
    numbers = [note.text for note in figure.layout.annotations if note.showarrow]
    assert numbers == ["1", "2", "3"]


def test_a_tick_stands_between_the_two_results_of_a_crossing() -> None:
    lever = one([*curve(), *[replace(row, implementation="other", bound="memory") for row in curve()]])
    (tick,) = drawn(lever_figure(lever, roofs_of([])), "crossing")
    crossing = lever.lines[0].crossing
    assert crossing is not None
    low, high = crossing.before.row, crossing.after.row
    assert tick.x[0] == pytest.approx(math.sqrt(low.arithmetic_intensity * high.arithmetic_intensity))
    assert tick.y[0] == pytest.approx(math.sqrt(low.flop_s * high.flop_s))
    assert "compute bound from M" in tick.hovertext


def test_without_a_sheet_the_roofs_are_those_that_were_measured() -> None:
    rows = curve()
    measured = roof_set(rows, None, 4.2e12, {EmpiricalKey("bf16", "sustained"): 7e14, EmpiricalKey("fp8", "sustained"): 9e14})
    figure = lever_figure(one(rows), measured)
    assert {max(trace.y) for trace in drawn(figure, "roof")} == {7e14}
    assert drawn(lever_figure(one(rows), RoofSet((), ())), "roof") == []


def test_a_memory_roof_is_drawn_under_a_lever_whose_other_roofs_have_none():
    rows = curve((1, 16, 256, 4096))
    flat = Roof("spec", ("bf16",), None, 960e12, None)
    texts = [trace.hovertext for trace in drawn(lever_figure(one(rows), RoofSet((flat,), (), Memory(4.2e12))), "roof")]
    assert texts == ["spec roof: bf16 960 TFLOP/s", "empirical roof: memory 4.20 TB/s"]
    whole = replace(flat, bandwidth_bytes_s=4.5e12)
    figure = lever_figure(one(rows), RoofSet((whole,), (), Memory(4.2e12)))
    assert not [trace for trace in drawn(figure, "roof") if "empirical" in trace.hovertext]


def test_the_key_says_what_shapes_dashes_and_ticks_are() -> None:
    rows = [*curve(), *[replace(row, implementation="triton", contended=True, bound="launch") for row in curve()]]
    figure = lever_figure(one(rows), roofs_of(rows))
    key = " ".join(note.text for note in figure.layout.annotations if not note.showarrow).replace("\u00a0", " ")
    for said in (
        "1 bf16, library, cuda", "● memory bound", "■ compute bound", "▲ launch bound", "solid: library", "dash: triton",
        "tick: from memory to compute bound", "faded: ", "without points: spec roof",
    ):  # fmt: skip
        assert said in key


def test_the_key_names_what_a_tick_comes_from() -> None:
    rows = [*curve(), *[replace(row, implementation="triton", bound=row.bound.replace("memory", "cache")) for row in curve()]]
    key = " ".join(note.text for note in lever_figure(one(rows), roofs_of(rows)).layout.annotations).replace("\u00a0", " ")
    assert "tick: from cache or memory to compute bound" in key


def test_themes_differ_in_colours_only() -> None:
    light, dark = (lever_figure(one(curve()), roofs_of(curve()), theme) for theme in INKS)
    assert light.layout.paper_bgcolor != dark.layout.paper_bgcolor
    colours = [[trace.marker.color for trace in drawn(figure, "line")] for figure in (light, dark)]
    assert colours[1] == [themed(colour, INKS["dark"]) for colour in colours[0]]
    assert len(light.data) == len(dark.data)


def test_the_page_and_the_text_have_the_same_numbers() -> None:
    rows = [*curve(), *curve(format="fp8_e4m3"), *[result(m, 4096, SIDE) for m in SIZES]]
    document = build(FakeReader(tuple(rows)), ["latest"])
    page, markdown = Page(render_html(document)), render_markdown(document)
    places = [page.elements[index][1]["id"] for index in page.find("div", **{"class": "plot"})]
    assert [place for place in places if place.startswith("lever")] == ["lever-0-0", "lever-0-1"]
    opened = [index for index in page.find("details", **{"class": "rungs"}) if "M 1 to 8192" in page.text(index)]
    assert len(opened) == 2
    for lever in levers(rows):
        assert f"#### {lever.title}" in markdown.replace("\\", "")
        for m in lever.sizes:
            cells = f"| {m} | " + " | ".join(lever.cells(m)) + " |"
            assert cells in markdown
        assert any(all(note in page.text(index) for note in notes(lever)) for index in opened)


def test_a_run_of_few_batch_sizes_has_no_such_section() -> None:
    document = build(FakeReader((result(), result(m=1))), ["latest"])
    assert "Batch size as a lever" not in render_html(document)
    assert "Batch size as a lever" not in render_markdown(document)


def test_hostile_text_is_never_markup() -> None:
    rows = [replace(row, implementation=EVIL, params={**row.params, "layout": EVIL}) for row in curve()]
    figure = lever_figure(one(rows), roofs_of(rows))
    shown = [note.text for note in figure.layout.annotations]
    for trace in figure.data:
        shown += [trace.hovertext] if isinstance(trace.hovertext, str) else list(trace.hovertext)
    assert any("&lt;script" in text for text in shown)
    assert not [text for text in shown if "<script" in text or "<img" in text]
    assert Page(render_html(build(FakeReader(tuple(rows)), ["latest"]))).find("img") == []


def test_the_experiment_has_every_power_of_two_and_each_line_enough_of_them() -> None:
    config = compose(["experiment=batch_lever"])
    gemm = config.jobs["gemm"]
    workloads = list(GemmJob().workloads(gemm))
    by_format: dict[str, list[int]] = {}
    for workload in workloads:
        by_format.setdefault(workload.format_label, []).append(workload.param("m"))
    assert by_format == {key: list(SIZES) for key in ("bf16", "fp8_e4m3 row", "w4a16")}
    assert gemm.implementations == ["library", "triton"]
    assert 60 <= 2 * len(workloads) <= 100
    assert (config.measure.regimes, config.max_cases) == (["cold/sustained/device"], 100)


@pytest.mark.parametrize("name", ["m", "n", "k"])
@pytest.mark.parametrize("size", ["many", "64", None, -1, 0, True, 2.5, "\u0663"])
def test_a_result_whose_size_is_none_is_left_out_and_told(size, name) -> None:
    whole, damaged = curve(), curve((32, 128))
    rows = [*whole, *[replace(row, params={**row.params, name: size}) for row in damaged]]
    lever = one(rows)
    assert lever.lines == one(whole).lines
    said = "Left out: 2 results of this run whose M, N or K is no size."
    assert [*notes(lever)] == [*notes(one(whole)), said]


def test_a_damaged_size_breaks_no_report() -> None:
    rows = [
        *curve(),
        *[replace(row, params={**row.params, "m": size}) for row, size in zip(curve((1, 2)), ("x", None), strict=True)],
    ]
    document = build(FakeReader(tuple(rows)), ["latest"])
    for text in (render_html(document), render_markdown(document)):
        assert "Left out: 2 results of this run whose M, N or K is no size." in text
    alone = build(FakeReader(tuple(replace(row, params={**row.params, "m": None}) for row in curve())), ["latest"])
    assert "Batch size as a lever" not in render_html(alone)
    assert "Batch size as a lever" not in render_markdown(alone)


def test_another_run_s_damage_is_not_told_with_this_one() -> None:
    other = [replace(row, run="another", params={**row.params, "m": None}) for row in curve((1,))]
    assert one([*curve(), *other]).left_out == 0
