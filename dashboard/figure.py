"""A figure on a page: the same buttons everywhere, words for who cannot see it, and itself as a file."""

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard.address import given
from dashboard.key import Room, as_text, for_page, rules
from suite.report.figures import CHART_CONFIG

BUTTONS_PX = 28
_FRAMED = ".st-key-{key}-frame {{ container-type: inline-size; }}"
_SCROLLED = """
.st-key-{key}-place {{ overflow-x: auto; }}
.st-key-{key} {{ min-width: {width_px}px; }}
.{key}-hint {{ display: none; margin: 0; }}
@container (max-width: {width_px}px) {{ .{key}-hint {{ display: block; }} }}"""
_HINT = '<p class="{key}-hint">&#x2194; This figure is wider than its place: scroll it sideways.</p>'
CAMERA_SCALE = 2  # pixels of a downloaded image for one on the screen


def show(figure: go.Figure, key: str, alt: str, name: str, choosing: bool = False) -> Any:
    """Draw a figure; with ``choosing``, the customdata of the point that a person clicked, ``None`` where none is.

    ``alt`` is read out by screen readers; ``name`` is that of downloaded files.  A figure with a width is no narrower than it;
    one whose axes are tied to each other, so that its cells keep their size, takes the whole place: what hovers over a point
    is cut off at the edges of the figure.
    """
    width_px = figure.layout.width
    stretches = bool(width_px and figure.layout.xaxis.scaleanchor)
    if stretches:
        figure.update_layout(width=None, autosize=True)
    # Where a figure scrolls sideways, a finger that drags it moves it and does not zoom into it.
    figure.update_layout(uirevision="kept", dragmode=False if width_px else "zoom")
    _make_room(figure)
    options: dict[str, Any] = {"theme": None, "key": key, "config": _config(name), "alt": alt}
    if choosing:
        options |= {"on_select": "rerun", "selection_mode": "points"}
    if width_px and not stretches:
        options["width"] = "content"
    screen = go.Figure(figure)
    room = for_page(screen)
    with st.container(key=f"{key}-frame"):
        with _placed(key, room, int(width_px or 0)):
            event = st.plotly_chart(screen, **options)
        if room is not None:
            st.html(as_text(key, room))
    _as_page(figure, key, name)
    if not choosing:
        return None
    points = event.selection.points
    return points[0].get("customdata") if points else None


def _placed(key: str, room: Room | None, width_px: int) -> Any:
    """The place of a figure, which scrolls sideways, and says so, where the screen is narrower than ``width_px``."""
    parts = [_FRAMED.format(key=key)]
    if width_px:
        parts.append(_SCROLLED.format(key=key, width_px=width_px))
    if room is not None:
        parts.append(rules(key, room, width_px + 1 if width_px else 0))
    hint = _HINT.format(key=key) if width_px else ""
    st.html(f"<style>{' '.join(parts)}</style>{hint}")
    return st.container(key=f"{key}-place")


def _make_room(figure: go.Figure) -> None:
    """Put everything lower by what the buttons take, which are always there: one that only a pointer finds is none for keys."""
    before = figure.layout.height
    if not before:
        return
    legend = figure.layout.legend
    if legend.yref == "container" and legend.y is not None:
        from_top = (1 - legend.y) * before if legend.yanchor == "bottom" else None
        legend.y = (
            1 - (from_top + BUTTONS_PX) / (before + BUTTONS_PX)
            if from_top is not None
            else legend.y * before / (before + BUTTONS_PX)
        )
    figure.layout.margin.t = (figure.layout.margin.t or 0) + BUTTONS_PX
    figure.layout.height = before + BUTTONS_PX


def page_of(figure: go.Figure) -> str:
    """A figure as one HTML file that needs no network."""
    return str(figure.to_html(include_plotlyjs=True, full_html=True, config={**CHART_CONFIG, "responsive": True}))


def _config(name: str) -> dict[str, Any]:
    format = next(iter(given("image")), "PNG").lower()
    image = {"format": format if format in ("png", "svg") else "png", "filename": name, "scale": CAMERA_SCALE}
    return {**CHART_CONFIG, "displayModeBar": True, "toImageButtonOptions": image}


def _as_page(figure: go.Figure, key: str, name: str) -> None:
    make: Callable[[], str] = lambda: page_of(figure)  # noqa: E731
    st.download_button(
        "Download this figure as HTML", make, f"{name}.html", "text/html", key=f"{key}-html", on_click="ignore", type="tertiary"
    )
