"""The report in a browser, from a file and without a network."""

import pytest

from suite.report.document import build
from suite.report.html import render_html
from tests.report.browsing import NARROW, WIDE, chromium, looking, points_drawn, until
from tests.report.builders import FakeReader, sweep

pytestmark = pytest.mark.browser
PLOT = ".js-plotly-plot path.point"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def rows():
    return sweep()


@pytest.fixture(scope="module")
def address(rows, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render_html(build(FakeReader(tuple(rows)), ["latest"])), encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_it_opens_offline_with_every_point_and_no_complaint(browser, address, rows, width, scheme):
    with looking(browser, width=width, scheme=scheme, offline=True) as (page, complaints):
        page.goto(address)
        page.wait_for_selector(PLOT, state="attached")
        assert points_drawn(page) == [sum(row.outcome == "ok" for row in rows)]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 22, 28)"}[scheme]
        assert complaints == []


def test_no_button_sends_the_figure_anywhere(browser, address):
    with looking(browser) as (page, _):
        page.goto(address)
        page.wait_for_selector(PLOT, state="attached")
        buttons = page.evaluate("[...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)")
        assert "Download plot as a PNG" in buttons
        assert not [title for title in buttons if "hare" in title or "loud" in title or "dit" in title]


def test_the_figure_follows_the_theme_and_keeps_its_points(browser, address, rows):
    with looking(browser) as (page, complaints):
        page.goto(address)
        page.wait_for_selector(PLOT, state="attached")
        page.emulate_media(color_scheme="dark")
        until(page, "document.querySelector('.js-plotly-plot').layout.paper_bgcolor === '#11161c'")
        assert points_drawn(page) == [sum(row.outcome == "ok" for row in rows)]
        assert complaints == []


def test_the_table_sorts_by_value_both_ways_with_failed_cases_last(browser, address, rows):
    with looking(browser) as (page, _):
        page.goto(address)
        heading = page.get_by_role("columnheader", name="Of spec")
        cells = "[...document.querySelectorAll('#results-0 tbody tr')].map(row => row.cells[8]?.dataset.sort ?? '')"
        for direction, descending in (("ascending", False), ("descending", True)):
            heading.get_by_role("button").click()
            assert heading.get_attribute("aria-sort") == direction
            values = page.evaluate(cells)
            known = [float(value) for value in values if value]
            assert known == sorted(known, reverse=descending)
            assert values[len(known) :] == ["", ""]


def test_the_filter_hides_rows_that_lack_a_word(browser, address, rows):
    with looking(browser) as (page, _):
        page.goto(address)
        page.get_by_label("Show only rows with").fill("burst bf16")
        shown = page.locator("#results-0 tbody tr:visible").count()
        assert shown == sum("burst" in row.regime and row.format == "bf16" for row in rows)


def test_the_legend_hides_a_format(browser, address, rows):
    with looking(browser) as (page, _):
        page.goto(address)
        page.wait_for_selector(PLOT, state="attached")
        page.locator(".legendtoggle").first.click()
        kept = sum(row.outcome == "ok" and row.format != "bf16" for row in rows)
        until(page, f"document.querySelectorAll('.js-plotly-plot .points path.point').length < {len(rows)}")
        visible = (
            "gd => gd._fullData.filter(t => t.meta === 'points' && t.visible === true).reduce((n, t) => n + t.x.length, 0)"
        )
        assert page.eval_on_selector(".js-plotly-plot", visible) == kept
