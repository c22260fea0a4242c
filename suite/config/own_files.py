"""The user's own YAMLs come before the built-in ones, for ``compose`` and ``hydra.main`` alike.

``--config-dir`` and ``hydra.searchpath`` of Hydra itself put a folder last, where a file that has the name of a built-in
one is never read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from suite.errors import UsageError
from suite.paths import shown


class OwnFiles(SearchPathPlugin):  # type: ignore[misc]  # Hydra has no types here
    """Hydra makes one whenever it puts a search path together; ``folder`` is the user's, for as long as it is set."""

    folder: ClassVar[Path | None] = None

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        if self.folder is not None:
            search_path.prepend("config-dir", f"file://{self.folder.resolve()}", anchor="main")


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
