"""What is wrong with the file of a store as SQLite keeps it: which pages, which tables, and how much of them can be read."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from suite.store import sqlite
from suite.store.damage import one_line

_TREE = re.compile(r"^(?:On tree page|Tree) (\d+)\b")
_PAGE = re.compile(r"^Page (\d+)\b")
_UNUSED = " is never used"  # follows from the other findings, for thousands of pages
_SOMETHING = "database disk image is malformed"  # what SQLite says of any damage
_IN = "*** in database main ***"  # what SQLite puts before its findings, which are lines of one text
_PAGE_SIZE, _PAGE_COUNT = slice(16, 18), slice(28, 32)  # of the file's header, big-endian


class Flaw(NamedTuple):
    """Something that is wrong with the file: in which table or part of it, and what."""

    where: str
    what: str


def flaws(path: Path) -> Iterator[Flaw]:
    """Everything that is wrong with a file that is a database; nothing where it is whole."""
    found = dict.fromkeys(_flaws(path))
    if found:
        found |= dict.fromkeys(_unread(path))
    yield from (flaw for flaw in found if flaw.what != _SOMETHING or len(found) == 1)


def _flaws(path: Path) -> Iterator[Flaw]:
    found = list(_as_sqlite_finds(path))
    cut = _cut(path)
    # A log may hold the pages that the file lacks, as where the disk was full when it was to be folded in.
    if cut and (found or not sqlite.unfinished(path)):
        yield Flaw("file", cut)
    yield from found


def _as_sqlite_finds(path: Path) -> Iterator[Flaw]:
    """What is wrong with the file and its log together."""
    try:
        with closing(sqlite.connect(path, sqlite.reading_options(path))) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except sqlite.FAILURES as error:
        yield Flaw("schema", sqlite.flaw(error))
    try:
        with closing(_open_anyway(path)) as connection:
            yield from _checked(connection)
    except sqlite.FAILURES as error:
        yield Flaw("schema", sqlite.flaw(error))


def _checked(connection: sqlite3.Connection) -> Iterator[Flaw]:
    lines = [line for (text,) in connection.execute("PRAGMA integrity_check") for line in str(text).splitlines()]
    if lines == ["ok"]:
        return
    owners = _owners(connection)
    unused = 0
    for line in lines:
        if line.endswith(_UNUSED):
            unused += 1
        elif line != _IN:
            yield _placed(line, owners)
    if unused:
        yield Flaw("file", f"{unused} page{'s' * (unused != 1)} that nothing refers to any more")


def _open_anyway(path: Path) -> sqlite3.Connection:
    """For reading only, and also where the file is shorter than its header says or a table's definition cannot be parsed."""
    connection = sqlite.connect(path, sqlite.reading_options(path))
    connection.text_factory = _lenient
    connection.execute("PRAGMA writable_schema=ON")
    return connection


def _lenient(content: bytes) -> str:
    return content.decode(errors="backslashreplace")


def _cut(path: Path) -> str:
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    page = int.from_bytes(header[_PAGE_SIZE], "big")
    whole = (65536 if page == 1 else page) * int.from_bytes(header[_PAGE_COUNT], "big")
    return f"it was cut: it has {size} of {whole} bytes" if size < whole else ""


def _placed(line: str, owners: dict[int, str]) -> Flaw:
    found = _TREE.match(line) or _PAGE.match(line)
    return Flaw(owners.get(int(found[1]), "file") if found else "file", one_line(line))


def _owners(connection: sqlite3.Connection) -> dict[int, str]:
    """The table of each page, as far as SQLite can follow its trees; every table's first page is known without."""
    owners: dict[int, str] = {}
    tables: dict[str, str] = dict(_rows(connection, "SELECT name, tbl_name FROM sqlite_schema"))
    for page, name in _rows(connection, "SELECT pageno, name FROM dbstat"):
        owners[page] = f"table {tables.get(name, name)}"
    for page, name in _rows(connection, "SELECT rootpage, tbl_name FROM sqlite_schema"):
        owners[page] = f"table {name}"
    return owners


def _rows(connection: sqlite3.Connection, statement: str) -> Iterator[tuple[Any, ...]]:
    """Rows up to the first that cannot be read; none where this SQLite was built without what is asked."""
    try:
        yield from connection.execute(statement)
    except sqlite.FAILURES:
        return


def _unread(path: Path) -> Iterator[Flaw]:
    """How far each table can be read that cannot be read to its end."""
    try:
        with closing(_open_anyway(path)) as connection:
            for (name,) in list(_rows(connection, "SELECT name FROM sqlite_schema WHERE type = 'table'")):
                if wrong := _how_far(connection, str(name)):
                    yield Flaw(f"table {name}", wrong)
    except sqlite.FAILURES:
        return  # said before


def _how_far(connection: sqlite3.Connection, table: str) -> str:
    rows = 0
    quoted = table.replace('"', '""')
    try:
        for _ in connection.execute(f'SELECT * FROM "{quoted}" NOT INDEXED'):
            rows += 1
    except sqlite.FAILURES as error:
        return f"{rows} of its rows can be read, and then no more: {sqlite.flaw(error)}"
    return ""
