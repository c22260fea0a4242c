"""A job or a backend whose file was chosen and leaves no settings with a schema: it would be left out without a word."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig

from suite.config.overrides import parse
from suite.config.unknown import ENTRIES, selected
from suite.errors import UsageError
from suite.hardware.catalogue import builtin
from suite.paths import shown

PACKAGE = re.compile(r"^#\s*@package\s+(\S+)", re.MULTILINE)
SCHEMA = "/schema/"
SCHEMAS = {"job": f"{SCHEMA}job/{{name}}@_here_", "backend": f"{SCHEMA}backend@_here_"}


def refuse_without_schema(
    node: DictConfig, choices: Mapping[str, Any], overrides: Sequence[str], config_dir: Path | None
) -> None:
    """``UsageError`` naming the file, and the lines that it lacks.

    ``choices`` are Hydra's, which have no list.  Where nothing at all is selected, what has settings may have been chosen by a
    list of an experiment's: then the file itself tells.
    """
    for entries, (group, _) in ENTRIES.items():
        found = node[entries]
        if not isinstance(found, DictConfig):
            continue
        chosen = {*_names(choices.get(group)), *_named_by(group, overrides)}
        nothing = not any(selected(entry) for _, entry in found.items_ex(resolve=False))
        for name in dict.fromkeys([*sorted(chosen), *(map(str, found) if nothing else ())]):
            if _is_there(found, name) or (file := _file(group, name, config_dir)) is None:
                continue
            text = file.read_text(encoding="utf-8", errors="replace")
            filled = _filled(text, entries, name)
            if filled is None or _is_there(found, filled) or _is_deleted(f"{entries}.{filled}", overrides):
                continue
            if name in chosen or SCHEMA not in text:
                raise UsageError(_lacking(group, f"{entries}.{filled}", filled, file))


def _filled(text: str, entries: str, name: str) -> str | None:
    """The entry that a file fills: its own name, unless it says another; ``None`` where that is no entry of these."""
    if (found := PACKAGE.search(text)) is None:
        return name
    return found[1].split(".")[1] if found[1].startswith(f"{entries}.") else None


def _is_there(found: DictConfig, name: str) -> bool:
    return name in found and selected(found._get_node(name))


def _lacking(group: str, key: str, name: str, file: Path) -> str:
    schema = SCHEMAS[group].format(name=name)
    return (
        f"{group} '{name}' has no schema, by which its settings are known: {shown(file)} has to begin with "
        f"'# @package {key}' and 'defaults: [{schema}, _self_]'"
    )


def _names(value: Any) -> list[str]:
    listed = value if isinstance(value, list | tuple | ListConfig) else [] if value is None else [value]
    return [str(each) for each in listed]


def _named_by(group: str, overrides: Sequence[str]) -> Iterator[str]:
    for override in map(parse, overrides):
        if override.key_or_group == group and not override.is_delete() and not override.is_sweep_override():
            yield from _names(override.value())


def _is_deleted(key: str, overrides: Sequence[str]) -> bool:
    return any(each.is_delete() and f"{key}.".startswith(f"{each.key_or_group}.") for each in map(parse, overrides))


def _file(group: str, name: str, config_dir: Path | None) -> Path | None:
    """The file that Hydra reads by this name: the user's own before ours, a plugin's last; ``None`` where there is none."""
    from suite.plugins.used import config_folders

    own = [config_dir / group] if config_dir is not None else []
    for folder in (*own, builtin(group)):
        if (file := folder / f"{name}.yaml").is_file():
            return file
    return next((file for folder in config_folders() if (file := folder / group / f"{name}.yaml").is_file()), None)
