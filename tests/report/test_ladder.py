"""The precision ladder: which shapes have one, what its lines say, and that the report and its figure show the same."""

import math
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.jobs.gemm import GemmJob
from suite.report.document import build
from suite.report.html import render_html
from suite.report.labels import WIDTHS_PX, Place, offsets
from suite.report.ladder import Ladder, ladders
from suite.report.ladder_columns import columns
from suite.report.ladder_figure import drawn, ladder_figure
from suite.report.markdown import render_markdown
from suite.report.palette import FAMILIES, INKS, OTHER_REGIME_SYMBOL, REGIME_SYMBOLS, format_colour, themed
from suite.report.speed import Speed
from suite.rows import ResultRow
from tests.report.builders import FakeReader, failed, result
from tests.report.pages import Page

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
FP8 = {"accumulate": "fp32", "scaling": "tensor"}
BY_ROW = {"accumulate": "fp32", "scaling": "row"}


def rungs() -> list[ResultRow]:
    """One shape on two kinds of data: bf16 native, fp8 in two scalings, mxfp4 emulated, int8 exact, nvfp4 not offered."""
    made = []
    for data, worse in (("normal", 1.0), ("outliers", 3.0)):
        made += [
            result(distribution=data, quantisation_error=2.3e-3, p50_s=4e-4, interval_s=(3.99e-4, 4.01e-4)),
            result(
                format="fp8_e4m3", semantics=FP8, distribution=data, quantisation_error=3.7e-2 * worse, p50_s=2e-4,
                interval_s=(1.99e-4, 2.02e-4), energy_j=0.1,
            ),
            result(
                format="fp8_e4m3", semantics=BY_ROW, distribution=data, quantisation_error=3.6e-2, p50_s=2.5e-4,
                interval_s=(2.5e-4, 2.5e-4),
            ),
            result(format="mxfp4", distribution=data, quantisation_error=0.16, execution="emulated", pipe="bf16", p50_s=8e-4),
            result(format="int8", distribution=data, p50_s=2e-4),
            failed("unsupported", "no unit for nvfp4", format="nvfp4", distribution=data),
        ]  # fmt: skip
    return made


def one(rows: list[ResultRow]) -> Ladder:
    (found,) = ladders(rows)
    return found


def texts(ladder: Ladder) -> list[dict[str, str]]:
    return [{column.title: column.text(rung) for column in columns(ladder)} for rung in ladder.rungs]


def test_two_formats_of_a_shape_are_no_ladder_and_two_scalings_count_as_two() -> None:
    pair = [result(), result(format="fp8_e4m3", semantics=FP8)]
    assert ladders(pair) == ()
    assert ladders([*pair, failed("unsupported", "no", format="nvfp4")]) == ()
    assert len(one([*pair, result(format="fp8_e4m3", semantics=BY_ROW)]).rungs) == 3


def test_each_shape_and_regime_of_a_run_has_a_ladder_of_its_own_the_largest_shape_first() -> None:
    formats = ("bf16", "fp16", "fp32")
    rows = [
        result(m, format=name, regime=regime) for m in (1, 64) for regime in ("", "warm/sustained/device") for name in formats
    ]
    rows += [result(2, format=name) for name in (*formats, "fp64")]
    rows += [replace(row, run="another") for row in rows[:3]]
    found = ladders(rows)
    assert [len(ladder.rungs) for ladder in found] == [3, 3, 4, 3, 3, 3]
    assert [ladder.rungs[0].row.params["m"] for ladder in found] == [64, 64, 2, 1, 1, 1]


def test_of_the_regimes_of_a_shape_the_one_of_most_formats_comes_first() -> None:
    rows = [result(format=name, regime="cold/burst/device") for name in ("bf16", "fp16", "fp32")]
    rows += [result(format=name) for name in ("bf16", "fp16", "fp32", "fp64")]
    assert [ladder.regime for ladder in ladders(rows)] == ["cold/sustained/device", "cold/burst/device"]
    small = [result(8, 8, 8, format=row.format) for row in rows]
    page = Page(render_html(build(FakeReader((*small, *rows)), ["latest"])))
    (opened,) = (index for index in page.find("details", **{"class": "rungs"}) if "open" in page.elements[index][1])
    assert page.text(opened).startswith("gemm 4096x4096x4096, cold/sustained/device: 4 formats")


def test_a_ladder_holds_one_kind_of_evidence() -> None:
    both = [*rungs(), *(replace(row, evidence="simulated") for row in rungs())]
    found = ladders(both)
    assert len(found) == 2
    assert all(len({rung.row.evidence for rung in each.rungs}) == 1 for each in found)


def test_a_rung_has_one_line_however_many_kinds_of_data_it_was_measured_on() -> None:
    ladder = one(rungs())
    assert [rung.name for rung in ladder.rungs] == ["bf16", "fp8_e4m3", "fp8_e4m3 row", "mxfp4", "int8"]
    assert [rung.number for rung in ladder.rungs] == [1, 2, 3, 4, 5]
    assert {rung.row.distribution for rung in ladder.rungs} == {"normal"}
    assert ladder.rungs[1].errors == pytest.approx({"normal": 3.7e-2, "outliers": 0.111})
    assert ladder.note == "Rates on normal data; the fastest bf16 is by library. Without a rate: nvfp4 (unsupported)."


def test_a_line_says_what_the_format_gives_and_costs() -> None:
    by_name = {line["Format"]: line for line in texts(one(rungs()))}
    fp8 = by_name["fp8_e4m3"]
    assert fp8["Over bf16"].startswith("2 (1.9")
    assert (fp8["Error, normal"], fp8["Error, outliers"]) == ("3.7e-02", "1.1e-01")
    assert fp8["Per joule"] == "1.37 TFLOP/J"
    assert by_name["fp8_e4m3 row"]["Per joule"] == "–"
    assert by_name["mxfp4"]["Execution"] == "emulated, bf16 pipe"
    assert by_name["mxfp4"]["Marks"] == ""
    assert by_name["int8"]["Error, normal"] == "–"
    assert by_name["bf16"]["Over bf16"] == "1"
    assert by_name["mxfp4"]["Time"].startswith("800.0 µs ± ")
    assert "By" not in fp8


def test_columns_that_no_rung_fills_are_left_out() -> None:
    rows = [replace(row, quantisation_error=None, energy_j=None) for row in rungs() if row.format != "bf16"]
    titles = {column.title for column in columns(one(rows))}
    assert titles == {"Format", "Time", "Rate", "Of spec", "Bound", "Execution", "Marks"}


def test_the_baseline_is_the_fastest_bf16_on_the_same_data_that_is_not_in_doubt() -> None:
    rows = [
        result(p50_s=4e-4),
        result(p50_s=3e-4, implementation="triton"),
        result(p50_s=1e-4, implementation="triton_tuned", contended=True),
        result(p50_s=2e-4, distribution="zeros"),
        result(p50_s=6e-4, format="fp16"),
        result(p50_s=6e-4, format="fp32", distribution="zeros"),
    ]
    ladder = one(rows)
    times = {(rung.name, rung.row.implementation): rung.speed.times for rung in ladder.rungs if rung.speed}
    assert times["fp16", "library"] == pytest.approx(0.5)
    assert times["fp32", "library"] == pytest.approx(1 / 3)  # against the bf16 that had zeros too
    assert times["bf16", "triton"] == 1.0
    assert ladder.baseline is not None
    assert ladder.baseline.implementation == "triton"
    assert {line["By"] for line in texts(ladder)} == {"library, cuda", "triton, cuda", "triton_tuned, cuda"}


def test_ratios_to_a_contended_base_say_so_wherever_they_stand() -> None:
    base = result(p50_s=5.86e-4, contended=True)
    ladder = one([base, result(p50_s=1e-4, format="int8"), result(p50_s=3e-4, format="fp16")])
    assert "that bf16 is contended, so that every ratio to it is in doubt" in ladder.note
    assert "Over bf16" in texts(ladder)[0]  # what qualifies it is in the sentence above
    figure = ladder_figure(one([replace(rung.row, quantisation_error=1e-2) for rung in ladder.rungs]))
    assert figure is not None
    assert figure.layout.yaxis.title.text == "Speed (bf16 = 1)"
    assert "contended" in " ".join(note.text for note in figure.layout.annotations).replace("\xa0", " ")


def test_a_clean_base_of_another_run_comes_before_a_contended_one() -> None:
    rows = [
        result(p50_s=5.86e-4, contended=True, run="new"),
        result(p50_s=1e-4, format="int8", run="new"),
        result(p50_s=3e-4, format="fp16", run="new"),
        result(p50_s=2.11e-4, run="old"),
    ]
    (ladder,) = ladders(rows)
    assert ladder.run == "new"
    assert {rung.name: round(rung.speed.times, 2) for rung in ladder.rungs if rung.speed}["int8"] == 2.11
    assert ladder.base_doubt == ""
    assert "the fastest bf16 is by library in run old" in ladder.note


TOKEN = {"accumulate": "fp32", "scaling": "token"}
CACHE = {"num_q_heads": 8, "num_kv_heads": 2, "head_dim": 64, "v_head_dim": 64, "batch": 2, "q_len": 1, "kv_len": 512}


def decoded(fmt: str, p50_s: float, activation: str = "", **fields) -> ResultRow:
    """A decode step over a cache of ``fmt``; one of 8 bits names the type of its queries."""
    params = {**CACHE, **({"activation": activation} if activation else {})}
    return result(job="decode", format=fmt, params=params, p50_s=p50_s, pipe=activation or fmt, bound="memory", **fields)


def caches(**fields) -> list[ResultRow]:
    """Both 16-bit caches, and those of 8 bits beside queries of either type."""
    return [
        decoded("bf16", 4e-4, **fields),
        decoded("fp16", 6e-4, **fields),
        *(decoded(fmt, 2e-4, activation, semantics=how, **fields)
          for fmt in ("fp8_e4m3", "int8") for how in (FP8, TOKEN) for activation in ("bf16", "fp16")),
    ]  # fmt: skip


def test_what_a_quantised_cache_gains_is_over_a_cache_of_the_type_of_its_queries() -> None:
    """Ladders of ``activation=bf16`` held fp8 and int8 alone: workloads over bf16 name no type of queries."""
    found = {ladder.base: ladder for ladder in ladders(caches())}
    assert {base: ladder.shape for base, ladder in found.items()} == {
        base: f"decode 8/2x64 2x1/512 activation={base}" for base in ("bf16", "fp16")
    }
    quantised = ["fp8_e4m3", "fp8_e4m3 token", "int8 tensor", "int8 token"]
    for base, times in (("bf16", 2.0), ("fp16", 3.0)):
        assert [rung.name for rung in found[base].rungs] == [base, *quantised]
        assert [rung.speed.times for rung in found[base].rungs if rung.speed] == pytest.approx([1.0, *[times] * 4])
        assert texts(found[base])[1][f"Over {base}"].startswith(f"{times:.3g} (")
        assert found[base].note == f"Rates on normal data; the fastest {base} is by library."
    page = render_markdown(build(FakeReader(tuple(caches())), ["latest"])).replace("\\", "")
    assert "decode 8/2x64 2x1/512 activation=fp16, cold/sustained/device: 5 formats" in page
    assert "| Format | Over fp16 |" in page


def test_the_figure_of_a_ladder_over_fp16_says_so() -> None:
    found = {ladder.base: ladder_figure(ladder) for ladder in ladders(caches(quantisation_error=1e-2))}
    assert found["fp16"].layout.yaxis.title.text == "Speed (fp16 = 1)"


def test_a_base_of_another_run_that_has_no_quantised_cache_is_found() -> None:
    rows = [row for row in caches(run="new") if row.format not in ("bf16", "fp16")]
    found = {ladder.base: ladder for ladder in ladders([*rows, decoded("bf16", 4e-4, run="old")])}
    assert "the fastest bf16 is by library in run old" in found["bf16"].note
    assert found["fp16"].baseline is None


def test_caches_in_their_own_types_stay_one_ladder_and_no_unknown_format_or_other_job_is_joined() -> None:
    own = [decoded(fmt, 1e-3) for fmt in ("bf16", "fp16", "fp32")]
    assert [rung.name for rung in one([*own, decoded(EVIL, 1e-3)]).rungs] == ["bf16", "fp16", "fp32", EVIL]
    assert {ladder.shape: len(ladder.rungs) for ladder in ladders([*own, *caches()[2:]])} == {
        "decode 8/2x64 2x1/512": 3,
        "decode 8/2x64 2x1/512 activation=bf16": 5,
        "decode 8/2x64 2x1/512 activation=fp16": 5,
    }
    others = [replace(row, job="decode_step") for row in caches()]
    assert all(rung.row.format not in ("bf16", "fp16") for ladder in ladders(others) for rung in ladder.rungs)


def test_switches_are_named_only_where_they_tell_two_rungs_apart() -> None:
    fast = [result(format="fp8_e4m3", semantics=FP8, switches={"fp8_fast_accum": on}) for on in (True, False)]
    assert [rung.name for rung in one([*rungs()[:1], *fast, result(format="fp16", switches={"x": 1})]).rungs] == [
        "bf16",
        "fp8_e4m3 fp8_fast_accum=True",
        "fp8_e4m3 fp8_fast_accum=False",
        "fp16",
    ]


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.floats(1e-6, 1e-2)] * 2), st.tuples(*[st.floats(0, 0.5)] * 4))
def test_the_interval_of_a_speed_holds_it_and_is_no_wider_than_both_medians_ends(medians, shares) -> None:
    base = result(p50_s=medians[0], interval_s=(medians[0] * (1 - shares[0]), medians[0] * (1 + shares[1])))
    other = result(format="fp16", p50_s=medians[1], interval_s=(medians[1] * (1 - shares[2]), medians[1] * (1 + shares[3])))
    ladder = one([base, other, result(format="fp32")])
    times, interval = ladder.rungs[1].speed or Speed(0.0, None)
    assert interval is not None
    assert times == pytest.approx(medians[0] / medians[1])
    low, high = interval
    assert low <= times * (1 + 1e-12)
    assert high >= times * (1 - 1e-12)
    assert low >= base.interval_s[0] / other.interval_s[1] * (1 - 1e-9)
    assert high <= base.interval_s[1] / other.interval_s[0] * (1 + 1e-9)


def test_the_interval_of_a_speed_is_that_of_a_difference_of_logarithms() -> None:
    rows = [
        result(p50_s=1e-3, interval_s=(1e-3 / 1.03, 1.03e-3)),
        result(format="fp16", p50_s=1e-3, interval_s=(1e-3 / 1.04, 1.04e-3)),
    ]
    (_, rung, _) = one([*rows, result(format="fp32")]).rungs
    together = math.exp(math.hypot(math.log(1.03), math.log(1.04)))
    assert rung.speed is not None
    assert rung.speed.interval == pytest.approx((1 / together, together))


@pytest.mark.parametrize("interval", [None, (-1e-4, 8e-4), (0.0, 8e-4)])
def test_without_two_resolved_medians_a_speed_has_no_interval(interval) -> None:
    rows = [result(p50_s=4e-4), result(format="fp16", p50_s=4e-4, interval_s=interval), result(format="fp32")]
    ladder = one(rows)
    assert ladder.rungs[1].speed == Speed(1.0, None)
    assert texts(ladder)[1]["Over bf16"] == "1 ± not resolved"


def test_the_figure_has_a_point_for_each_rung_with_an_error_filled_where_it_is_native() -> None:
    ladder = one(rungs())
    figure = ladder_figure(ladder)
    points = {number: (x, y, trace.marker.symbol, trace.marker.color) for trace in figure.data
              for number, x, y in zip(trace.customdata, trace.x, trace.y, strict=True)}  # fmt: skip
    assert [rung.name for rung in drawn(ladder)] == ["bf16", "fp8_e4m3", "fp8_e4m3 row", "mxfp4"]
    assert points == {
        rung.row.result_id: (
            rung.error,
            rung.speed.times,
            "triangle-right-open" if rung.name == "mxfp4" else "circle",
            format_colour(rung.row.format),
        )
        for rung in drawn(ladder)
        if rung.speed
    }
    numbers = [note.text for note in figure.layout.annotations if note.showarrow]
    assert numbers == ["1", "2", "3", "4"]
    key = " ".join(note.text for note in figure.layout.annotations if not note.showarrow).replace("\u00a0", " ")
    for said in (
        "1 bf16",
        "3 fp8_e4m3 row",
        "hollow: emulated",
        "● other formats",
        "▶ microscaled (mx, nvfp4)",
        "across: normal, outliers data",
        "no quantisation error: int8",
    ):
        assert said in key


def test_bars_reach_from_the_least_error_to_the_most_and_along_the_interval() -> None:
    ladder = one(rungs())
    trace = next(trace for trace in ladder_figure(ladder).data if ladder.rungs[1].row.result_id in trace.customdata)
    at = trace.customdata.index(ladder.rungs[1].row.result_id)
    assert trace.x[at] + trace.error_x.array[at] == pytest.approx(0.111)
    assert trace.error_x.arrayminus[at] == 0.0
    low, high = ladder.rungs[1].speed.interval
    assert trace.y[at] - trace.error_y.arrayminus[at] == pytest.approx(low)
    assert trace.y[at] + trace.error_y.array[at] == pytest.approx(high)


def test_the_regime_has_the_symbol_that_it_has_in_the_roofline_where_a_format_has_its_own_colour() -> None:
    warm = [replace(row, cache="warm", load="burst") for row in rungs()]
    symbols = {
        trace.marker.color: trace.marker.symbol for trace in ladder_figure(one([r for r in warm if r.format != "mxfp4"])).data
    }
    assert set(symbols.values()) == {REGIME_SYMBOLS["warm", "burst", "device"]}


@pytest.mark.parametrize("theme", INKS)
def test_no_two_formats_of_a_figure_differ_by_less_than_colour_or_shape(theme) -> None:
    rows = [result(format=name, quantisation_error=0.01, execution="emulated") for name in GemmJob.formats]
    looks = {(trace.marker.color, trace.marker.symbol.removesuffix("-open")) for trace in ladder_figure(one(rows), theme).data}
    assert len(looks) == len(rows)
    assert not [shape for _, shape in looks if "dot" in shape]
    shapes = {family.symbol for family in FAMILIES}
    assert not shapes & {*REGIME_SYMBOLS.values(), OTHER_REGIME_SYMBOL}


def test_without_bf16_the_figure_is_of_rates() -> None:
    ladder = one([row for row in rungs() if row.format != "bf16"])
    figure = ladder_figure(ladder)
    assert sorted(y for trace in figure.data for y in trace.y) == sorted(rung.row.flop_s for rung in drawn(ladder))
    assert figure.layout.yaxis.title.text.startswith("Rate")


def test_fewer_than_two_errors_make_no_figure() -> None:
    rows = [replace(row, quantisation_error=None) if row.format != "bf16" else row for row in rungs()]
    assert ladder_figure(one(rows)) is None
    page = Page(render_html(build(FakeReader(tuple(rows)), ["latest"])))
    assert len(page.figures) == 1


def test_themes_differ_in_colours_only() -> None:
    light, dark = (ladder_figure(one(rungs()), theme) for theme in INKS)
    assert light.layout.paper_bgcolor != dark.layout.paper_bgcolor
    assert [themed(trace.marker.color, INKS["dark"]) for trace in light.data] == [trace.marker.color for trace in dark.data]
    assert [(trace.x, trace.y) for trace in light.data] == [(trace.x, trace.y) for trace in dark.data]


def test_hostile_text_is_never_markup() -> None:
    rows = [replace(row, implementation=EVIL, distribution=EVIL) for row in rungs()]
    rows += [result(format=EVIL, semantics={"scaling": EVIL}, switches={EVIL: EVIL}, quantisation_error=0.1, distribution=EVIL)]
    figure = ladder_figure(one(rows))
    shown = [note.text for note in figure.layout.annotations] + [text for trace in figure.data for text in trace.hovertext]
    assert any("&lt;script" in text for text in shown)
    assert not [text for text in shown if "<script" in text or "<img" in text]
    page = Page(render_html(build(FakeReader(tuple(rows)), ["latest"])))
    assert page.find("img") == []


PLACES = st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)).map(lambda at: Place(*at)), min_size=1, max_size=26)


def boxes(labels, places, found, width, height=420):
    """The middle of each label on a plot of this width, and its size."""
    return [
        (place.x * width + offset.x, place.y * height + offset.y, 7 * len(label), 12)
        for label, place, offset in zip(labels, places, found, strict=True)
    ]


def meet(one_box, other):
    return all(abs(a - b) < (c + d) / 2 for a, b, c, d in zip(one_box[:2], other[:2], one_box[2:], other[2:], strict=True))


def test_labels_of_crowded_points_do_not_cover_each_other_on_any_screen() -> None:
    places = [Place(0.6 + 0.01 * (index % 4), 0.4 + 0.012 * (index // 4)) for index in range(16)]
    labels = [str(index + 1) for index in range(16)]
    found = offsets(labels, places, 420)
    for width in WIDTHS_PX:
        assert not [pair for pair in combinations(boxes(labels, places, found, width), 2) if meet(*pair)], width


@settings(max_examples=30, deadline=None)
@given(PLACES)
def test_every_point_has_a_label_near_it(places) -> None:
    found = offsets([str(index) for index in range(len(places))], places, 420)
    assert len(found) == len(places)
    assert all(12 < math.hypot(*offset) < 55 for offset in found)


def test_the_page_and_the_text_have_the_same_lines() -> None:
    document = build(FakeReader(tuple(rungs())), ["latest"])
    page, markdown = Page(render_html(document)), render_markdown(document)
    (table,) = page.find("table", **{"class": "results ladder sortable"})
    for line in texts(one(rungs())):
        cells = "| " + " | ".join(text.replace("_", r"\_") for text in line.values()) + " |"
        assert cells in markdown
        assert all(text in page.text(table) for text in line.values())
    assert len(page.figures) == 2
    assert [page.elements[index][1]["id"] for index in page.find("div", **{"class": "plot"})] == ["plot-0", "ladder-0-0"]
    assert page.data["results"][1]["semantics"] == FP8
    assert page.data["results"][1]["quantisation_error"] == pytest.approx(3.7e-2)


def test_a_run_of_one_format_has_no_such_section() -> None:
    document = build(FakeReader((result(), result(m=1))), ["latest"])
    assert "Precision ladder" not in render_html(document)
    assert "Precision ladder" not in render_markdown(document)
