"""Reading a report's HTML as a browser would, with the standard library."""

import json
from html.parser import HTMLParser
from typing import Any

from suite.report.html import CASES_ID, DATA_ID

VOID = {"meta", "input", "br", "wbr", "link", "img"}
URL_ATTRIBUTES = {"src", "href", "action", "data", "poster", "srcset", "formaction", "background"}


class Page(HTMLParser):
    """Elements with their attributes and text; refuses tags that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[int, str] = {}
        self._open: list[tuple[str, int]] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, len(self.elements) - 1))

    def handle_endtag(self, tag: str) -> None:
        name, _ = self._open.pop()
        assert name == tag, f"</{tag}> closes <{name}>"

    def handle_data(self, data: str) -> None:
        for _, index in self._open:
            self.texts[index] = self.texts.get(index, "") + data

    def find(self, tag: str, **attributes: str) -> list[int]:
        """Indices of the elements of this name and these attributes."""
        return [i for i, (name, given) in enumerate(self.elements) if name == tag and attributes.items() <= given.items()]

    def text(self, index: int) -> str:
        return self.texts.get(index, "")

    @property
    def data(self) -> Any:
        (index,) = self.find("script", id=DATA_ID)
        return json.loads(self.text(index))

    @property
    def cases(self) -> Any:
        """What is there for the cases that can be opened."""
        (index,) = self.find("script", id=CASES_ID)
        return json.loads(self.text(index))

    @property
    def figures(self) -> list[Any]:
        return [json.loads(self.text(index)) for index in self.find("script", **{"class": "figure"})]

    @property
    def links(self) -> list[str]:
        """Every address that the page would load or lead to."""
        return [value or "" for _, given in self.elements for name, value in given.items() if name in URL_ATTRIBUTES]
