"""What programs became on targets: written one cell at a time, and read by what it depends on or by where it stands."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, and_, delete, func, select

from suite.outcome import Outcome
from suite.store import tables
from suite.store.damage import converting, json_object
from suite.store.kinds import are_named_texts, are_texts, is_text
from suite.store.prepared import prepared_insert
from suite.targets.record import OUTCOMES, Compiled

_COMPILED = tables.table_of(tables.Compiled)
_ADD = prepared_insert(_COMPILED)
LARGEST = 1 << 40  # of what a kernel takes of anything
MOST_CELLS = 10_000
_AT_ONCE = 500  # keys in one statement
_PLAIN = ("key", "kernel", "program", "target", "reason", "configuration", "seconds", "compiled_at")


def put(connection: Connection, compiled: Compiled) -> None:
    """Store a cell; one of the same key is replaced: it was compiled again."""
    connection.execute(delete(_COMPILED).where(_COMPILED.c.key == compiled.key))
    plain = {name: getattr(compiled, name) for name in _PLAIN}
    maps = {"facts": dict(compiled.facts), "versions": dict(compiled.versions)}
    _ADD.run(connection, {**plain, **maps, "outcome": compiled.outcome.value})


def by_keys(connection: Connection, keys: Collection[str]) -> dict[str, Compiled]:
    """The cells of these keys that the store has."""
    wanted = sorted(keys)
    found: dict[str, Compiled] = {}
    for first in range(0, len(wanted), _AT_ONCE):
        rows = connection.execute(select(_COMPILED).where(_COMPILED.c.key.in_(wanted[first : first + _AT_ONCE])))
        found.update((row.key, to_compiled(row)) for row in rows)
    return found


def newest(connection: Connection) -> list[Compiled]:
    """Of each program on each target what was compiled last, in the order in which it was; at most ``MOST_CELLS``."""
    place = (_COMPILED.c.target, _COMPILED.c.program)
    last = select(*place, func.max(_COMPILED.c.compiled_at).label("at")).group_by(*place).limit(MOST_CELLS).subquery()
    same = (last.c.target == _COMPILED.c.target, last.c.program == _COMPILED.c.program, last.c.at == _COMPILED.c.compiled_at)
    rows = connection.execute(select(_COMPILED).join(last, and_(*same)).order_by(_COMPILED.c.compiled_at, _COMPILED.c.id))
    return list({(row.program, row.target): to_compiled(row) for row in rows}.values())


def known(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Which of these keys the store has."""
    found: set[str] = set()
    for first in range(0, len(keys), _AT_ONCE):
        wanted = _COMPILED.c.key.in_(keys[first : first + _AT_ONCE])
        found |= set(connection.scalars(select(_COMPILED.c.key).where(wanted)))
    return found


def to_compiled(row: Any) -> Compiled:
    """A row as readers see it; ``Damaged`` where it cannot be read."""
    with converting(f"compiled {row.id}"):
        outcome = Outcome(row.outcome)
        if outcome not in OUTCOMES:
            raise ValueError(f"'{outcome.value}' is no end of a compilation")
        versions = json_object(row.versions, "versions")
        if not all(isinstance(version, str) for version in versions.values()):
            raise ValueError("versions are no texts")
        return Compiled(
            **{name: getattr(row, name) for name in _PLAIN},
            outcome=outcome,
            facts=_facts(row.facts),
            versions=versions,
        )


def _facts(stored: object) -> dict[str, Any]:
    """Those that figures are made of are numbers; lists and texts are what they should be."""
    facts = json_object(stored, "facts")
    for name, value in facts.items():
        if not _FITS.get(name, _is_number)(value):
            raise ValueError(f"of its facts, {name[:40]} is {str(value)[:40]!r}")
    return facts


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_size(value: object) -> bool:
    return _is_number(value) and isinstance(value, int) and value <= LARGEST


def _is_count(value: object) -> bool:
    return _is_size(value) and value != 0


_FITS = {
    **dict.fromkeys(("kernel", "execution", "instead"), is_text),
    "instructions": are_texts,
    "passed_over": are_named_texts,
    **dict.fromkeys(("registers", "scalar_registers", "spilled_bytes", "shared_bytes", "tensor_columns"), _is_size),
    **dict.fromkeys(("warps", "devices_of_chip"), _is_count),
}
