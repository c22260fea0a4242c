"""What a page leaves out of a figure that is made for a telephone: its key, and what a legend does not need."""

import re
from html import escape

import pytest

from dashboard.key import as_text, for_page, rules
from suite.report.curves import Line, curve_figure
from suite.report.figures import key_px, legend_px, roofline_figure
from suite.report.key import GAP
from suite.report.roofs import RoofSet
from suite.report.values import RATE, sized
from tests.report.builders import result

FORMATS = ("bf16", "fp16", "fp32", "fp64", "fp8_e4m3", "int8", "tf32")


def roofline(**fields):
    rows = [result(format=name, **fields) for name in FORMATS]
    return roofline_figure([*rows, result(load="burst")], RoofSet((), ()))


def lines(count):
    rows = (result(k=512), result(k=1024))
    return curve_figure(
        [Line(f"{n}: a name of a line that is long", "#0099fe", rows) for n in range(count)], sized("k", "K"), RATE
    )


def test_the_key_becomes_text_of_the_page_in_whole_paragraphs():
    figure = roofline()
    room = for_page(figure)
    note = figure.layout.annotations[room.annotation]
    assert note.name == "key"
    assert room.key_px == key_px(note.text.split("<br>"))
    text = as_text("x", room)
    paragraphs = [paragraph.replace("\u00a0", " ").split(GAP) for paragraph in figure.layout.meta["key"]["paragraphs"]]
    assert max(map(len, paragraphs)) > 1
    assert re.findall("<span[^>]*>(.*?)</span>", text) == [entry for entries in paragraphs for entry in entries]
    assert text.count("</div>") == len(paragraphs) + 1
    assert GAP not in text  # a line that began with it would stand further in


def test_what_a_store_says_in_a_key_stays_text():
    figure = roofline(cache="<b>cold</b>")
    assert "<b>" not in as_text("x", for_page(figure))
    assert escape("<b>cold</b>") in as_text("x", for_page(figure))


def test_rows_that_a_wide_legend_does_not_need_are_left_over():
    rows = dict(for_page(roofline()).rows)
    assert list(rows) == sorted(rows)
    assert list(rows.values()) == sorted(rows.values())
    reserved, one_row = legend_px(set(FORMATS)), legend_px({"bf16"})
    assert max(rows.values()) == reserved - one_row > 0
    assert min(rows) > 390


def test_a_legend_below_the_key_moves_up_and_the_key_in_files_behind_it():
    before, after = lines(12), lines(12)
    room = for_page(after)
    assert not room.is_above
    legend_height_px = before.layout.legend.y * before.layout.height
    assert after.layout.legend.y * after.layout.height == pytest.approx(legend_height_px + room.key_px)
    moved_px = before.layout.annotations[room.annotation].yshift - after.layout.annotations[room.annotation].yshift
    assert moved_px == pytest.approx(legend_height_px)


def test_a_figure_that_scrolls_keeps_its_key_until_it_has_room():
    room = for_page(roofline())
    always, later = rules("x", room, 0), rules("x", room, 701)
    assert always.startswith(".st-key-x-place")
    assert later == f".x-key {{ display: none; }} @container (min-width: 701px) {{ {always} }}"


def test_a_figure_without_a_key_stays_as_it_is():
    figure = lines(1)
    figure.layout.annotations = ()
    assert for_page(figure) is None
