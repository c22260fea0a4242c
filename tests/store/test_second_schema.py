"""A store of the first schema becomes one of this version: with nothing lost, and whole however the upgrade is killed."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import StoreUnusable
from suite.measurement import Measurement
from suite.store import maintain, schema
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import first_schema, material
from tests.store.first_schema import FIRST
from tests.store.killed_upgrade import MOMENTS

RESULTS = 3
LATER = (  # columns that the first schema has not
    "spans", "median_ns", "quantisation_error", "clocks", "median_cycles", "p50_cycles", "interval_low_cycles",
    "interval_high_cycles",
)  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return first_schema.make(tmp_path_factory.mktemp("first") / "store.db", RESULTS)


@pytest.fixture
def old(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "store.db"))


def contents(path: Path, table: str) -> list[tuple[object, ...]]:
    """Every row, with the columns of the first schema."""
    connection = sqlite3.connect(path)
    try:
        names = [row[1] for row in connection.execute(f'pragma table_info("{table}")') if row[1] not in LATER]
        columns = ", ".join(f'"{name}"' for name in names)
        return connection.execute(f'select {columns} from "{table}" order by 1').fetchall()
    finally:
        connection.close()


def revision(path: Path) -> str:
    ((found,),) = contents(path, "alembic_version")
    return str(found)


def of_the_first() -> Measurement:
    return material.measurement(samples=replace(material.sample_set(), spans=(), median_ns=None))


def tables(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        return {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    finally:
        connection.close()


def test_every_row_of_the_first_schema_is_kept_as_it_was(old: Path) -> None:
    before = {table: contents(old, table) for table in tables(old) - {"alembic_version"}}
    assert len(before["result"]) == len(before["sample_blob"]) == RESULTS
    upgraded = maintain.upgrade(str(old))
    assert upgraded == schema.Upgrade(FIRST, schema.LINEAGE[-1], old.with_name(f"store.db.bak-{FIRST}"))
    assert {table: contents(old, table) for table in before} == before
    assert maintain.check(str(old)) == []
    reader = Reader.open(str(old))
    assert [reader.detail(row.result_id).measurement for row in reader.results()] == [of_the_first()] * RESULTS
    assert (reader.selftests(), reader.repeatability("a1b2")) == ([], None)


def test_an_upgraded_store_takes_new_results_with_their_spans(old: Path) -> None:
    with Store.open(str(old)) as store, store.resume_run("latest") as run:
        row = run.record(material.record(material.planned(material.case(99))))
    reader = Reader.open(str(old))
    assert reader.detail(row.result_id).measurement == material.measurement()
    assert len(reader.results()) == RESULTS + 1


def test_a_reader_of_the_first_schema_is_told_what_to_do(old: Path) -> None:
    content = old.read_bytes()
    for ask in (Reader.open, maintain.check, lambda url: maintain.merge(url, str(old.with_name("target.db")))):
        with pytest.raises(StoreUnusable, match=rf"older schema {FIRST}, .* run `roofbench store upgrade` \(it keeps a copy\)"):
            ask(str(old))
    assert old.read_bytes() == content
    assert [entry.name for entry in old.parent.iterdir()] == ["store.db"]


@pytest.fixture(scope="module")
def killed(original: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A store for each moment at which its upgrade was killed."""
    folder = tmp_path_factory.mktemp("killed")
    paths = {}
    for number, moment in enumerate(MOMENTS):
        paths[moment] = folder / str(number) / "store.db"
        paths[moment].parent.mkdir()
        shutil.copy(original, paths[moment])
    command = [sys.executable, "-m", "tests.store.killed_upgrade", str(folder / "other.db")]
    command += [f"{moment}={path}" for moment, path in paths.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(MOMENTS), done.stderr
    return paths


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_upgrade_that_is_killed_leaves_the_old_store_or_the_new_one(
    killed: dict[str, Path], original: Path, moment: str
) -> None:
    path = killed[moment]
    found = schema.look(path)
    assert (found.state, found.revision) == (
        ("current", schema.LINEAGE[-1]) if moment == "after the commit" else ("older", FIRST)
    )
    assert contents(path, "sample_blob") == contents(original, "sample_blob")
    with Store.open(str(path)) as store:
        assert (store.migrated.backup is None) == (moment == "after the commit")
    assert (revision(path), maintain.check(str(path))) == (schema.LINEAGE[-1], [])
    assert len(Reader.open(str(path)).results()) == RESULTS
    backups = [entry for entry in path.parent.iterdir() if entry != path]
    assert backups
    for backup in backups:
        assert backup.name.startswith(f"store.db.bak-{FIRST}")
        assert backup.suffix != ".part"
        assert contents(backup, "result") == contents(original, "result")
