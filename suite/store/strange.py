"""What lies in the schema of a file beside the tables of a store: views, triggers and virtual tables run what others wrote."""

from typing import NamedTuple

from sqlalchemy import Connection

_STRANGE = (
    "SELECT type, name FROM sqlite_schema WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%' ORDER BY type, name"
)


class Strange(NamedTuple):
    """One of them: ``view``, ``trigger``, or ``table`` for a virtual one."""

    kind: str
    name: str


def strange_objects(connection: Connection) -> list[Strange]:
    """Every view, trigger and virtual table, by kind and name."""
    return [Strange(str(kind), str(name)) for kind, name in connection.exec_driver_sql(_STRANGE)]
