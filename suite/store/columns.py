"""Column types that say the same on every database: UTC times, exact counts, finite floats, text that any encoding takes."""

import json
import math
from datetime import UTC, datetime
from typing import Any, NoReturn

from sqlalchemy import DateTime, Dialect, Double, String, Text
from sqlalchemy.types import TypeDecorator

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))  # json.dumps would build one for each value


def dump_json(value: Any) -> str:
    """Serialise a JSON column; NaN and infinities, which are no JSON, raise ``ValueError``."""
    return _ENCODER.encode(value)


def load_json(text: str) -> Any:
    """Read a JSON column; ``ValueError`` for the NaN, Infinity and 1e999 that Python would let through."""
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is not a finite number")
    return value


def refuse_non_number(value: Any) -> None:
    """``ValueError`` for what SQLite keeps in a column of numbers although it is none, and for an infinity."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is not a finite number")


def refuse_non_count(value: Any, name: str, least: int = 0) -> None:
    """``ValueError`` for what SQLite keeps in a column of counts although it is none."""
    if type(value) is not int or value < least:
        raise ValueError(f"{name} {str(value)[:40]!r} is no count")


def refuse_non_text(value: Any) -> None:
    """``ValueError`` for what SQLite keeps in a column of text although it is none: bytes."""
    if type(value) is not str:
        raise ValueError(f"{str(value)[:40]} is no text")


class UtcTime(TypeDecorator[datetime]):
    """An aware time, kept as UTC: SQLite drops zones, so that they are put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time {value.isoformat()} has no zone; pass an aware datetime")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Finite(TypeDecorator[float]):
    """A double.  NaN, which SQLite turns into NULL without a word, and infinities raise ``ValueError`` in both directions."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{value} cannot be stored as a number; what is not known is None")
        return value

    def process_result_value(self, value: float | None, dialect: Dialect) -> float | None:
        if value is not None:
            refuse_non_number(value)
        return value


class Count(TypeDecorator[int]):
    """An integer of any size, kept as text: work counts of refused giant shapes pass 2^63."""

    impl = String(64)
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int | None:
        return None if value is None else int(value)


class SafeText(TypeDecorator[str]):
    """Text as it is, but for what some databases refuse: lone surrogates (undecodable bytes of a path) and NUL are escaped.

    Bytes in its place raise ``ValueError`` when they are read.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None:
            refuse_non_text(value)
        return value
