"""What to do about what is wrong with a store, in the order in which it loses least."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from suite.paths import for_shell
from suite.store import sqlite, tables
from suite.store.check import OF_RESULT
from suite.store.damage import UNREADABLE
from suite.store.files import shown
from suite.store.problem import (
    VERSION_TABLE,
    DerivedProblem,
    FileProblem,
    MissingReadings,
    Problem,
    StrangeObject,
    VersionProblem,
)
from suite.store.schema import LINEAGE
from suite.store.tables import Base

QUOTE = '"'
_ROW = re.compile(r"(?P<table>\w+) (?P<id>\d+)")

_RESULT = tables.table_of(tables.Result)
_RUN = tables.table_of(tables.Run)


def remedies(path: Path, found: Sequence[Problem]) -> Iterator[str]:
    """One line for each thing that can be done."""
    if any(isinstance(each, FileProblem) for each in found):
        yield from _of_file(path)
        return
    yield from _of_strange(path, [each for each in found if isinstance(each, StrangeObject)])
    if any(isinstance(each, VersionProblem) for each in found):
        yield from _of_versions(path)
    found = [each for each in found if not isinstance(each, StrangeObject | VersionProblem)]
    if found and all(isinstance(each, MissingReadings) for each in found):
        yield "nothing need be done: everything that reads them leaves these readings out"
    elif found and all(isinstance(each, (DerivedProblem, MissingReadings)) for each in found):
        yield f"derive anew what is wrong: {_command('rebuild', '--everything', '--store', path)}"
    elif found:
        yield from _of_measured(path, found)


def _of_file(path: Path) -> Iterator[str]:
    for copy in sorted(path.parent.glob(f"{_plain(path.name)}.bak-*")):
        yield f"an upgrade kept {shown(copy)}, the store as it was then: {_command('check', '--store', copy)}"
    new = path.with_name(f"{path.stem}-recovered{path.suffix}")
    salvage = f"sqlite3 {for_shell(str(path))} .recover | sqlite3 {for_shell(str(new))}"
    yield f"keep what can still be read in a new file, by a shell of SQLite that was built for it (sqlite.org's are): {salvage}"
    yield f"then {_command('check', '--store', new)}; where it is whole, {_command('merge', new)} takes its runs elsewhere"


def _of_strange(path: Path, found: Sequence[StrangeObject]) -> Iterator[str]:
    """The rows need nothing: what lies beside the tables goes, by a shell of SQLite."""
    if found:
        named = (each.where.partition(" ") for each in found)
        drops = " ".join(f'DROP {kind} "{name.replace(QUOTE, 2 * QUOTE)}";' for kind, _, name in named)
        yield f"remove what does not belong in it: sqlite3 {for_shell(str(path))} {for_shell(drops)}"


def _of_versions(path: Path) -> Iterator[str]:
    """The tables are those of this version: they could be read."""
    only = f"DELETE FROM {VERSION_TABLE}; INSERT INTO {VERSION_TABLE} VALUES ('{LINEAGE[-1]}');"
    yield f"leave the one version that its tables have: sqlite3 {for_shell(str(path))} {for_shell(only)}"


def _of_measured(path: Path, found: Sequence[Problem]) -> Iterator[str]:
    """What is derived is derived anew, where what it is derived of lets that be; the rest is for whole runs to lose."""
    lost = [each for each in found if not isinstance(each, DerivedProblem | MissingReadings)]
    if any(isinstance(each, DerivedProblem) for each in found) and all(OF_RESULT.fullmatch(each.where) for each in lost):
        yield f"derive anew what can be: {_command('rebuild', '--everything', '--store', path)}"
    yield from _of_rows(path, lost)


def _of_rows(path: Path, found: Sequence[Problem]) -> Iterator[str]:
    runs = sorted(_runs(path, found))
    if runs:
        named = len({row["id"] for each in found if (row := OF_RESULT.fullmatch(each.where))})
        copy = path.with_name(f"{path.name}.damaged")
        kept = f"cp -n {for_shell(str(path))} {for_shell(str(copy))}"
        yield f"what was measured cannot be derived anew, and goes with its whole run: keep a copy first: {kept}"
        loss = f"{_results_of(path, runs)}, {named} of them named above"
        yield f"then remove the runs that it is in ({loss}), and check again: {_command('prune', *runs, '--store', path)}"
    for copy in sorted(path.parent.glob(f"{_plain(path.name)}.bak-*")):
        yield f"an upgrade kept {shown(copy)}, the store as it was then: {_command('check', '--store', copy)}"


def _runs(path: Path, found: Sequence[Problem]) -> set[str]:
    """The runs of the rows that problems name, as far as they can be told."""
    rows = {(table["table"], int(table["id"])) for each in found if (table := _ROW.fullmatch(each.where))}
    try:
        with sqlite.reading(sqlite.checking_engine(path)) as connection:
            names = (_run_of(connection, *row) for row in rows)
            return {name for name in names if isinstance(name, str)}
    except (DBAPIError, *UNREADABLE):
        return set()


def _results_of(path: Path, runs: Sequence[str]) -> str:
    """``17 results`` of these runs together."""
    with sqlite.reading(sqlite.checking_engine(path)) as connection:
        of_runs = (
            select(func.count()).select_from(_RESULT).join(_RUN, _RUN.c.id == _RESULT.c.run_id).where(_RUN.c.name.in_(runs))
        )
        count = connection.scalar(of_runs) or 0
    return f"{count} result{'s' * (count != 1)}"


def _run_of(connection: Connection, name: str, key: int) -> str | None:
    table = Base.metadata.tables.get(name)
    if table is None:
        return None
    if table is _RUN:
        return connection.scalar(select(_RUN.c.name).where(_RUN.c.id == key))
    if "run_id" in table.c:
        return connection.scalar(select(_RUN.c.name).join(table, table.c.run_id == _RUN.c.id).where(table.c.id == key))
    if "result_id" in table.c:
        return _run_of(connection, _RESULT.name, key)
    return None


def _plain(name: str) -> str:
    """A name in which ``glob`` finds nothing special."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _command(*words: str | Path) -> str:
    return "roofbench store " + " ".join(for_shell(str(word)) for word in words)
