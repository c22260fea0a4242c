"""The report in a browser, from a file and without a network."""

from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import pytest

from suite.backend import Channel
from suite.jobs.gemm import GemmJob
from suite.report.document import build
from suite.report.html import render_html
from tests.report.browsing import INTERPRETED, NARROW, WIDE, chromium, looking, points_drawn, until
from tests.report.builders import FakeReader, device, failed, result, sweep
from tests.report.recordings import burst, sustained, untimed

pytestmark = pytest.mark.browser
PLOT = ".js-plotly-plot path.point"
BACKGROUNDS = {"light": "#ffffff", "dark": "#11161c"}


@pytest.fixture(scope="module")
def browser():
    with chromium(INTERPRETED) as found:
        yield found


@pytest.fixture(scope="module")
def rows():
    return sweep()


def recorded(row):
    """Bursts in windows, warm results from an older store, the others in one long window."""
    if row.load == "burst":
        return burst(row.p50_s)
    measured = sustained(row.p50_s, 60 * row.p50_s)
    return untimed(measured) if row.cache == "warm" else measured


@pytest.fixture(scope="module")
def address(rows, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    reader = FakeReader(tuple(rows), measured=recorded)
    file.write_text(render_html(build(reader, ["latest"])), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def window(browser, address):
    """The report in a window without a network: opened once for all tests that look at it there, and as it was then."""
    with ExitStack() as open_pages:

        @cache
        def opened_once(width, scheme):
            look = open_pages.enter_context(looking(browser, width=width, scheme=scheme, offline=True))
            look.page.goto(address)
            return look

        def as_opened(width, scheme):
            look = opened_once(width, scheme)
            restore(look.page, width, scheme)
            return look

        yield as_opened


def restore(page, width, scheme):
    """Close and show again what another test has opened and hidden; the order of rows stays."""
    page.get_by_label("Show only rows with").fill("")
    page.evaluate("document.querySelectorAll('button.case[aria-expanded=true]').forEach(button => button.click())")
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.locator(".scroll:has(#results-0)").evaluate("scroll => scroll.scrollLeft = 0")
    until(page, f"innerWidth === {width} && document.querySelectorAll('{PLOT}').length > 0")
    until(page, f"document.querySelector('.js-plotly-plot').layout.paper_bgcolor === '{BACKGROUNDS[scheme]}'")
    drawn = "Math.abs(plot.querySelector('.main-svg').clientWidth - plot.clientWidth) < 3"
    until(page, f"(plot => {drawn})(document.querySelector('.plot'))")


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (WIDE, "light"),
        (NARROW, "dark"),
        *(pytest.param(*each, marks=pytest.mark.thorough) for each in ((WIDE, "dark"), (NARROW, "light"))),
    ],
)
def test_it_opens_offline_with_every_point_and_no_complaint(window, rows, width, scheme):
    page, complaints = window(width, scheme)
    assert points_drawn(page) == [sum(row.outcome == "ok" for row in rows)]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 22, 28)"}[scheme]
    assert complaints == []


def test_no_button_sends_the_figure_anywhere(window):
    page, _ = window(WIDE, "light")
    buttons = page.evaluate("[...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)")
    assert "Download plot as a PNG" in buttons
    assert not [title for title in buttons if "hare" in title or "loud" in title or "dit" in title]


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_a_ladder_that_is_opened_is_drawn_in_its_width_with_every_number(browser, tmp_path, width, scheme):
    formats = {"bf16": 2e-3, "fp8_e4m3": 0.037, "mxfp4": 0.16, "int8": None}
    rows = tuple(
        result(m, format=name, quantisation_error=error, regime=regime)
        for m in (1, 4096)
        for regime in ("", "warm/sustained/device")
        for name, error in formats.items()
    )
    (tmp_path / "ladder.html").write_text(render_html(build(FakeReader(rows), ["latest"])), encoding="utf-8")
    with looking(browser, width=width, scheme=scheme, offline=True) as (page, complaints):
        page.goto((tmp_path / "ladder.html").as_uri())
        page.wait_for_selector("#ladder-0-0 path.point", state="attached")
        assert page.locator("#ladder-0-1 path.point").count() == 0
        page.locator("details.rungs > summary").nth(1).click()
        page.wait_for_selector("#ladder-0-1 path.point", state="attached")
        for place in ("#ladder-0-0", "#ladder-0-1"):
            assert page.locator(f"{place} path.point").count() == 3
            assert page.locator(f"{place} .annotation-arrow-g").count() == 3
            drawn, frame = (page.locator(each).bounding_box()["width"] for each in (f"{place} .main-svg >> nth=0", place))
            assert drawn == pytest.approx(frame, abs=2)
            assert page.evaluate(f"document.querySelector('{place}').layout.paper_bgcolor") == BACKGROUNDS[scheme]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate(
            "number => document.querySelector('#ladder-0-1').emit('plotly_click', {points: [{customdata: number}]})",
            rows[4].result_id,
        )
        assert page.evaluate("document.activeElement.dataset.case") == str(rows[4].result_id)
        assert complaints == []


KEY = """place => {
    const figure = document.querySelector(place);
    const index = figure.layout.annotations.findIndex(({ name }) => name === "key");
    const at = figure.querySelector(`.annotation[data-index="${index}"] .annotation-text-g`).getBoundingClientRect();
    const frame = figure.getBoundingClientRect();
    return {
        text: figure.layout.annotations[index].text.replaceAll("\u00a0", " "),
        over: at.right - frame.right, below: at.bottom - frame.bottom, share: at.width / frame.width,
    };
}"""


def test_a_key_takes_the_width_that_its_figure_has(browser, tmp_path):
    rows = tuple(result(m, format=name, quantisation_error=0.01) for m in (1, 4096) for name in GemmJob.formats)
    (tmp_path / "ladder.html").write_text(render_html(build(FakeReader(rows), ["latest"])), encoding="utf-8")
    with looking(browser, offline=True) as (page, complaints):
        page.goto((tmp_path / "ladder.html").as_uri())
        page.wait_for_selector("#ladder-0-0 path.point", state="attached")
        found = {}
        for width in (WIDE, NARROW, WIDE):
            page.set_viewport_size({"width": width, "height": 900})
            is_wide = width == WIDE
            until(page, f"(({KEY})('#ladder-0-0').share > 0.6 && innerWidth === {width}) && "
                  f"({KEY})('#ladder-0-0').text.split('<br>').length {'<' if is_wide else '>'} 5")  # fmt: skip
            for place in ("#ladder-0-0", "#plot-0"):
                key = page.evaluate(KEY, place)
                assert key["over"] < 0
                assert -40 < key["below"] < 0  # neither cut off nor over a hole
                words = " ".join(key["text"].replace("<br>", " ").split())
                assert found.setdefault(place, words) == words
        assert "3 tf32" in found["#ladder-0-0"]
        assert complaints == []


def test_the_figure_follows_the_theme_and_keeps_its_points(window, rows):
    page, complaints = window(WIDE, "light")
    page.emulate_media(color_scheme="dark")
    until(page, "document.querySelector('.js-plotly-plot').layout.paper_bgcolor === '#11161c'")
    assert points_drawn(page) == [sum(row.outcome == "ok" for row in rows)]
    assert complaints == []


def test_the_table_sorts_by_value_both_ways_with_failed_cases_last(window, rows):
    page, _ = window(WIDE, "light")
    heading = page.locator("#results-0").get_by_role("columnheader", name="Of spec")
    cells = "[...document.querySelectorAll('#results-0 tbody tr:not(.failed)')].map(row => row.cells[2].dataset.sort)"
    for direction, descending in (("ascending", False), ("descending", True)):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == direction
        values = page.evaluate(cells)
        assert list(map(float, values)) == sorted(map(float, values), reverse=descending)
        last = page.evaluate("[...document.querySelectorAll('#results-0 tbody tr')].slice(-2).map(row => row.className)")
        assert last == ["failed", "failed"]
    page.locator("#results-0").get_by_role("columnheader", name="Bound").get_by_role("button").click()
    classes = page.evaluate("[...document.querySelectorAll('#results-0 tbody tr')].map(row => row.className)")
    assert classes.index("failed") == sorted(row.bound or row.outcome for row in rows).index("incorrect")


def opened(page, regime="cold/sustained/device", at=0):
    """Open one case of a regime with the keyboard; its button."""
    button = page.locator("tr", has_text=regime).locator("button.case").nth(at)
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".case-plot path.point", state="attached")
    return button


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_a_case_opens_by_keyboard_into_its_figure_and_closes_again(window, width, scheme):
    page, complaints = window(width, scheme)
    button = opened(page)
    assert button.get_attribute("aria-expanded") == "true"
    plot = page.locator(".case-plot:visible")
    assert plot.count() == 1
    assert plot.bounding_box()["width"] <= width
    assert page.evaluate("document.querySelector('.case-plot')._fullLayout.paper_bgcolor") == BACKGROUNDS[scheme]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    caption = page.locator(".floors caption")
    assert caption.inner_text().startswith(("compute bound", "memory bound"))
    caption.evaluate("caption => { caption.textContent = 'a verdict '.repeat(14) }")
    assert width < WIDE or caption.bounding_box()["height"] < 40  # one line, however narrow the table under it
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("Enter")
    assert page.locator(".case-detail").count() == 0
    assert button.get_attribute("aria-expanded") == "false"
    assert complaints == []


def test_windows_are_not_joined_and_samples_without_times_have_an_axis_of_their_own(window):
    page, complaints = window(WIDE, "light")
    button = opened(page, "cold/burst/device")
    read = "(() => {const gd = document.querySelector('.case-plot'); return [gd.data[0].x, gd.layout.shapes]})()"
    x, shapes = page.evaluate(read)
    assert x.count(None) == 4
    assert len([shape for shape in shapes if shape["type"] == "rect"]) == 4
    button.click()
    opened(page, "warm/sustained/device")
    assert page.locator(".case-plot:visible").count() == 2
    assert "does not say when" in page.locator(".case-body").inner_text()
    assert complaints == []


def test_an_open_case_follows_the_theme_its_row_and_the_filter(window):
    page, complaints = window(WIDE, "light")
    opened(page, at=3)
    page.emulate_media(color_scheme="dark")
    until(page, "document.querySelector('.case-plot')._fullLayout.paper_bgcolor === '#11161c'")
    page.locator("#results-0").get_by_role("columnheader", name="Time").get_by_role("button").click()
    row = "document.querySelector('button[aria-expanded=true]').closest('tr')"
    assert page.evaluate(f"{row}.nextElementSibling.className") == "case-detail"
    page.get_by_label("Show only rows with").fill("no such word")
    assert page.locator(".case-detail:visible").count() == 0
    assert complaints == []


def test_a_point_of_the_roofline_opens_its_case(window, rows):
    page, _ = window(WIDE, "light")
    page.evaluate(
        "number => document.querySelector('.plot').emit('plotly_click', {points: [{customdata: number}]})",
        rows[4].result_id,
    )
    assert page.evaluate("document.activeElement.dataset.case") == str(rows[4].result_id)
    assert page.locator(".case-plot:visible").count() == 1


def test_a_table_says_that_it_goes_on_only_where_it_does(window):
    frame = "document.querySelector('.frame:has(#results-0)').classList"
    page, _ = window(NARROW, "dark")
    hint = page.locator(".frame:has(#results-0) > .hint")
    until(page, f"{frame}.contains('more')")
    assert hint.is_visible()
    page.locator(".scroll:has(#results-0)").evaluate("scroll => scroll.scrollLeft = 10000")
    until(page, f"!{frame}.contains('more')")
    assert 0 <= page.locator("#results-0 tbody th").first.bounding_box()["x"] < NARROW / 4
    page.set_viewport_size({"width": 1700, "height": 900})
    until(page, f"!{frame}.contains('wide')")
    assert not hint.is_visible()


def test_on_a_telephone_a_name_has_a_line_of_its_own_over_its_figures(window):
    """Names broke inside of numbers, and each row took five or six lines."""
    page, _ = window(NARROW, "dark")
    rows = page.locator("#results-0 > tbody > tr:not(.failed)")
    name, time, spec, bound = (rows.first.locator(f":scope > :nth-child({place})").bounding_box() for place in (1, 2, 3, 4))
    assert name["width"] > NARROW * 0.9
    assert name["y"] + name["height"] <= time["y"] == spec["y"] == bound["y"]
    assert bound["x"] + bound["width"] <= NARROW
    heads = page.locator("#results-0 > thead th:nth-child(3)").bounding_box()
    assert heads["x"] == spec["x"]
    lines = rows.evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height / 18)")
    assert sorted(lines)[len(lines) // 2] <= 4  # name, format and regime, figures
    which = rows.first.locator("th").evaluate("name => getComputedStyle(name, '::after').content")
    assert which == '"fp64, cold/sustained/device"'
    page.get_by_label("Show only rows with").fill("burst bf16")
    assert 0 < page.locator("#results-0 > tbody > tr:visible").count() < len(lines)


def test_long_names_break_nothing(browser, tmp_path):
    long = replace(device().info, name="N" * 200, driver="d" * 200)
    measured = sustained(1e-3, 0.1)
    named = Channel("", (0.0, 0.05), (1.0, 0.0))
    measured = replace(measured, telemetry={**measured.telemetry, f"throttle.{'<b>' + 'r' * 200}": named})
    rows = (result(device="N" * 200, implementation="i" * 200, throttle="t" * 200), failed("error", "e" * 500))
    reader = FakeReader(rows, device_rows=(device(info=long),), measured=lambda row: measured)
    (tmp_path / "long.html").write_text(render_html(build(reader, ["latest"])), encoding="utf-8")
    with looking(browser, width=NARROW) as (page, complaints):
        page.goto((tmp_path / "long.html").as_uri())
        opened(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
        assert "<b>rrr" in page.locator(".case-plot").first.inner_text()
        assert complaints == []


def test_the_filter_hides_rows_that_lack_a_word(window, rows):
    page, _ = window(WIDE, "light")
    page.get_by_label("Show only rows with").fill("burst bf16")
    shown = page.locator("#results-0 tbody tr:visible").count()
    assert shown == sum("burst" in row.regime and row.format == "bf16" for row in rows)


def below_the_edge(page):
    """By how many pixels the words of each figure go beyond its place."""
    return page.evaluate(
        """[...document.querySelectorAll('.js-plotly-plot')].map((gd) => {
            const edge = gd.getBoundingClientRect().bottom;
            const words = [...gd.querySelectorAll('.annotation-text')];
            return Math.max(...words.map((each) => each.getBoundingClientRect().bottom - edge));
        })"""
    )


@pytest.mark.parametrize("narrowed", [True, False])
def test_on_a_telephone_and_in_a_window_that_became_narrow_no_note_is_cut_and_no_button_on_the_legend(window, narrowed):
    page, _ = window(WIDE if narrowed else NARROW, "light" if narrowed else "dark")
    if narrowed:
        page.set_viewport_size({"width": NARROW, "height": 900})
        until(page, f"document.querySelector('.js-plotly-plot .main-svg').clientWidth <= {NARROW}")
    until(page, "document.querySelectorAll('.annotation-text').length > 0")
    assert max(below_the_edge(page)) <= 0
    bar, legend = (page.locator(f".js-plotly-plot {name}").first.bounding_box() for name in (".modebar", ".legend .traces"))
    assert bar["y"] + bar["height"] <= legend["y"] + 2


def test_the_legend_hides_a_format(window, rows):
    page, _ = window(WIDE, "light")
    shown = points_drawn(page)
    page.locator(".legendtoggle").first.click()
    kept = sum(row.outcome == "ok" and row.format != "bf16" for row in rows)
    until(page, f"document.querySelectorAll('#plot-0 .points path.point').length < {len(rows)}")
    visible = "gd => gd._fullData.filter(t => t.meta === 'points' && t.visible === true).reduce((n, t) => n + t.x.length, 0)"
    assert page.eval_on_selector(".js-plotly-plot", visible) == kept
    page.locator(".legendtoggle").first.click()
    until(page, f"document.querySelectorAll('#plot-0 .points path.point').length >= {sum(shown)}")
    assert points_drawn(page) == shown
