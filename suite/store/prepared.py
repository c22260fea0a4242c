"""Statements of the write path, compiled once.

Recording a result takes half a dozen small statements; SQLAlchemy's own handling of each costs several times what the
database does.  Here the SQL text and the conversion of each parameter are worked out once for a dialect, and the driver
runs them; transactions and errors stay SQLAlchemy's.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, CursorResult, Dialect, Insert, Select, Table, insert
from sqlalchemy.types import TypeEngine


class _Compiled(NamedTuple):
    sql: str
    positional: bool
    parameters: tuple[tuple[str, Callable[[Any], Any] | None], ...]


class Prepared:
    """One statement; ``types`` says what each of its parameters is."""

    def __init__(self, statement: Insert | Select[Any], types: Mapping[str, TypeEngine[Any]]) -> None:
        self._statement = statement
        self._types = types
        self._compiled: dict[str, _Compiled] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> CursorResult[Any]:
        """Run the statement; ``ValueError`` for a value that its column refuses, ``KeyError`` for one that is missing."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        converted = [convert(values[name]) if convert else values[name] for name, convert in compiled.parameters]
        if compiled.positional:
            return connection.exec_driver_sql(compiled.sql, tuple(converted))
        names = [name for name, _ in compiled.parameters]
        return connection.exec_driver_sql(compiled.sql, dict(zip(names, converted, strict=True)))

    def _compile(self, dialect: Dialect) -> _Compiled:
        text = self._statement.compile(dialect=dialect, column_keys=list(self._types))
        names = list(text.positiontup or self._types)
        converters = [(name, self._types[name].dialect_impl(dialect).bind_processor(dialect)) for name in names]
        compiled = self._compiled[dialect.name] = _Compiled(str(text), bool(text.positional), tuple(converters))
        return compiled


def prepared_insert(table: Table) -> Prepared:
    """An insert of one row with all columns but a generated ``id``."""
    return Prepared(insert(table), {column.name: column.type for column in table.columns if column.name != "id"})


def new_id(result: CursorResult[Any]) -> int:
    """The ``id`` that the row just inserted was given."""
    return int(result.lastrowid)
