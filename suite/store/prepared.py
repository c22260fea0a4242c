"""Statements of the write path, compiled once.

Recording a result takes half a dozen small statements; SQLAlchemy's own handling of each costs several times what the
database does.  Here the SQL text and the conversion of each parameter are worked out once for a dialect, and the driver
runs them; transactions and errors stay SQLAlchemy's.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Dialect, Insert, Select, Table, insert
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine


class _Compiled(NamedTuple):
    sql: str
    positional: bool
    parameters: tuple[tuple[str, Callable[[Any], Any] | None], ...]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.parameters]


class Prepared:
    """One statement; ``types`` says what each of its parameters is."""

    def __init__(self, statement: Insert | Select[Any], types: Mapping[str, TypeEngine[Any]]) -> None:
        self._statement = statement
        self._types = types
        self._compiled: dict[str, _Compiled] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> DBAPICursor:
        """Run the statement in the connection's transaction and give the driver's cursor.

        ``ValueError`` for a value that its column refuses, ``KeyError`` for one that is missing, and of the database's
        errors SQLAlchemy's ``DBAPIError``.
        """
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        converted = [convert(values[name]) if convert else values[name] for name, convert in compiled.parameters]
        parameters = converted if compiled.positional else dict(zip(compiled.names, converted, strict=True))
        cursor = connection.connection.cursor()
        try:
            cursor.execute(compiled.sql, parameters)
        except connection.dialect.loaded_dbapi.Error as error:
            raise _wrapped(error, connection.dialect, compiled.sql) from error
        return cursor

    def _compile(self, dialect: Dialect) -> _Compiled:
        text = self._statement.compile(dialect=dialect, column_keys=list(self._types))
        names = list(text.positiontup or self._types)
        converters = [(name, self._types[name].dialect_impl(dialect).bind_processor(dialect)) for name in names]
        compiled = self._compiled[dialect.name] = _Compiled(str(text), bool(text.positional), tuple(converters))
        return compiled


def prepared_insert(table: Table) -> Prepared:
    """An insert of one row with all columns but a generated ``id``."""
    return Prepared(insert(table), {column.name: column.type for column in table.columns if column.name != "id"})


def new_id(cursor: DBAPICursor) -> int:
    """The ``id`` that the row just inserted was given."""
    return int(cursor.lastrowid)


def _wrapped(error: Exception, dialect: Dialect, sql: str) -> BaseException:
    return DBAPIError.instance(sql, None, error, dialect.loaded_dbapi.Error, dialect=dialect)
