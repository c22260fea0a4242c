"""Opening the store of a run: an existing one at once, a new one only when everything that can be refused has been."""

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
            self._refuse_place()

    def __call__(self) -> "Store":
        if self.store is None:
            from suite.store.writer import Store

            self.store = self._stack.enter_context(Store.open(self._url))
            _say_migrated(self.store)
        return self.store

    def _refuse_place(self) -> None:
        from suite.store.files import locate, refuse_unwritable

        refuse_unwritable(locate(self._url))


def _say_migrated(store: "Store") -> None:
    if store.migrated.backup is not None:
        sys.stderr.write(f"roofbench: store upgraded; the one before is kept as {store.migrated.backup}\n")
