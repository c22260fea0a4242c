"""Reading a run's configuration back from its store."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from suite.config.check import check
from suite.config.explain import one_line
from suite.config.schema import is_outside
from suite.config.strict import structured
from suite.errors import UsageError
from suite.jobs.registry import find
from suite.settings import BackendSettings, MeasureSettings, RunConfig, SearchSettings, StoreSettings

KINDS = {"jobs": "job", "backends": "backend"}


def to_stored(config: RunConfig) -> dict[str, Any]:
    """The JSON form in which a run keeps its resolved configuration."""
    return asdict(config)


def from_stored(data: Mapping[str, Any]) -> RunConfig:
    """Undo ``to_stored``; ``UsageError`` where the run was stored by a version whose settings this one does not have, and where
    a plugin that it measured with is not installed.
    """
    _refuse_absent(data)
    try:
        config = RunConfig(**{**data, **_typed(data)})
    except (OmegaConfBaseException, TypeError) as error:
        raise UsageError(
            f"the stored configuration is not one of this version's: {one_line(error)}; start a new run"
        ) from error
    check(config)
    return config


def _refuse_absent(data: Mapping[str, Any]) -> None:
    """``UsageError`` that names the package, as far as the run has kept which it was."""
    for key, owner in data.get("plugins", {}).items():
        group, _, name = key.partition(".")
        kind = KINDS.get(group)
        if kind is not None and not is_outside(kind, name):
            raise UsageError(f"the run measured with {kind} '{name}' of {owner}, which is not installed; install it to go on")


def _typed(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "jobs": {name: _build(find(name).settings_type, values) for name, values in data["jobs"].items()},
        "backends": {name: _build(BackendSettings, values) for name, values in data["backends"].items()},
        "measure": _build(MeasureSettings, data["measure"]),
        "store": _build(StoreSettings, data["store"]),
        "search": _build(SearchSettings, data["search"]) if data.get("search") else None,
    }


def _build(kind: type, values: Mapping[str, Any]) -> Any:
    return OmegaConf.to_object(OmegaConf.merge(structured(kind), values))
