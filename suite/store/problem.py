"""Kinds of what is wrong with a store."""

from typing import NamedTuple

VERSION_TABLE = "alembic_version"


class Problem(NamedTuple):
    """Something that is not as it was written: where, and what."""

    where: str
    what: str


class FileProblem(Problem):
    """One of the file itself, below its rows."""


class DerivedProblem(Problem):
    """One of what can be derived anew from what was measured."""


class StrangeObject(Problem):
    """Something in the schema that no store of roofbench has: the rows are as they were written, the dashboard refuses it."""


class VersionProblem(Problem):
    """More than one row where one says which schema the store has."""


class MissingReadings(Problem):
    """Readings of telemetry that were missing: every reader leaves them out, and what is derived is derived of the others."""
