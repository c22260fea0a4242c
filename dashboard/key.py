"""The key of a figure as text of the page, and no more room for the legend than it takes there.

A figure is made for a telephone: its key has short lines, and its legend as many rows as it needs there.  A page lays out text
by itself, and only its browser knows how wide it is, so that rules of CSS take away what is left over.  The figure keeps its
own key for its files, and shows it where it scrolls sideways.
"""

from collections.abc import Iterator
from typing import NamedTuple

import plotly.graph_objects as go

from suite.report.figures import KEY, key_px, legend_px
from suite.report.key import GAP

_MARGINS_PX = 60  # of a screen of 390 px, beside its 330 for a legend
_WIDEST_PX = 4000
_PARAGRAPH = (
    '<div style="display: flex; flex-wrap: wrap; column-gap: 0.75em">{}</div>'  # an entry is broken where no line holds it
)
_HELD = "\u00a0"  # between words of an entry of the figure


class Room(NamedTuple):
    """What a page leaves out of a figure of ``height_px``: its key, and rows that a legend above or below does not need.

    ``rows`` are widths of the figure with the pixels left over from there on.
    """

    height_px: int
    key_px: int
    annotation: int
    colour: str
    paragraphs: tuple[str, ...]
    rows: tuple[tuple[int, int], ...]
    is_above: bool


def for_page(figure: go.Figure) -> Room | None:
    """What is left out of a figure, whose legend below the key changes places with it; ``None`` where it has no key."""
    layout = figure.layout
    notes = [place for place, each in enumerate(layout.annotations) if each.name == KEY]
    if not notes or not layout.height:
        return None
    note = layout.annotations[notes[0]]
    taken_px = key_px(note.text.split("<br>"))
    is_above = layout.legend.yanchor != "top"
    if not is_above:
        legend_height_px = layout.legend.y * layout.height
        note.yshift -= legend_height_px
        layout.legend.y = (legend_height_px + taken_px) / layout.height
    rows = tuple(_left_over(figure)) if layout.legend.yref == "container" else ()
    kept = tuple(layout.meta[KEY]["paragraphs"])
    return Room(int(layout.height), taken_px, notes[0], note.font.color, kept, rows, is_above)


def _left_over(figure: go.Figure) -> Iterator[tuple[int, int]]:
    """From which width on the legend needs fewer rows, and how many pixels that leaves."""
    names = {str(trace.name) for trace in figure.data if trace.name and trace.showlegend is not False}
    if len(names) < 2 or figure.layout.showlegend is False:
        return
    reserved_px = before_px = legend_px(names)
    for width_px in range(0, _WIDEST_PX, 10):
        needed_px = legend_px(names, width_px)
        if needed_px < before_px and width_px:
            before_px = needed_px
            yield width_px + _MARGINS_PX, reserved_px - needed_px


def rules(key: str, room: Room, width_px: int) -> str:
    """The CSS of a figure that does not scroll in a place of ``width_px`` and more; 0 where it never does."""
    own = [_rule(key, room, 0), *(_at_least(each_px, _rule(key, room, left_px)) for each_px, left_px in room.rows)]
    hidden = f".{key}-key {{ display: none; }}"
    return f"{hidden} {_at_least(width_px, ' '.join(own))}" if width_px else " ".join(own)


def _at_least(width_px: int, rule: str) -> str:
    return f"@container (min-width: {width_px}px) {{ {rule} }}"


def _rule(key: str, room: Room, left_px: int) -> str:
    """Beyond its place a figure is empty: what stands there is seen through it, and takes the clicks."""
    above_px = left_px if room.is_above else 0
    own = f".st-key-{key}"
    return (
        f"{own}-place {{ flex: none; overflow: visible; height: {room.height_px - room.key_px - left_px}px; }} "
        f"{own} {{ flex: none; overflow: visible; margin-top: {-above_px}px; pointer-events: none; }} "
        f"{own} .modebar-container {{ top: {above_px}px !important; }} {own} .modebar {{ pointer-events: auto; }} "
        f"{own} .main-svg {{ background: transparent !important; }} "
        f'{own} .annotation[data-index="{room.annotation}"] {{ display: none; }} '
        f".{key}-key {{ display: block; position: relative; margin: 0; font-size: 0.875rem; color: {room.colour}; }}"
    )


def as_text(key: str, room: Room) -> str:
    """The key in HTML, an entry beside the other; its paragraphs are escaped already."""
    paragraphs = (each.replace(_HELD, " ").split(GAP) for each in room.paragraphs)
    lines = "".join(_PARAGRAPH.format("".join(f"<span>{entry}</span>" for entry in entries)) for entries in paragraphs)
    return f'<div class="{key}-key" style="overflow-wrap: anywhere">{lines}</div>'
