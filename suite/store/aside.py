"""A store beside one that stays locked: it takes what a run has measured, and is merged into it once that is free."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from suite.store import schema, sqlite, standing, tables
from suite.store.prepared import new_id, prepared_insert
from suite.store.session import Session
from suite.store.standing import Standing

_ADD_RUN = prepared_insert(tables.table_of(tables.Run))


class Aside(NamedTuple):
    """The same run in the store beside: where its next results go."""

    session: Session
    run_id: int
    standing: Standing


def open_aside(path: Path, run: Mapping[str, Any], now: Standing) -> Aside:
    """Make a store beside the one at ``path`` with nothing but the run, on the devices and in the environment it has now."""
    number = 1
    while (beside := path.with_name(f"{path.name}.kept-{number}")).exists():
        number += 1
    schema.make_current(beside, sqlite.BUSY_TIMEOUT_S)
    session = Session(beside, sqlite.writer_engine(beside))
    with session.transaction() as connection:
        run_id = new_id(_ADD_RUN.run(connection, run))
        devices = [place.device for place in now.places.values()]
        return Aside(session, run_id, standing.add(connection, run_id, devices, now.environment))
