"""Composing: overrides in, a checked ``RunConfig`` out; whatever is wrong ends as one ``UsageError``."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from suite.config.check import check
from suite.config.chosen import refuse_without_schema
from suite.config.digits import HOLD_NUMBERS, refuse_unread_numbers
from suite.config.explain import explain
from suite.config.interruption import interrupted_afterwards
from suite.config.overrides import parse, refuse_hydras_own, refuse_sweeps, take_hardware, tidy
from suite.config.own_files import own_files, refuse_files_of_hydras_own
from suite.config.plugin_files import asks_outside, plugin_files, refuse_doubled
from suite.config.plugin_settings import plugin_sheets, plugins_of, with_target
from suite.config.schema import RunSchema, register
from suite.config.typed import refuse_other_types
from suite.config.unknown import ENTRIES, no_such_key, refuse_unknown_entries, selected
from suite.errors import UsageError
from suite.settings import RunConfig

CONFIG_MODULE = "configs"
CONFIG_NAME = "run"
GROUPS_OF_SETTINGS = ("jobs", "backends", "measure", "store")
BARE = (ValueError, OSError, RecursionError, AssertionError, AttributeError)


@interrupted_afterwards()
def compose(overrides: Sequence[str], config_dir: Path | None = None) -> RunConfig:
    """Compose ``configs/run.yaml`` with ``overrides`` (``key=value``) and the YAMLs of ``config_dir``; those come first.

    Raises ``UsageError`` for anything that cannot be composed or run: unknown names, wrong types, broken YAML, bad values.
    """
    refuse_sweeps(overrides)
    rest, hardware = take_hardware(tidy(overrides, config_dir))
    refuse_hydras_own(rest)
    node = compose_node(rest, config_dir)
    _refuse_lost_search(node, rest, config_dir)
    refuse_files_of_hydras_own(node.hydra.runtime.choices, config_dir)
    return from_composed(node, hardware, config_dir)


@interrupted_afterwards()
def compose_node(overrides: Sequence[str], config_dir: Path | None = None) -> DictConfig:
    """The composed node as Hydra leaves it, with its ``hydra`` branch."""
    register()
    given = tidy(overrides, config_dir)
    with (
        own_files(config_dir),
        plugin_files(asks_outside([parse(text) for text in given], config_dir)),
        hydra.initialize_config_module(CONFIG_MODULE, version_base="1.3"),
    ):
        try:
            node: DictConfig = hydra.compose(CONFIG_NAME, given, return_hydra_config=True)
        # Hydra says some things with bare errors; nothing but its composing runs in this block.
        except (HydraException, OmegaConfBaseException, YAMLError, *BARE) as error:
            raise _without_search(error, given) or explain(error, config_dir) from error
    return node


def _refuse_lost_search(node: DictConfig, given: Sequence[str], config_dir: Path | None) -> None:
    """``search=null`` beside an experiment that is its search would measure what the search was only to begin with."""
    rest = [text for text in given if not _takes_search_away(text)]
    if len(rest) < len(given) and node.get("search") is None and compose_node(rest, config_dir).get("search") is not None:
        name = node.hydra.runtime.choices.get("experiment")
        raise UsageError(
            f"search=null leaves experiment={name} without the search that it is; leave it out, or choose another experiment, "
            "such as experiment=quick"
        )


def _takes_search_away(text: str) -> bool:
    override = parse(text)
    return override.key_or_group == "search" and (override.is_delete() or override.value() is None)


def _without_search(error: BaseException, given: Sequence[str]) -> UsageError | None:
    """What a setting below a ``search`` that is null ends in; nothing but ``search`` may be null and have settings."""
    if not (isinstance(error, AssertionError | AttributeError) and "NoneType" in str(error)):
        return None
    of_search = [text for text in given if parse(text).key_or_group.partition(".")[0] == "search"]
    return UsageError(f"{of_search[0]} is set but the run has no search; add experiment=peak") if of_search else None


@interrupted_afterwards()
def from_composed(node: DictConfig, hardware: str | None = None, config_dir: Path | None = None) -> RunConfig:
    """Turn a composed node (with its ``hydra`` branch, or as ``hydra.main`` passes it) into checked plain dataclasses.

    ``hardware`` is the sheet that was named on the command line and kept from Hydra; ``config_dir`` may hold more sheets.
    """
    told = node.hydra if "hydra" in node else HydraConfig.get()
    choices = told.runtime.choices
    try:
        values = _values(node)
        refuse_without_schema(node, choices, told.overrides.task, config_dir)
        _refuse_unselected(node, told.overrides.task)
    except OmegaConfBaseException as error:
        raise explain(error) from error
    refuse_doubled(choices, config_dir)
    values["backends"] = {name: with_target(settings) for name, settings in values["backends"].items()}
    plugins = plugins_of(values["jobs"], values["backends"])
    sheet = hardware or choices.get("hardware")
    config = RunConfig(
        **values,
        hardware=sheet,
        hardware_folders=[*_sheet_folders(config_dir), *plugin_sheets(sheet, plugins)],
        plugins=plugins,
        experiment=choices.get("experiment") or "",
    )
    check(config)
    return config


def _refuse_unselected(node: DictConfig, overrides: Sequence[str]) -> None:
    """A setting of a job or backend that the run leaves out: a file may carry it, on the command line it was meant to count."""
    for override in map(parse, overrides):
        group, _, rest = override.key_or_group.partition(".")
        name = rest.partition(".")[0]
        if group in ENTRIES and name in node[group] and not override.is_delete() and not selected(node[group][name]):
            raise no_such_key(f"{group}.{name}")


def _sheet_folders(config_dir: Path | None) -> list[str]:
    """The user's own sheets lie where Hydra looks for them too."""
    folder = config_dir / "hardware" if config_dir is not None else None
    return [str(folder.resolve())] if folder is not None and folder.is_dir() else []


def _values(node: DictConfig) -> dict[str, Any]:
    names = [field.name for field in fields(RunSchema) if field.name != "hardware"]
    for group in GROUPS_OF_SETTINGS:
        if not isinstance(node[group], DictConfig):  # what an interpolation came to
            refuse_other_types(group, node[group], dict[str, Any])
    if not isinstance(node.search, DictConfig):
        refuse_other_types("search", node.search, None | dict[str, Any])
    for key in node:
        if key not in (*names, "hardware", "hydra"):
            raise no_such_key(str(key))
    refuse_unknown_entries(node)
    values = {name: _object(node[name]) for name in names}
    hints = get_type_hints(RunSchema)
    for name, value in values.items():
        refuse_other_types(name, value, hints[name])
    for name in HOLD_NUMBERS:
        refuse_unread_numbers(name, values[name])
    for group in ("jobs", "backends"):
        values[group] = {name: settings for name, settings in values[group].items() if selected(node[group][name])}
    return values


def _object(value: Any) -> Any:
    return OmegaConf.to_object(value) if isinstance(value, DictConfig | ListConfig) else value
