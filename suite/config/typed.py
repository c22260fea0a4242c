"""Whether composed settings are of the types that they are declared with.

OmegaConf checks what is assigned.  It lets two things pass: what an interpolation (``${seed}``) comes to, and what stands
within an element of a list.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from suite.errors import UsageError
from suite.values import (
    NEITHER_TRUE_NOR_FALSE,
    NO_NULL,
    NOT_A_NUMBER,
    NOT_TEXT,
    NOT_WHOLE,
    SETTINGS_WANTED,
    list_wanted,
    not_whole,
    written,
)

PLAIN: dict[type, tuple[Any, str]] = {
    bool: (bool, NEITHER_TRUE_NOR_FALSE),
    int: (int, NOT_WHOLE),
    float: ((int, float), NOT_A_NUMBER),
    str: (str, NOT_TEXT),
}


def refuse_other_types(key: str, value: Any, kind: Any) -> None:
    """``UsageError`` naming the first part of ``value`` that is not what ``kind``, an annotation, says."""
    if get_origin(kind) in (Union, UnionType):
        _refuse_in_union(key, value, get_args(kind))
    elif value is None and kind not in (Any, NoneType):
        raise _wrong(key, value, NO_NULL)
    elif get_origin(kind) is list:
        _refuse_in_list(key, value, *get_args(kind))
    elif get_origin(kind) in (dict, Mapping):
        _refuse_in_mapping(key, value, get_args(kind)[1])
    elif isinstance(kind, type) and is_dataclass(kind):
        _refuse_in_settings(key, value, kind)
    elif kind in PLAIN:
        _refuse_plain(key, value, kind)


def _refuse_plain(key: str, value: Any, kind: type) -> None:
    accepted, says = PLAIN[kind]
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(key, value, not_whole(value) if kind is int else says)


def _refuse_in_union(key: str, value: Any, kinds: tuple[Any, ...]) -> None:
    others = [kind for kind in kinds if kind is not NoneType]
    if value is None and len(others) < len(kinds):
        return
    if len(others) == 1:
        refuse_other_types(key, value, others[0])


def _refuse_in_list(key: str, value: Any, kind: Any) -> None:
    if not isinstance(value, list):
        raise _wrong(key, value, list_wanted(value, kind))
    for number, each in enumerate(value):
        refuse_other_types(f"{key}[{number}]", each, kind)


def _refuse_in_mapping(key: str, value: Any, kind: Any) -> None:
    if not isinstance(value, Mapping):
        raise _wrong(key, value, SETTINGS_WANTED)
    for name, each in value.items():
        refuse_other_types(f"{key}.{name}", each, type(each) if is_dataclass(each) else kind)


def _refuse_in_settings(key: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise _wrong(key, value, SETTINGS_WANTED)
    settings: Any = value
    hints = get_type_hints(type(settings))
    for field in fields(settings):
        refuse_other_types(f"{key}.{field.name}", getattr(settings, field.name), hints[field.name])


def _wrong(key: str, value: Any, says: str) -> UsageError:
    shown = written(value)
    return UsageError(f"{key}={shown} {says.format(key=key, value=shown)}")
