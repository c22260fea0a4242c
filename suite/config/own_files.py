"""The user's own YAMLs come before the built-in ones, for ``compose`` and ``hydra.main`` alike.

``--config-dir`` and ``hydra.searchpath`` of Hydra itself put a folder last, where a file that has the name of a built-in
one is never read.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import ListConfig

from suite.errors import UsageError
from suite.paths import shown

_HYDRA = re.compile(r"""^(?:hydra|"hydra"|'hydra')\s*:""", re.MULTILINE)


class OwnFiles(SearchPathPlugin):  # type: ignore[misc]  # Hydra has no types here
    """Hydra makes one whenever it puts a search path together; ``folder`` is the user's, for as long as it is set."""

    folder: ClassVar[Path | None] = None

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        if self.folder is not None:
            search_path.prepend("config-dir", f"file://{self.folder.resolve()}", anchor="main")


def refuse_files_of_hydras_own(choices: Mapping[str, Any], config_dir: Path | None) -> None:
    """A single run is not Hydra's: what a chosen file of the user's sets below ``hydra`` would be dropped in silence."""
    if config_dir is None:
        return
    for file in (config_dir / group / f"{name}.yaml" for group, names in choices.items() for name in _names(names)):
        if file.is_file() and _HYDRA.search(file.read_text(encoding="utf-8", errors="replace")):
            raise UsageError(
                f"{shown(file)}: hydra has no effect here; only `roofbench run -m` goes through Hydra's launcher; leave it out"
            )


def _names(names: Any) -> list[str]:
    return [str(each) for each in (names if isinstance(names, list | tuple | ListConfig) else [names])]


@contextmanager
def own_files(config_dir: Path | None) -> Iterator[None]:
    """Inside, Hydra looks into ``config_dir`` first; ``UsageError`` where that is no folder."""
    if config_dir is not None and not config_dir.is_dir():
        raise UsageError(
            f"--config-dir {shown(config_dir)} is not a directory; name one that holds groups such as experiment/mine.yaml"
        )
    Plugins.instance().register(OwnFiles)
    OwnFiles.folder = config_dir
    try:
        yield
    finally:
        OwnFiles.folder = None
