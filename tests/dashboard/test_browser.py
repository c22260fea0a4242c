"""The dashboard as the command starts it, in a real browser: the paths that people take."""

import re

import pytest

from suite.store.browsing import Browser
from suite.store.writer import Store
from tests.dashboard.builders import OLD_UID, other_device
from tests.dashboard.serving import ME, PAGES, settled, unexpected
from tests.dashboard.stores import FITTED_UID
from tests.report.browsing import NARROW, WIDE, looking, points_drawn, until
from tests.store.material import case, planned, record, run_start

pytestmark = pytest.mark.browser


# The middle of the point that others leave the most room, and what it says when it is pointed at: its case in bold first.
ALONE = """() => {
    const figure = document.querySelector('.st-key-roofline .js-plotly-plot');
    const points = figure._fullData.filter((trace) => trace.meta === 'points').flatMap((trace) =>
        [...figure.querySelectorAll(`.trace${trace.uid} path.point`)].map((point, at) => {
            const box = point.getBoundingClientRect();
            return { x: box.x + box.width / 2, y: box.y + box.height / 2, hover: trace.hovertext[at] };
        }));
    const apart = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);
    const room = (one) => Math.min(...points.filter((each) => each !== one).map((each) => apart(one, each)));
    return points.sort((one, other) => room(other) - room(one))[0];
}"""


def test_a_click_on_a_point_shows_its_case_and_its_link_the_same(roofline, folder):
    page, complaints = roofline(WIDE)
    drawn = points_drawn(page)
    rows = Browser.open(str(folder / "results.db")).results(outcome="ok")
    assert drawn == [sum(row.flops > 0 for row in rows)]
    alone = page.evaluate(ALONE)
    case = re.match("<b>(.*?)</b>", alone["hover"])[1]
    page.mouse.click(alone["x"], alone["y"])
    page.wait_for_selector("text=Checks against the reference")
    assert "case=" in page.url
    assert page.get_by_role("heading", name=case, exact=True).count() == 1
    link = page.url
    close_case(page)
    assert unexpected(complaints) == []
    page, complaints = roofline(NARROW, link)
    page.wait_for_selector("text=Checks against the reference")
    assert page.get_by_role("heading", name=case, exact=True).count() == 1
    assert points_drawn(page) == drawn
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
    close_case(page)
    assert unexpected(complaints) == []


def close_case(page):
    page.get_by_role("button", name="Close").click()
    page.wait_for_selector("text=Checks against the reference", state="detached")
    assert "case=" not in page.url


def test_results_appear_while_a_sweep_runs_and_choices_go_along_from_page_to_page(browser, address, folder, tmp_path):
    with Store.open(str(folder / "growing.db")) as store, looking(browser) as (page, complaints):
        with store.start_run(run_start(other_device())) as run:
            run.record(record(planned(case(0))))
            page.goto(f"{address}/?{ME}&device={OLD_UID}&image=SVG")
            found = results_told(page)
            run.record(record(planned(case(1))))
            page.wait_for_selector(f"text=2 devices, {found + 1} results in 3 runs")
        settled(page)
        page.get_by_test_id("stSidebar").get_by_role("combobox", name="Formats").click()
        page.get_by_role("option", name="bf16", exact=True).click()
        until(page, "location.search.includes('format=bf16')")
        page.keyboard.press("Escape")  # the open list hides everything else from who cannot see
        turn_to(page, "Decode")
        until(page, "location.search.includes('format=bf16') && location.search.includes('device=')")
        assert points_drawn(page) == [2]
        turn_to(page, "Attention")
        downloads(page, tmp_path)
        assert unexpected(complaints) == []


def results_told(page):
    """Of two devices, one of which is in a run that goes on."""
    told = page.get_by_text(re.compile(r"2 devices, [\d,]+ results in 3 runs")).first.inner_text()
    return int(re.search(r"([\d,]+) results", told)[1].replace(",", ""))


def turn_to(page, title):
    """By the link of the open page, which keeps what the browser has read."""
    page.get_by_role("link", name=title, exact=True).click()
    page.wait_for_selector(f"h2:has-text('{title}')")
    settled(page)


def downloads(page, folder):
    wanted = {
        "roofbench-attention.svg": lambda: page.locator(".modebar-btn[data-title*='ownload']").first.click(),
        "roofbench-attention.html": lambda: page.get_by_role("button", name="Download this figure as HTML").click(),
        "roofbench.csv": lambda: page.get_by_role("button", name="Download as CSV", exact=True).click(),
        "roofbench.parquet": lambda: page.get_by_role("button", name="Download as Parquet", exact=True).click(),
    }
    found = {}
    for name, act in wanted.items():
        with page.expect_download() as download:
            act()
        assert download.value.suggested_filename == name
        download.value.save_as(folder / name)
        found[name] = (folder / name).read_bytes()
    assert found["roofbench-attention.svg"].startswith(b"<svg")
    assert b"Keys of a sequence" in found["roofbench-attention.svg"]
    assert b"upright" in found["roofbench-attention.svg"]  # its key, which is text of the page beside it
    assert b"plotly.js" in found["roofbench-attention.html"]
    assert found["roofbench.csv"].count(b"\n") == 3
    assert found["roofbench.parquet"].startswith(b"PAR1")


def test_a_store_made_to_do_harm_runs_nothing_and_asks_nobody(browser, address, folder):
    compared = f"compare?b=2+in+{Browser.open(str(folder / 'evil.db')).entries()[-1].run}"
    with looking(browser) as (page, complaints):
        dialogs, asked = [], []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/{compared}")
        settled(page, figure=False)
        for title in ("", "Overview", "GEMM"):
            if title:
                turn_to(page, title)
            page.wait_for_selector("[data-testid=stMain] >> text=alert(1)", state="attached")
            assert page.locator("a[href*='evil']").count() == 0
        assert dialogs == []
        assert [url for url in asked if not url.startswith((address, "data:", "blob:", address.replace("http", "ws")))] == []
        assert unexpected(complaints) == []


def test_cards_are_whole_and_a_heat_map_says_that_it_scrolls_where_it_does_and_its_cells_open_their_cases(browser, address):
    said = "This figure is wider than its place"
    with looking(browser, width=NARROW) as (page, complaints):
        page.goto(f"{address}/?{ME}&job=gemm")
        settled(page)
        cards_are_whole(page)
        assert page.get_by_text(said).first.is_visible()
        place = page.locator(".st-key-standings-place")
        assert place.evaluate("place => place.scrollWidth > place.clientWidth")
        cells = page.locator(".st-key-standings .trace path.point")
        seen = cells.evaluate_all(f"cells => cells.filter(cell => cell.getBoundingClientRect().right < {NARROW}).length")
        assert seen >= 4
        box = cells.first.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector("text=Checks against the reference")
        page.set_viewport_size({"width": WIDE, "height": 900})
        until(page, "!document.querySelector('.standings-hint').checkVisibility()")
        assert unexpected(complaints) == []


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_key_and_legend_of_a_figure_take_the_width_that_there_is_and_leave_no_hole(roofline, width):
    page, complaints = roofline(width)
    page.wait_for_selector(".st-key-roofline .legend .traces", state="attached")
    key = page.locator(".roofline-key")
    assert key.is_visible()
    assert not page.locator('.st-key-roofline .annotation[data-index="0"]').is_visible()
    seen = page.evaluate(
        """() => {
            const box = (name) => document.querySelector(name).getBoundingClientRect();
            const key = box('.roofline-key'), plot = box('.st-key-roofline .xtitle');
            return {
                right: key.right, left: key.left, belowAxis: key.top - plot.bottom,
                aboveLegend: box('.st-key-roofline .legend').top - box('.st-key-roofline .modebar').bottom,
                toButton: box('.st-key-roofline-html').top - key.bottom,
            };
        }"""
    )
    broken = key.evaluate(
        """key => [...key.querySelectorAll('span')].filter((entry) => {
            const words = document.createElement('span');
            words.style.whiteSpace = 'nowrap';
            words.textContent = entry.textContent;
            key.append(words);
            const needed = words.getBoundingClientRect().width;
            words.remove();
            const lines = entry.getBoundingClientRect().height / parseFloat(getComputedStyle(entry).lineHeight);
            return lines > 1.5 && needed < key.clientWidth;
        }).map((entry) => entry.textContent)"""
    )
    assert broken == []
    assert seen["right"] <= width
    assert seen["right"] - seen["left"] > (600 if width == WIDE else 300)
    assert 0 <= seen["belowAxis"] < 60
    assert -10 <= seen["aboveLegend"] < 12  # of boxes, which have margins: words and symbols are apart
    assert 0 <= seen["toButton"] < 40
    with page.expect_download() as found:
        page.get_by_role("button", name="Download this figure as HTML").first.click()
    assert found.value.suggested_filename == "roofbench-roofline.html"
    assert unexpected(complaints) == []


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_every_screen_and_logs_no_error(browser, address, folder, width, scheme, name):
    # Two runs with cases in common, whatever another test has stored since: the newest two may have none.
    runs = [Browser.open(str(folder / store)).entries()[-1].run for store in ("results.db", "growing.db")]
    chosen = "&".join(f"{side}={number}+in+{run}" for side, (number, run) in zip("ab", enumerate(runs), strict=True))
    with looking(browser, width=width, scheme=scheme) as (page, complaints):
        page.goto(f"{address}/{name}?{chosen if name == 'compare' else ME}")
        settled(page, figure=name != "run")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("[data-testid=stException]").count() == 0
        background = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 22, 28)"}[scheme]
        assert unexpected(complaints) == []


@pytest.mark.thorough
def test_cards_are_whole_in_a_wide_window(browser, address):
    with looking(browser, width=WIDE) as (page, _):
        page.goto(f"{address}/?{ME}&job=gemm")
        settled(page)
        cards_are_whole(page)


def cards_are_whole(page):
    """Of shares and of rates."""
    until(page, "document.querySelectorAll('[data-testid=stMetricValue]').length === 7")
    values = page.locator("[data-testid=stMetricValue]")
    cut = """values => values.flatMap(value => [value, ...value.querySelectorAll('*')])
        .filter(part => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflow !== 'visible')
        .map(part => part.textContent)"""
    card = """values => values.map(value => value.closest('[data-testid=stVerticalBlock]').getBoundingClientRect().right
        - Math.max(...[...value.querySelectorAll('*')].map(part => {
            const range = document.createRange(); range.selectNodeContents(part);
            return range.getBoundingClientRect().right; })))"""
    assert values.evaluate_all(cut) == []
    assert min(values.evaluate_all(card)) >= 0


SENTENCES = """() => {
    const table = document.querySelector('.st-key-fits table');
    const cell = [...table.rows[1].cells].at(-1), frame = table.closest('.st-key-fits').getBoundingClientRect();
    const scroller = [...function* (at) { for (; at; at = at.parentElement) yield at; }(table)]
        .find((each) => each.scrollWidth > each.clientWidth && getComputedStyle(each).overflowX !== 'visible');
    if (scroller) scroller.scrollLeft = scroller.scrollWidth;
    return {
        heading: [...table.rows[0].cells].at(-1).innerText, text: cell.innerText,
        over: cell.getBoundingClientRect().right - frame.right, cut: cell.scrollWidth - cell.clientWidth,
        scrolls: Boolean(scroller),
    };
}"""


def test_a_table_of_sentences_is_whole_on_the_page_or_scrolls_in_its_place(browser, address):
    with looking(browser) as (page, complaints):
        page.goto(f"{address}/collectives?device={FITTED_UID}")
        settled(page)
        for width in (WIDE, NARROW):
            page.set_viewport_size({"width": width, "height": 900})
            until(page, f"innerWidth === {width} && document.querySelectorAll('.st-key-fits table').length === 1")
            seen = page.evaluate(SENTENCES)
            assert seen["heading"] == "Remark"
            assert seen["text"].startswith("no fit: ")
            assert seen["over"] <= 1
            assert seen["cut"] <= 0
            assert seen["scrolls"] is (width == NARROW)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert unexpected(complaints) == []
