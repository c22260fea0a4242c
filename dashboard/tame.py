"""Rows of a file that may hold anything, cut to what a page can show: a name of megabytes would go to every browser."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from suite.rows import DeviceRow, ResultRow
from suite.targets.record import Compiled

MOST_CHARACTERS, MOST_REASON, MOST_NAMES = 200, 2_000, 64
_TEXTS = tuple(
    each.name
    for each in fields(ResultRow)
    if each.type in (str, "str", str | None, "str | None") and each.name not in ("run", "case_key", "workload_key", "reason")
)
_MAPPINGS = ("params", "semantics", "switches")


def tamed(row: ResultRow) -> ResultRow:
    """The row itself, but for texts that are longer than any that roofbench writes."""
    changed: dict[str, Any] = {}
    for name in _TEXTS:
        text = getattr(row, name)
        if text is not None and len(text) > MOST_CHARACTERS:
            changed[name] = text[:MOST_CHARACTERS]
    if len(row.reason) > MOST_REASON:
        changed["reason"] = row.reason[:MOST_REASON]
    for name in _MAPPINGS:
        if _is_wild(getattr(row, name)):
            changed[name] = _cut(getattr(row, name))
    return replace(row, **changed) if changed else row


def tamed_compiled(compiled: Compiled) -> Compiled:
    """The same of what a program became on a target."""
    names = ("kernel", "program", "target", "configuration")
    texts: dict[str, Any] = {name: getattr(compiled, name)[:MOST_CHARACTERS] for name in names}
    maps: dict[str, Any] = {name: _cut(each) for name in ("facts", "versions") if _is_wild(each := getattr(compiled, name))}
    names_of = [name[:MOST_CHARACTERS] for name in compiled.facts.get("instructions", ())[:MOST_NAMES]]
    maps["facts"] = {**maps.get("facts", compiled.facts), "instructions": names_of}
    return replace(compiled, reason=compiled.reason[:MOST_REASON], **texts, **maps)


def tamed_device(device: DeviceRow) -> DeviceRow:
    """The same of a device."""
    info, reason = device.info, device.match_reason[:MOST_REASON]
    texts: dict[str, Any] = {
        name: text[:MOST_CHARACTERS]
        for name in ("name", "uid", "backend", "driver", "architecture", "partition")
        if isinstance(text := getattr(info, name), str)
    }
    return replace(device, match_reason=reason, info=replace(info, **texts))


def _is_wild(found: Mapping[str, Any]) -> bool:
    return len(found) > MOST_NAMES or any(
        len(name) > MOST_CHARACTERS
        or (isinstance(value, str) and len(value) > MOST_CHARACTERS)
        or isinstance(value, dict | list)
        for name, value in found.items()
    )


def _cut(found: Mapping[str, Any]) -> dict[str, Any]:
    kept = list(found.items())[:MOST_NAMES]
    return {name[:MOST_CHARACTERS]: _short(value) for name, value in kept}


def _short(value: Any) -> Any:
    if isinstance(value, dict | list):
        return str(value)[:MOST_CHARACTERS]
    return value[:MOST_CHARACTERS] if isinstance(value, str) else value
