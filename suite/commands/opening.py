"""Opening the store of a run: an existing one at once, a new one only when everything that can be refused has been."""

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from suite.commands.known import SQLITE
from suite.commands.output import say
from suite.paths import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suite.store.writer import Store


class Opening:
    """Calling it gives the store, opened on ``stack``, the same each time.

    Raises ``StoreUnusable`` at once for a store that cannot be opened and for a place where none could be created.
    """

    def __init__(self, url: str, stack: ExitStack) -> None:
        from suite.commands.known import store_file

        self._url, self._stack = url, stack
        self.store: Store | None = None
        if store_file(url):
            self()
        else:
            refuse_place(url)

    def __call__(self) -> "Store":
        if self.store is None:
            from suite.store.session import LOCKED_AT_MOST_S, Patience
            from suite.store.writer import Store

            self.store = self._stack.enter_context(Store.open(self._url, patience=Patience(LOCKED_AT_MOST_S, say)))
            _say_what_was_done(self.store)
        return self.store


def refuse_store(url: str) -> None:
    """``StoreUnusable`` for what ``Opening`` would refuse, as far as looking tells: nothing is opened, upgraded or created.

    A run asks before it waits for a device, which may take hours.
    """
    from suite.commands.known import store_file

    if store_file(url):
        from suite.store.writer import refuse_unusable

        refuse_unusable(url)
    else:
        refuse_place(url)


def refuse_planned(url: str) -> None:
    """``StoreUnusable`` for what ``refuse_store`` refuses; no database is loaded where a new store can plainly be made."""
    name = url.removeprefix(SQLITE)
    if ":" in name or not _has_room(Path(name)):
        refuse_store(url)


def _has_room(path: Path) -> bool:
    with suppress(OSError, RuntimeError):
        path = path.expanduser()
        is_free = not path.exists() or (path.is_file() and not path.stat().st_size and os.access(path, os.R_OK | os.W_OK))
        return is_free and path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)
    return False


def refuse_place(url: str) -> None:
    """``StoreUnusable`` where no store could be created."""
    from suite.store.files import locate, refuse_unwritable

    refuse_unwritable(locate(url))


def _say_what_was_done(store: "Store") -> None:
    for line in orphan_lines(store.path, store.migrated.orphans):
        say(line)
    if store.migrated.backup is not None:
        say(f"store upgraded; the one before is kept as {shown(store.migrated.backup)}")


def orphan_lines(path: Path, moved: "Sequence[Path]") -> "Iterator[str]":
    """What was moved out of the way of a new store, where anything was."""
    if moved:
        names = " and ".join(map(shown, moved))
        yield f"{shown(path)} was gone, but not what lay beside it: kept as {names}; nothing of it is in the new store"
