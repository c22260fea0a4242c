"""A run's resolved configuration as one experiment file, for a reader who lacks the folder that the run was composed from."""

import shlex
import textwrap
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from suite.ranks.again import Launch, under_launcher
from suite.rows import RunInfo

NAME = "again"
COMMAND = f"roofbench run --config-dir DIR experiment={NAME}"
PLACE = f"DIR/experiment/{NAME}.yaml"
HEADER = f"""\
# @package _global_
# Every setting that {{what}} measures with{{missing}}. Saved as {PLACE}, it is run with:
#   {{command}}"""
ALL = ", so that no other file is needed"
MISSING = ", but for what is named below"
WIDTH = 120

CONFIG_FLAGS = ("--config-dir", "-cd")
SEARCH_PATH = "hydra.searchpath"
OWN_BACKENDS = "backends."  # the module of a backend that comes with roofbench begins so
SHEETS = "DIR/hardware"
SHEET = f"{SHEETS}/{{}}.yaml"
WITHOUT_SHEET = (
    "fractions of spec, and what the plan leaves out or adds as bursts, follow the built-in sheet that the device's name "
    "matches, or what is derived of a CPU"
)
# Where results go, what goes on, and what was chosen by a file or a folder of the user's: nothing of it says what is measured.
LEFT_OUT = ("store", "resume", "wait_s", "experiment", "hardware", "hardware_folders", "plugins")


def own_folder(info: RunInfo) -> bool:
    """Whether a run read YAMLs of the user's own, so that its command alone does not repeat it elsewhere."""
    named = any(word.partition("=")[0] in CONFIG_FLAGS for word in info.argv)
    return named or any(text.lstrip("+").startswith(SEARCH_PATH) for text in info.overrides)


def own_folder_lines(info: RunInfo, store_override: str) -> Iterator[str]:
    """For whoever has the store: how to hand on a run whose command does not repeat it; ``store_override`` names the store."""
    if own_folder(info):
        yield (
            "composed from a folder of your own; as one file, for others: "
            f"roofbench run --cfg experiment resume={info.run}{store_override}"
        )


def missing_elsewhere(config: Mapping[str, Any]) -> list[str]:
    """What even the file cannot carry, one clause each: plugins, backends and sheets that are not roofbench's, a launcher."""
    plugins = config.get("plugins", {})
    found = [f"{key.replace('s.', ' ', 1)} is of {owner}, a plugin that has to be installed" for key, owner in plugins.items()]
    found += [
        f"backend {name} is {backend['target']}, which is no part of roofbench and has to be installed"
        for name, backend in config.get("backends", {}).items()
        if backend.get("target") and not backend["target"].startswith(OWN_BACKENDS) and f"backends.{name}" not in plugins
    ]
    if sheet := _own_sheet(config):
        found.append(
            f"hardware={sheet} is a spec sheet of the user's own: add it as {SHEET.format(sheet)}; with hardware={sheet} left "
            f"out of the command {WITHOUT_SHEET}"
        )
    elif config.get("hardware_folders"):
        found.append(f"spec sheets of the user's own were looked at first: add them to {SHEETS}; without them {WITHOUT_SHEET}")
    if launch := Launch.of(config):
        found.append(launch.missing)
    return [_printable(clause) for clause in found]


def command_of(config: Mapping[str, Any]) -> str:
    """The shell line that runs the file of ``config``: a spec sheet of the user's own is no setting of it and stands here, as
    does the launcher that its ranks need.
    """
    sheet = _own_sheet(config)
    line = f"{COMMAND} {shlex.quote(f'hardware={_printable(sheet)}')}" if sheet else COMMAND
    return under_launcher(config, line)


def experiment_file(config: Mapping[str, Any], what: str) -> str:
    """The YAML text of ``config`` (a ``RunConfig`` as JSON values) as an experiment; its header says what it cannot carry.

    Its jobs and backends stand on the schemas alone: the groups' files, which may be another's elsewhere, set nothing.
    """
    import yaml

    content = {name: _plain(value) for name, value in config.items() if name not in LEFT_OUT}
    body = {"defaults": list(_defaults(config)), **content}
    dumped = yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=WIDTH)
    missing = missing_elsewhere(config)
    header = HEADER.format(what=_printable(what), missing=MISSING if missing else ALL, command=command_of(config))
    comments = [line for clause in missing for line in _comment(f"Not in this file: {clause}.")]
    return "\n".join([header, *comments, dumped])


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)


def _defaults(config: Mapping[str, Any]) -> Iterator[Any]:
    yield from (f"/schema/job/{name}@jobs.{name}" for name in config.get("jobs", {}))
    yield from (f"/schema/backend@backends.{name}" for name in config.get("backends", {}))
    yield {"override /job": []}
    yield {"override /backend": []}
    if (sheet := config.get("hardware")) and _is_built_in(sheet):
        yield {"override /hardware": sheet}
    yield "_self_"


def _own_sheet(config: Mapping[str, Any]) -> str:
    """The sheet that was asked for by name where it is none of roofbench's own; else empty."""
    sheet = str(config.get("hardware") or "")
    return "" if not sheet or _is_built_in(sheet) else sheet


def _is_built_in(sheet: str) -> bool:
    return (resources.files("configs") / "hardware" / f"{sheet}.yaml").is_file()


def _plain(value: Any) -> Any:
    """The value with what reads like an interpolation escaped: it is resolved already."""
    if isinstance(value, str):
        return value.replace("${", "\\${")
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
