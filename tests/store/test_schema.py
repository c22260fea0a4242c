"""The schema: migrations and models agree, an older store is brought up after a copy, and nothing is half done."""

import sqlite3
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from suite.errors import RoofbenchError, StoreUnusable
from suite.store import maintain, schema, sqlite
from suite.store.listing import rows_statement
from suite.store.queries import Reader
from suite.store.tables import Base
from suite.store.writer import Store
from tests.store import material

HEAD = schema.LINEAGE[-1]
NEXT_REVISION = '''
"""A later schema, made up for this test: a new column, and a table rebuilt, as SQLite must for most changes."""
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"


def upgrade() -> None:
    op.add_column("run", sa.Column("site", sa.Text(), nullable=False, server_default="unknown"))
    with op.batch_alter_table("run", recreate="always") as batch:
        batch.alter_column("note", type_=sa.String(4000))
    {then}
'''


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store of this revision with one result."""
    path = tmp_path / "here" / "store.db"
    path.parent.mkdir()
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
        run.finish("complete")
    return path


def later_version(monkeypatch: pytest.MonkeyPatch, folder: Path, then: str = "") -> None:
    """Make this process the next version of roofbench: the packaged migrations and one more."""
    migrations = folder / "migrations"
    (migrations / "versions").mkdir(parents=True)
    for file in schema.MIGRATIONS.rglob("*.py"):
        (migrations / file.relative_to(schema.MIGRATIONS)).write_text(file.read_text())
    (migrations / "versions" / "r9999_next.py").write_text(NEXT_REVISION.format(head=HEAD, then=then))
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    monkeypatch.setattr(schema, "LINEAGE", (*schema.LINEAGE, "9999"))


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_the_lineage_is_that_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS).replace("%", "%%"))
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(revisions)) == schema.LINEAGE


def test_migrations_make_exactly_the_tables_of_the_models(old: Path) -> None:
    engine = create_engine(f"sqlite:///{old}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_tables_and_queries_can_be_said_to_postgresql() -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in Base.metadata.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
        assert all("CREATE INDEX" in str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes)
    assert "CAST(workload.params AS TEXT)" in str(rows_statement().compile(dialect=dialect))


def test_an_older_store_is_copied_and_then_migrated_with_nothing_lost(
    old: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = Reader.open(str(old)).detail(1)
    later_version(monkeypatch, tmp_path)
    with Store.open(str(old)) as store:
        assert store.migrated == schema.Upgrade(HEAD, "9999", old.parent / f"store.db.bak-{HEAD}")
        with store.resume_run("latest") as run:
            run.record(material.record(material.planned(material.case(1))))
    assert query(old, "select version_num from alembic_version") == [("9999",)]
    assert query(old, "select site from run") == [("unknown",)]
    assert Reader.open(str(old)).detail(1) == before
    assert maintain.check(str(old)) == []
    assert sorted(path.name for path in old.parent.iterdir()) == ["store.db", f"store.db.bak-{HEAD}"]
    monkeypatch.undo()
    assert Reader.open(str(old.parent / f"store.db.bak-{HEAD}")).detail(1) == before


def test_an_older_store_is_not_read_but_the_remedy_named(old: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    later_version(monkeypatch, tmp_path)
    with pytest.raises(StoreUnusable, match=rf"older schema {HEAD}.*`roofbench store upgrade`"):
        Reader.open(str(old))
    assert maintain.upgrade(str(old)).backup == old.parent / f"store.db.bak-{HEAD}"
    assert len(Reader.open(str(old)).results()) == 1
    assert maintain.upgrade(str(old)).backup is None


def test_a_migration_that_fails_leaves_the_store_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content = old.read_bytes()
    with monkeypatch.context() as later:
        later_version(later, tmp_path, then='op.execute("insert into nowhere values (1)")')
        with pytest.raises(StoreUnusable, match="no such table: nowhere"):
            Store.open(str(old))
    sqlite.at_rest(old)
    assert query(old, "select version_num from alembic_version") == [(HEAD,)]
    assert len(Reader.open(str(old)).results()) == 1
    assert (old.parent / f"store.db.bak-{HEAD}").stat().st_size == len(content)


def test_a_migration_that_would_lose_rows_is_taken_back(old: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as later:
        later_version(later, tmp_path, then='op.execute("delete from device")')
        with pytest.raises(StoreUnusable, match="rows would lose what they refer to"):
            Store.open(str(old))
    assert query(old, "select version_num from alembic_version") == [(HEAD,)]
    assert query(old, "select count(*) from device") == [(1,)]


def test_a_second_copy_does_not_overwrite_the_first(old: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (old.parent / f"store.db.bak-{HEAD}").write_text("precious")
    later_version(monkeypatch, tmp_path)
    assert maintain.upgrade(str(old)).backup == old.parent / f"store.db.bak-{HEAD}-2"
    assert (old.parent / f"store.db.bak-{HEAD}").read_text() == "precious"


def test_a_store_is_not_migrated_under_a_live_run(old: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Store.open(str(old)) as store, store.start_run(material.run_start()) as run:
        with monkeypatch.context() as later:
            later_version(later, tmp_path)
            with pytest.raises(StoreUnusable, match=f"run {run.run} is being written"):
                Store.open(str(old))
        run.record(material.record())
    assert [path.name for path in old.parent.iterdir()] == ["store.db"]


def test_runs_that_start_together_share_one_new_store(tmp_path: Path) -> None:
    path = tmp_path / "here" / "s.db"
    path.parent.mkdir()
    together, failures = threading.Barrier(4), []

    def start(number: int) -> None:
        together.wait()
        try:
            with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
                run.record(material.record(material.planned(material.case(number))))
                run.finish("complete")
        except RoofbenchError as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(Reader.open(str(path)).results()) == 4
    assert [entry.name for entry in path.parent.iterdir()] == ["s.db"]


def test_creating_a_store_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    later_version(monkeypatch, tmp_path, then='op.execute("insert into nowhere values (1)")')
    with pytest.raises(StoreUnusable, match="no such table"):
        Store.open(str(folder / "s.db"))
    assert list(folder.iterdir()) == []
    (folder / "empty.db").touch()
    with pytest.raises(StoreUnusable, match="no such table"):
        Store.open(str(folder / "empty.db"))
    assert query(folder / "empty.db", "select * from sqlite_master") == []
