"""What axe-core finds on the pages as a browser draws them: nothing serious, of ours or of Streamlit's."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.dashboard.serving import ME, PAGES, settled
from tests.report.browsing import NARROW, WIDE, looking

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not find_spec("axe_playwright_python"), reason="no axe-core here")]
GRAVE = ("serious", "critical")
EVERY = [(name, width, scheme) for name in PAGES for width in (WIDE, NARROW) for scheme in ("light", "dark")]


def axe() -> str:
    found = find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")


def grave(page) -> list[str]:
    page.evaluate(axe())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in GRAVE]


def test_a_page_has_no_serious_violation(roofline):
    """One with choices as chips, a figure, a table and folded parts."""
    page, _ = roofline(NARROW)
    assert grave(page) == []
    page.get_by_role("button", name="Download this figure as HTML").first.hover()
    assert grave(page) == []


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "width", "scheme"), EVERY)
def test_no_page_has_a_serious_violation(browser, address, name, width, scheme):
    with looking(browser, width=width, scheme=scheme) as (page, _):
        page.goto(f"{address}/{name}?{ME}")
        settled(page, figure=name != "run")
        assert grave(page) == []


@pytest.mark.thorough
def test_an_opened_case_has_none_either(browser, address):
    with looking(browser) as (page, _):
        page.goto(f"{address}/roofline?{ME}&format=tf32&regime=cold%2Fsustained%2Fdevice")
        settled(page)
        box = page.locator(".trace path.point").last.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector("text=Checks against the reference")
        assert grave(page) == []


def test_what_it_finds_is_found(browser):
    """A page with a button that says nothing and grey on grey."""
    with looking(browser) as (page, _):
        page.set_content("<main><button></button><p style='color:#999;background:#888'>hardly to be read</p></main>")
        found = grave(page)
    assert {each.partition(":")[0] for each in found} >= {"button-name", "color-contrast"}
