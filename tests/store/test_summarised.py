"""What is derived and cannot be so is named by a check and derived anew; what other versions derived is not held against it."""

import shlex
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from suite.commands.store import summarized
from suite.errors import StoreUnusable
from suite.hardware.catalogue import load
from suite.roofline import FORMULAS_VERSION
from suite.store import maintain
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import material


@cache
def whole() -> bytes:
    """A store of one run with three results of a device whose sheet is stored with it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        device = replace(material.device(max_clock_hz=1.98e9), spec=load("nvidia-h200-sxm5-141gb").to_json())
        with Store.open(str(path)) as store, store.start_run(material.run_start(device)) as run:
            for number in range(3):
                run.record(material.record(material.planned(material.case(number))))
            run.finish("complete")
        assert maintain.rebuild(str(path), summarized, everything=True) == 3
        return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    path.write_bytes(whole())
    return path


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(statement)


def test_what_the_formulas_give_is_whole(path: Path) -> None:
    assert maintain.check(str(path)) == []
    with Reader.open(str(path)) as reader:
        assert all(row.fractions.spec for row in reader.results())


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("bound = 'foo'", "bound: 'foo' is none of compute, memory, cache, link, launch, unknown"),
        ("fraction_spec = 5", "fraction_spec: 5 is not what follows from its rate, "),
        ("fraction_spec = fraction_spec * 1.001", "fraction_spec: "),
        ("fraction_boost = 0.5", "fraction_boost: 0.5 is not"),
        ("fraction_at_clock = 0.123, clock_hz = 1e9", "fraction_at_clock: 0.123 is not"),
    ],
)
def test_a_summary_that_cannot_be_is_named_and_derived_anew(path: Path, statement: str, says: str) -> None:
    with Reader.open(str(path)) as reader:
        before = reader.results()
    change(path, f"update summary set {statement} where result_id = 2")
    (found,) = maintain.check(str(path))
    assert found.where == "summary 2"
    assert found.what.startswith(says)
    assert "roofbench store rebuild" in maintain.remedies(str(path), [found])[0]
    assert maintain.rebuild(str(path), summarized) == 1
    assert maintain.check(str(path)) == []
    with Reader.open(str(path)) as reader:
        assert reader.results() == before


def test_what_other_formulas_gave_is_not_called_damaged(path: Path) -> None:
    change(path, "update summary set fraction_spec = 0.5, bound = 'of old'")
    for version in (FORMULAS_VERSION - 1, FORMULAS_VERSION + 1):
        change(path, f"update summary set formulas_version = {version}")
        assert maintain.check(str(path)) == []


def test_a_sheet_that_is_not_in_the_store_says_nothing(path: Path) -> None:
    """As older versions kept it: the sheet of the table is looked up by its id."""
    change(path, "update device set spec = 'null'")
    assert maintain.check(str(path)) == []


def test_a_derived_spec_that_is_gone_is_named(path: Path) -> None:
    change(path, "update device set spec = 'null', hardware = 'cpu'")
    (found,) = maintain.check(str(path))
    assert found == ("device 1", "the spec that was derived of it is missing")


def test_a_status_that_is_none_is_named(path: Path) -> None:
    change(path, "update run set status = 'zzz'")
    assert maintain.check(str(path)) == [("run 1", "its status 'zzz' is none of running, complete, interrupted, failed")]


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("create view v as select 1", "view v"),
        ('create view "a ""b" as select 1', 'view a "b'),
        ("create trigger t after insert on run begin select 1; end", "trigger t"),
        ("create virtual table x using fts5(a)", "table x"),
    ],
)
def test_what_lies_beside_the_tables_is_named_with_how_to_remove_it_and_its_rows_can_be_used(
    statement: str, where: str, path: Path
) -> None:
    change(path, statement)
    found = maintain.check(str(path))
    assert [each.where for each in found] == [where]
    assert found[0].what.endswith("which no store of roofbench has")
    (remedy,) = maintain.remedies(str(path), found)
    change(path, shlex.split(remedy.partition(": ")[2])[2])
    assert maintain.check(str(path)) == []
    change(path, statement)
    if not where.startswith("table"):  # which runs nothing by itself
        with pytest.raises(StoreUnusable, match=r"which no store of roofbench has, and is not written into: .* store check"):
            maintain.rebuild(str(path), summarized)
    assert maintain.merge(str(path), str(path.with_name("other.db"))).results_added == 3


@pytest.mark.parametrize("versions", ["('0004')", "('0005')"])
def test_a_store_of_two_versions_is_not_whole_and_not_written_into(versions: str, path: Path) -> None:
    """It was whole to a check, and of the one that stood there first to everybody else."""
    change(path, "create table old as select * from alembic_version; drop table alembic_version; alter table old rename to "
                 f"alembic_version; insert into alembic_version values {versions}")  # fmt: skip
    found = maintain.check(str(path))
    assert [each.where for each in found] == ["alembic_version"]
    assert found[0].what.startswith("2 rows (000")
    for write in (maintain.upgrade, maintain.vacuum, lambda url: Store.open(url).close()):
        with pytest.raises(StoreUnusable, match=r"says that its schema is 000\d and 0005: `roofbench store check` says"):
            write(str(path))
    Reader.open(str(path)).close()
    (remedy,) = maintain.remedies(str(path), found)
    change(path, shlex.split(remedy.partition(": ")[2])[2])
    assert maintain.check(str(path)) == []


def test_a_remedy_that_loses_a_run_says_what_goes_with_it_and_keeps_a_copy(path: Path) -> None:
    """One field of one result was to be mended by removing everything of its run, at once."""
    change(path, "update result set interval_low_s = 'x' where id = 2; update summary set p05_s = 'x' where result_id = 3")
    derive, keep, remove = maintain.remedies(str(path), maintain.check(str(path)))
    assert derive == f"derive anew what can be: roofbench store rebuild --everything --store {path}"
    assert keep.endswith(f"keep a copy first: cp -n {path} {path}.damaged")
    assert remove.startswith(
        "then remove the runs that it is in (3 results, 1 of them named above), and check again: roofbench"
    )
    maintain.rebuild(str(path), summarized, everything=True)
    assert maintain.remedies(str(path), maintain.check(str(path))) == [keep, remove]
