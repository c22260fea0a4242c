"""Upgrades of a store that are killed at a chosen moment, for ``test_second_schema``.

python -m tests.store.killed_upgrade OTHER MOMENT=PATH...   a process for each, forked from one that has loaded everything and
                                                            made the store OTHER; prints how each ended
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from alembic import op

from suite.store import schema, sqlite
from suite.store.writer import Store
from tests.store import material


def _die(*_: object) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _after(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        function(*arguments, **options)
        _die()

    return call


# What dies, by the moment: the places where an upgrade has done one thing and not yet the next.
MOMENTS: dict[str, tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "in the copy": (os, "rename", lambda _: _die),
    "after the copy": (sqlite, "back_up", _after),
    "before the tables": (schema, "migrate", lambda _: _die),
    "between columns and tables": (op, "add_column", _after),
    "between tables and indexes": (op, "create_table", _after),
    "before the commit": (sqlite, "lost_references", lambda _: _die),
    "after the commit": (sqlite, "at_rest", lambda _: _die),
}


def main(*chosen: str) -> None:
    for moment, _, path in (each.partition("=") for each in chosen):
        child = os.fork()
        if child == 0:
            place, name, dying = MOMENTS[moment]
            setattr(place, name, dying(getattr(place, name)))
            with Store.open(path):
                pass
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _warm_up(path: str) -> None:
    """Load Alembic and SQLAlchemy's dialect once, for all."""
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        run.finish("complete")


if __name__ == "__main__":
    _warm_up(sys.argv[1])
    main(*sys.argv[2:])
