"""Cells that were compiled, which stores of the fourth schema have not."""

from pathlib import Path

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine, inspect

from suite.store import maintain, schema
from suite.store.migrations.versions import r0005_compiled
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import first_schema
from tests.store.first_schema import FOURTH
from tests.targets.cells import cell


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return first_schema.make(tmp_path / "store.db", 2, FOURTH)


def test_an_upgrade_keeps_every_row_and_has_nothing_compiled(old: Path) -> None:
    assert maintain.upgrade(str(old)) == schema.Upgrade(FOURTH, schema.LINEAGE[-1], old.with_name(f"store.db.bak-{FOURTH}"))
    reader = Reader.open(str(old))
    assert len(reader.results()) == 2
    assert reader.compiled() == []
    assert maintain.check(str(old)) == []


def test_an_upgraded_store_takes_cells(old: Path) -> None:
    with Store.open(str(old)) as store:
        store.record_compiled(cell())
    assert Reader.open(str(old)).compiled() == [cell()]
    assert maintain.check(str(old)) == []


def test_the_step_can_be_taken_back(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(str(old)) as store:
        store.record_compiled(cell())
    engine = create_engine(f"sqlite:///{old}")
    with engine.begin() as connection:
        with Operations.context(MigrationContext.configure(connection)):
            r0005_compiled.downgrade()
        assert "compiled" not in inspect(connection).get_table_names()
        assert "result" in inspect(connection).get_table_names()
    engine.dispose()
