"""A store as an earlier version of roofbench left it: migrated to its revision only, its rows without later columns."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from suite.measurement import Measurement
from suite.store import schema, sqlite
from suite.store.writer import Store
from tests.store import material

FIRST, SECOND, THIRD, FOURTH = "0001", "0002", "0003", "0004"


def make(path: Path, results: int = 3, revision: str = FIRST, measured: Callable[[int], Measurement] | None = None) -> Path:
    """Write a complete run with ``results`` results, a log and an artifact into a new store of an earlier schema."""
    now = path.with_name("now.db")
    with Store.open(str(now)) as store, store.start_run(material.run_start()) as run:
        for number in range(results):
            run.record(material.record(material.planned(material.case(number)), measured(number) if measured else None))
        run.log("worker-0", "from the first version\n", slot=0)
        run.artifact("trace", b"[1, 2]" * 1000)
        run.finish("complete")
    path.touch()
    engine = sqlite.writer_engine(path, foreign_keys=False)
    with engine.connect() as connection, sqlite.writing(connection):
        schema.migrate(connection, revision)
    engine.dispose()
    _copy(now, path)
    sqlite.at_rest(path)
    now.unlink()
    return path


def _copy(now: Path, first: Path) -> None:
    """Every row of ``now``, with the columns that its table had then."""
    connection = sqlite3.connect(first)
    connection.execute("attach ? as now", (str(now),))
    tables = [name for (name,) in connection.execute("select name from main.sqlite_master where type = 'table'")]
    for table in tables:
        if table != "alembic_version":
            columns = ", ".join(f'"{row[1]}"' for row in connection.execute(f'pragma main.table_info("{table}")'))
            connection.execute(f'insert into main."{table}" ({columns}) select {columns} from now."{table}"')
    connection.commit()
    connection.close()
