"""Frozen dataclasses to JSON values and back, for specs that are stored with a run."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def to_plain(value: Any) -> Any:
    """Turn dataclasses, tuples and mappings into JSON values, leaving out fields that hold their default."""
    if is_dataclass(value) and not isinstance(value, type):
        kept = (field for field in fields(value) if not _is_default(field, getattr(value, field.name)))
        return {field.name: to_plain(getattr(value, field.name)) for field in kept}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_plain(kind: Any, data: Any) -> Any:
    """Rebuild a value of type ``kind``: a dataclass, ``tuple[X, ...]``, ``Mapping[str, X]``, ``X | None`` or a JSON scalar."""
    if data is None:
        return None
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        # A spec stored by another version may hold fields that this one does not know.
        return kind(**{name: from_plain(hints[name], item) for name, item in data.items() if name in hints})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(from_plain(arguments[0], item) for item in data)
    if origin is not None and issubclass(origin, Mapping):
        return {key: from_plain(arguments[1], item) for key, item in data.items()}
    if origin in (UnionType, Union):
        return from_plain(next(option for option in arguments if option is not type(None)), data)
    return data


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_default(field: Any, value: Any) -> bool:
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return field.default is not MISSING and bool(value == field.default)
