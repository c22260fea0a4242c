"""The YAML of plugins: in Hydra's search path, after ours, as soon as something is asked for that is not ours.

A package that offers a job or a backend by an entry point keeps its files in a folder ``conf``, laid out as any Hydra
application's: ``conf/job/NAME.yaml``, ``conf/backend/NAME.yaml``, ``conf/experiment/...``.  The folder is that of the package
around the entry point's module, so that nothing has to be declared twice.  Two other ways were left: a package under
``hydra_plugins`` is imported by every Hydra program of the environment, in every plan of ours too; ``pkg://package.conf``
imports the package to find the folder.  This one is found without importing anything, and stands last, where it cannot take
the place of a file of ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from suite.config.schema import GROUPS, OFFERED_JOBS
from suite.errors import UsageError
from suite.hardware.catalogue import builtin
from suite.settings import OWN_BACKENDS

ONE_FILE = ("measure", "experiment", "store", "launcher")  # groups of which a run has one file, by any name
OWN_ENTRIES = {"jobs": OFFERED_JOBS, "backends": OWN_BACKENDS}


class PluginFiles(SearchPathPlugin):  # type: ignore[misc]  # Hydra has no types here
    """Hydra makes one whenever it puts a search path together; plugins are looked for while they are ``wanted``."""

    wanted: ClassVar[bool] = False

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        if self.wanted:
            for folder, owner in _folders().items():
                search_path.append(owner, f"file://{folder}")


@contextmanager
def plugin_files(wanted: bool) -> Iterator[None]:
    """Inside, Hydra looks into the folders of plugins last, where they are ``wanted``."""
    Plugins.instance().register(PluginFiles)
    PluginFiles.wanted = wanted
    try:
        yield
    finally:
        PluginFiles.wanted = False


def asks_outside(overrides: Sequence[Override], config_dir: Path | None) -> bool:
    """Whether anything is asked for that does not come with roofbench: a file of the user's own may name anything."""
    return config_dir is not None or any(map(_is_outside, overrides))


def _is_outside(override: Override) -> bool:
    key = override.key_or_group
    if key in GROUPS:
        return override.is_sweep_override() or not all(_is_own_file(key, name) for name in _names(override))
    first, _, rest = key.partition(".")
    if first in OWN_ENTRIES:
        return rest.partition(".")[0] not in OWN_ENTRIES[first]
    return "/" in key or key == "hydra.searchpath"


def _names(override: Override) -> list[Any]:
    value = None if override.is_delete() else override.value()
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def _is_own_file(group: str, name: object) -> bool:
    return not isinstance(name, str) or (builtin(group) / f"{name}.yaml").is_file()


def refuse_doubled(choices: Mapping[str, Any], config_dir: Path | None) -> None:
    """``UsageError`` for a file that several plugins have by one name: the first would be read, and the others never."""
    for group in ONE_FILE:
        name = choices.get(group)
        file = f"{group}/{name}.yaml"
        if name is None or _is_own_file(group, name) or (config_dir is not None and (config_dir / file).is_file()):
            continue
        owners = sorted(owner for folder, owner in _folders().items() if (folder / file).is_file())
        if len(owners) > 1:
            raise UsageError(f"{group} '{name}' comes with {' and with '.join(owners)}; uninstall all but one of them")


def without_file(group: str, name: str) -> str:
    """Why a job or a backend that a plugin offers cannot be chosen: its file is not there; empty where none offers it."""
    from suite.plugins.offers import find
    from suite.plugins.place import config_folder

    offer = find(group, name)
    if offer is None:
        return ""
    module = offer.target.partition(":")[0]
    folder = config_folder(module)
    return f"{offer.title} has no file {group}/{name}.yaml in {folder or f'a folder conf of the package of {module}'}"


def _folders() -> Mapping[Path, str]:
    from suite.plugins.used import config_folders

    return config_folders()
