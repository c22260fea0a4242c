"""A run's resolved configuration as one experiment file, for a reader who lacks the folder that the run was composed from."""

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from suite.rows import RunInfo

NAME = "again"
COMMAND = f"roofbench run --config-dir DIR experiment={NAME}"
PLACE = f"DIR/experiment/{NAME}.yaml"
HEADER = f"""\
# @package _global_
# Every setting of {{what}}, so that no other file is needed. Saved as {PLACE}, it is run with:
#   {COMMAND}"""

CONFIG_FLAGS = ("--config-dir", "-cd")
SEARCH_PATH = "hydra.searchpath"
OWN_BACKENDS = "backends."  # the module of a backend that comes with roofbench begins so
# Where results go, what goes on, and what was chosen by a file or a folder of the user's: nothing of it says what is measured.
LEFT_OUT = ("store", "resume", "experiment", "hardware", "hardware_folders")


def own_folder(info: RunInfo) -> bool:
    """Whether a run read YAMLs of the user's own, so that its command alone does not repeat it elsewhere."""
    named = any(word.partition("=")[0] in CONFIG_FLAGS for word in info.argv)
    return named or any(text.lstrip("+").startswith(SEARCH_PATH) for text in info.overrides)


def own_folder_lines(info: RunInfo, store_override: str) -> Iterator[str]:
    """For whoever has the store: how to hand on a run whose command does not repeat it; ``store_override`` names the store."""
    if own_folder(info):
        yield (
            "composed from a folder of your own; one file with all of it, for others: "
            f"roofbench run --cfg experiment resume={info.run}{store_override}"
        )


def missing_elsewhere(config: Mapping[str, Any]) -> list[str]:
    """What even the file cannot carry, one sentence each: backends and spec sheets that are not roofbench's."""
    found = [
        f"backend {name} is {backend['target']}, which is no part of roofbench and has to be installed"
        for name, backend in config.get("backends", {}).items()
        if backend.get("target") and not backend["target"].startswith(OWN_BACKENDS)
    ]
    sheet = config.get("hardware")
    if config.get("hardware_folders") or (sheet and not _is_built_in(sheet)):
        found.append(
            "spec sheets of the user's own were looked at first; without them fractions of spec, and what the plan leaves out "
            "or adds as bursts, follow the built-in sheet that the device's name matches"
        )
    return found


def experiment_file(config: Mapping[str, Any], what: str) -> str:
    """The YAML text of ``config`` (a ``RunConfig`` as JSON values) as an experiment, complete in itself.

    Its jobs and backends stand on the schemas alone: the groups' files, which may be another's elsewhere, set nothing.
    """
    import yaml

    content = {name: _plain(value) for name, value in config.items() if name not in LEFT_OUT}
    body = {"defaults": list(_defaults(config)), **content}
    dumped = yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=120)
    printable = "".join(character for character in what if character.isprintable())
    return f"{HEADER.format(what=printable)}\n{dumped}"


def _defaults(config: Mapping[str, Any]) -> Iterator[Any]:
    yield from (f"/schema/job/{name}@jobs.{name}" for name in config.get("jobs", {}))
    yield from (f"/schema/backend@backends.{name}" for name in config.get("backends", {}))
    yield {"override /job": []}
    yield {"override /backend": []}
    if (sheet := config.get("hardware")) and _is_built_in(sheet):
        yield {"override /hardware": sheet}
    yield "_self_"


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
