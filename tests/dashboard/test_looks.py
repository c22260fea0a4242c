"""Every page as it looks, light, dark and narrow, against the picture of it that somebody has looked at.

Pictures are in ``looks``, small: what moves, vanishes or changes its colour shows in them, a letter does not.  They are of one
browser with one set of fonts.  After a change that was meant, and that was looked at in full size:

    ROOFBENCH_LOOKS=DIR pytest -m "" tests/dashboard/test_looks.py    # full size into DIR, small ones into looks
"""

import io
import os
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from PIL import Image

from suite.store.browsing import Browser
from tests.dashboard.serving import ME, PAGES, settled
from tests.patience import PATIENCE_S
from tests.report.browsing import NARROW, WIDE, looking

pytestmark = pytest.mark.browser
LOOKS = Path(__file__).with_name("looks")
WRITTEN = os.environ.get("ROOFBENCH_LOOKS", "")
WIDTH = 160  # of a kept picture, pixels
CELL = 8  # of these pixels, compared by their mean
# Of 255: anti-aliasing and a shift by a pixel stay under these; a missing figure, table or colour does not.
CELL_AT_MOST, MEAN_AT_MOST, HEIGHT_AT_MOST = 50, 2.0, 0.02
LONGEST = 6000
LOOKED_AT = {"light": (WIDE, "light"), "dark": (WIDE, "dark"), "narrow": (NARROW, "light")}
EVERY = [(name, look) for name in PAGES for look in LOOKED_AT]


def taken(page, width: int) -> Image.Image:
    """The whole of an open page."""
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": min(LONGEST, height)})
    return at_rest(page)


def at_rest(page) -> Image.Image:
    """Figures follow the window, and what is read from the stores comes a little later: until nothing changes any more."""
    deadline = monotonic() + PATIENCE_S
    seen = b""
    while (now := page.screenshot()) != seen:
        assert monotonic() < deadline, "it never comes to rest"
        seen = now
        page.wait_for_timeout(1500)
    return Image.open(io.BytesIO(seen)).convert("RGB")


def chosen(name: str, folder: Path) -> str:
    """The address's parameters: pages about runs open with the newest ones, which are made to do harm."""
    runs = [Browser.open(str(folder / store)).entries()[-1].run for store in ("results.db", "growing.db")]
    return {"run": f"one={runs[0]}", "compare": f"a=0+in+{runs[0]}&b=1+in+{runs[1]}"}.get(name, ME)


def small(picture: Image.Image) -> Image.Image:
    return picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.BOX)


def cells(picture: Image.Image) -> np.ndarray:
    """Means of cells, (rows, columns, 3)."""
    rows = picture.height // CELL
    numbers = np.asarray(picture, dtype=float)[: rows * CELL, : WIDTH // CELL * CELL]
    return numbers.reshape(rows, CELL, WIDTH // CELL, CELL, 3).mean((1, 3))


def differences(seen: Image.Image, kept: Image.Image) -> list[str]:
    """What is beyond the limits; nothing where both look alike."""
    if abs(seen.height - kept.height) > max(CELL, HEIGHT_AT_MOST * kept.height):
        return [f"it is {seen.height} pixels high, not {kept.height}"]
    rows = min(seen.height, kept.height) // CELL
    apart = np.abs(cells(seen)[:rows] - cells(kept)[:rows]).max(2)
    found = []
    if apart.max() > CELL_AT_MOST:
        row, column = np.unravel_index(apart.argmax(), apart.shape)
        found.append(
            f"at {row / rows:.0%} of its height and {column / apart.shape[1]:.0%} of its width it is {apart.max():.0f} off"
        )
    if apart.mean() > MEAN_AT_MOST:
        found.append(f"it is {apart.mean():.1f} off in the mean")
    return found


def test_a_page_looks_as_it_did_when_it_was_looked_at(roofline):
    page, _ = roofline(WIDE)
    held_against_its_picture(taken(page, WIDE), "roofline-dark.png")


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "look"), EVERY)
def test_every_page_looks_as_it_did_when_it_was_looked_at(browser, address, folder, name, look):
    width, scheme = LOOKED_AT[look]
    with looking(browser, width=width, scheme=scheme) as (page, _):
        page.goto(f"{address}/{name}?{chosen(name, folder)}")
        settled(page, figure=name != "run")
        held_against_its_picture(taken(page, width), f"{name or 'overview'}-{look}.png")


def held_against_its_picture(picture: Image.Image, title: str) -> None:
    if WRITTEN:
        picture.save(Path(WRITTEN) / title)
        small(picture).save(LOOKS / title, optimize=True)
    assert differences(small(picture), Image.open(LOOKS / title).convert("RGB")) == []


def test_what_is_gone_or_has_another_colour_is_found():
    page = Image.new("RGB", (WIDTH, 400), "white")
    page.paste("#2a78c8", (20, 40, 140, 200))
    moved, recoloured = (Image.new("RGB", (WIDTH, 400), "white") for _ in range(2))
    moved.paste("#2a78c8", (20, 60, 140, 220))
    recoloured.paste("#c8782a", (20, 40, 140, 200))
    assert differences(page, page) == []
    assert len(differences(moved, page)) == 2
    assert len(differences(recoloured, page)) == 2
    assert differences(Image.new("RGB", (WIDTH, 400), "white"), page)
    assert "pixels high" in differences(page.crop((0, 0, WIDTH, 360)), page)[0]
