"""What axe-core finds on the pages as a browser draws them: nothing serious, of ours or of Streamlit's."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.dashboard.test_browser import ME, PAGES, address, browser, folder, settled  # noqa: F401
from tests.report.browsing import NARROW, WIDE

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not find_spec("axe_playwright_python"), reason="no axe-core here")]
GRAVE = ("serious", "critical")
EVERY = [(name, width, scheme) for name in PAGES for width in (WIDE, NARROW) for scheme in ("light", "dark")]
EVERY_DAY = ("roofline", NARROW, "dark")  # choices as chips, a figure, a table and folded parts


def axe() -> str:
    found = find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")


def grave(page) -> list[str]:
    page.evaluate(axe())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in GRAVE]


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [pytest.param(*each, marks=() if each == EVERY_DAY else pytest.mark.thorough) for each in EVERY],
)
def test_no_page_has_a_serious_violation(browser, address, name, width, scheme):  # noqa: F811
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    try:
        page = context.new_page()
        page.goto(f"{address}/{name}?{ME}")
        settled(page, figure=name != "run")
        assert grave(page) == []
    finally:
        context.close()


@pytest.mark.thorough
def test_an_opened_case_has_none_either(browser, address):  # noqa: F811
    context = browser.new_context(bypass_csp=True)
    try:
        page = context.new_page()
        page.goto(f"{address}/roofline?{ME}&format=tf32&regime=cold%2Fsustained%2Fdevice")
        settled(page)
        box = page.locator(".trace path.point").last.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector("text=Checks against the reference", timeout=30_000)
        assert grave(page) == []
    finally:
        context.close()


def test_what_it_finds_is_found(browser):  # noqa: F811
    """A page with a button that says nothing and grey on grey."""
    page = browser.new_page()
    page.set_content("<main><button></button><p style='color:#999;background:#888'>hardly to be read</p></main>")
    found = grave(page)
    page.close()
    assert {each.partition(":")[0] for each in found} >= {"button-name", "color-contrast"}
