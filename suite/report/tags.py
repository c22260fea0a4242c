"""HTML out of Python values, escaped by construction: only ``Html`` passes as it is, every other string is text."""

import json
from collections.abc import Iterable
from html import escape
from typing import Any

_VOID = frozenset({"meta", "input", "br"})
_SAFE_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class Html(str):
    """Markup that is already safe."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | int | bool | None) -> Html:
    """An element.  Attribute names lose a trailing underscore and turn others into hyphens; ``None`` and ``False`` drop out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[str]) -> Html:
    """Children one after another, text escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def figure_place(identity: str, text: str) -> Html:
    """Where the page draws the figure of this id, under what it shows in words."""
    return tag("figure", tag("div", class_="plot", id=identity, role="group", aria_label=text), tag("figcaption", text))


def script_json(value: Any) -> Html:
    """JSON that cannot end a ``script`` element or start a comment in it; it parses to the same value everywhere.

    Raises ``ValueError`` for NaN and infinities, which are not JSON.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return Html(text.translate(_SAFE_IN_SCRIPT))


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
