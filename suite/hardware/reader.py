"""Takes values out of one mapping of a YAML file, and says in one line where what is wrong stands."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from suite.errors import UsageError, nearest
from suite.hardware.figure import CONFIDENCES, KINDS, NOT_FOUND, Figure, Figures, Source


class Reader:
    """One mapping; ``finish`` refuses keys that nothing asked for, so that a misspelt one is not lost silently."""

    def __init__(self, data: Any, file: str, path: str = "") -> None:
        self.file, self.path = file, path
        if not isinstance(data, Mapping):
            raise UsageError(f"{file}: {path or 'the file'} is not a mapping of keys to values")
        self.data: Mapping[Any, Any] = data
        self.asked: set[str] = set()

    def fail(self, key: str, wrong: str) -> NoReturn:
        """Raise ``UsageError`` naming file and key."""
        raise UsageError(f"{self.file}: {self.where(key)} {wrong}")

    def where(self, key: str) -> str:
        """``caches.l2_mb``."""
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str) -> Any:
        """The raw value; ``None`` where the key is absent or null."""
        self.asked.add(key)
        return self.data.get(key)

    def child(self, key: str, required: bool = False) -> "Reader":
        """The mapping under ``key``; empty where it is absent."""
        value = self.get(key)
        if value is None and required:
            self.fail(key, "is missing")
        if value is not None and not isinstance(value, Mapping):
            self.fail(key, f"is {value!r}, not a mapping of keys to values")
        return Reader(value or {}, self.file, self.where(key))

    def items(self, key: str) -> list["Reader"]:
        """The list of mappings under ``key``; empty where it is absent."""
        value = self.get(key)
        if value is not None and (not isinstance(value, Sequence) or isinstance(value, str)):
            self.fail(key, f"is {value!r}, not a list")
        return [Reader(item, self.file, f"{self.where(key)}[{index}]") for index, item in enumerate(value or [])]

    def text(self, key: str, required: bool = False, among: Sequence[str] = ()) -> str:
        """A string; ``""`` where it is absent."""
        value = self.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or not value.strip():
            self.fail(key, "is missing" if value is None else f"is {value!r}, not a text")
        if among and value not in among:
            self.fail(key, f"is '{value}'{nearest(value, among)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self.get(key)
        if value is not None and (not isinstance(value, list) or not all(isinstance(item, str) for item in value)):
            self.fail(key, f"is {value!r}, not a list of texts")
        return tuple(value or ())

    def number(self, key: str, required: bool = False) -> float | None:
        """A finite number above 0."""
        value = self.get(key)
        if value is None and not required:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(key, "is missing" if value is None else f"is {value!r}, not a number")
        if not math.isfinite(value) or value <= 0:
            self.fail(key, f"is {value}, not above 0")
        return value

    def whole(self, key: str, required: bool = False, least: int = 1) -> int | None:
        """A whole number from ``least`` up."""
        value = self.get(key)
        if value is None and not required:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(key, "is missing" if value is None else f"is {value!r}, not a whole number from {least} up")
        return value

    def counts(self, key: str) -> dict[str, int]:
        """A mapping of names to whole numbers."""
        reader = self.child(key, required=True)
        return {str(name): reader.whole(name, required=True) or 0 for name in reader.data}

    def flag(self, key: str) -> bool:
        """``true`` or ``false``; false where it is absent."""
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            self.fail(key, f"is {value!r}, not true or false")
        return bool(value)

    def sources(self, key: str = "source", required: bool = True) -> tuple[Source, ...]:
        """A list of documents: ``{title, url, kind}``, or a title alone."""
        value = self.get(key)
        if not value and required:
            self.fail(key, "is missing: every figure names where it comes from")
        if value is not None and not isinstance(value, list):
            self.fail(key, f"is {value!r}, not a list of documents")
        documents = [{"title": item} if isinstance(item, str) else item for item in value or ()]
        return tuple(_source(Reader(item, self.file, f"{self.where(key)}[{n}]")) for n, item in enumerate(documents))

    def confidence(self, required: bool = True) -> str:
        """``high``, ``medium`` or ``low``; ``high`` where it may be left out."""
        return self.text("confidence", required, CONFIDENCES) or "high"

    def figure(self, key: str, scale: float = 1.0, is_count: bool = False) -> Figure:
        """``{value, source, confidence[, derived][, note]}``; the value is multiplied by ``scale`` into base units.

        A count is a whole number.
        """
        if self.get(key) is None:
            return NOT_FOUND
        reader = self.child(key)
        if "value" not in reader.data:
            reader.fail("value", "is missing; write null where it is not known")
        value = reader.number("value")
        if is_count and value is not None and value != int(value):
            reader.fail("value", f"is {value:g}, not a whole number")
        figure = Figure(
            value=None if value is None else value * scale,
            sources=reader.sources(),
            confidence=reader.confidence(),
            derived=reader.text("derived"),
            note=reader.text("note"),
        )
        reader.finish("unit")
        return figure

    def figures(self, key: str, scale: float, among: Sequence[str] = ()) -> Figures:
        """A mapping of names to figures; nulls without a reason are left out."""
        reader = self.child(key)
        found = {str(name): reader.figure(name, scale) for name in reader.data}
        for name in found:
            if among and name not in among:
                reader.fail(name, f"is not known{nearest(name, among)}")
        return {name: figure for name, figure in found.items() if figure is not NOT_FOUND}

    def finish(self, *also: str) -> None:
        """Refuse a key that was not asked for."""
        for key in self.data:
            if key not in self.asked and key not in also:
                self.fail(str(key), f"is not known{nearest(str(key), self.asked)}")


def _source(reader: Reader) -> Source:
    source = Source(
        title=reader.text("title", required=True),
        url=reader.text("url") or None,
        kind=reader.text("kind", among=KINDS) or "secondary",
    )
    reader.finish()
    return source
