"""A real Chromium for the tests that look at a page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, NamedTuple

import pytest

from tests.patience import PATIENCE_S

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# For pages that are opened once each: what V8 compiles to run faster never runs often enough to pay for that.
INTERPRETED = "--js-flags=--no-opt --no-maglev --no-sparkplug"
WIDE, NARROW = 1280, 390


class Look(NamedTuple):
    """An open page and what it complained of."""

    page: Any
    complaints: list[str]


_DRIVERS: list[Any] = []


@contextmanager
def driver() -> Iterator[Any]:
    """Playwright, which can be started again only after it has ended."""
    if _DRIVERS:
        yield _DRIVERS[-1]
        return
    with pytest.importorskip("playwright.sync_api").sync_playwright() as started:
        _DRIVERS.append(started)
        try:
            yield started
        finally:
            _DRIVERS.remove(started)


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """The browser of this machine; skips where there is none."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine")
    with driver() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags], timeout=PATIENCE_S * 1000)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def looking(browser: Any, *, width: int = WIDE, scheme: str = "light", offline: bool = False, **more: Any) -> Iterator[Look]:
    """A page of its own that nothing on it moves by itself, and the errors it logs."""
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", **more)
    context.set_default_timeout(PATIENCE_S * 1000)
    context.set_offline(offline)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield Look(page, complaints)
    finally:
        context.close()


def points_drawn(page: Any) -> list[int]:
    """How many points each roofline on the page really shows, counted in its SVG."""
    counts: list[int] = page.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')]
            .filter(gd => gd._fullData.some(trace => trace.meta === 'points')).map(gd => gd._fullData
            .filter(trace => trace.meta === 'points')
            .reduce((sum, trace) => sum + gd.querySelectorAll(`.trace${trace.uid} path.point`).length, 0))"""
    )
    return counts


def until(page: Any, expression: str, timeout_s: float = PATIENCE_S) -> None:
    """Wait for a JavaScript expression to hold; Playwright's own way needs an ``eval`` that the page's policy forbids."""
    deadline = monotonic() + timeout_s
    while not page.evaluate(expression):
        assert monotonic() < deadline, f"never true: {expression}"
        sleep(0.1)
