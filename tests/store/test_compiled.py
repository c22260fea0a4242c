"""Cells in a store: what goes in comes out, once for what it depends on, in no one's results, and damage is found."""

import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from suite.errors import StoreUnusable
from suite.outcome import Outcome
from suite.store import maintain
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.targets.record import OUTCOMES, Compiled
from tests.store import material
from tests.targets.cells import AT, cell, estimated, failed


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here.db"


def record(path: Path, *cells: Compiled) -> None:
    with Store.open(str(path)) as store:
        for each in cells:
            store.record_compiled(each)


def stored(path: Path) -> list[Compiled]:
    return Reader.open(str(path)).compiled()


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_what_goes_in_comes_out(here: Path) -> None:
    late = failed("timeout", "not compiled within 300 s", "b").to_json()
    cells = [cell(), estimated(), failed("unsupported", "not made for it", target="gfx1100"), failed("crashed", "SIGABRT", "c")]
    record(here, *cells)
    assert sorted(stored(here), key=lambda each: each.key) == sorted(cells, key=lambda each: each.key)
    assert Reader.open(str(here)).compiled_by_keys([cells[0].key, "unknown"]) == {cells[0].key: cells[0]}
    assert maintain.check(str(here)) == []
    assert (late["evidence"], late["outcome"]) == ("compiled", "timeout")


def test_what_depends_on_the_same_stands_once_as_it_was_compiled_last(here: Path) -> None:
    again = cell(seconds=9.0, compiled_at=AT + timedelta(hours=1))
    record(here, cell(), again)
    assert stored(here) == [again]


def test_of_several_versions_of_the_tools_the_newest_is_shown_and_each_is_known(here: Path) -> None:
    older = cell(versions={"triton": "3.6"}, compiled_at=AT - timedelta(days=1))
    record(here, cell(), older)  # the older one was brought later, by a merge
    assert stored(here) == [cell()]
    assert set(Reader.open(str(here)).compiled_by_keys([cell().key, older.key])) == {cell().key, older.key}


def test_it_is_no_run_and_no_result(here: Path) -> None:
    record(here, cell())
    reader = Reader.open(str(here))
    assert (reader.runs(), reader.results()) == ([], [])
    with Store.open(str(here)) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
        run.finish("complete")
    assert {row.evidence for row in reader.results()} == {"measured"}
    maintain.prune(str(here), runs=[run.run])
    assert stored(here) == [cell()]


def test_a_merge_brings_what_is_missing_and_leaves_what_is_there(here: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    own = cell(seconds=3.0)
    record(here, cell(), cell("decode.bf16"))
    record(there, own)
    assert maintain.merge(str(here), str(there)).compiled_added == 1
    assert maintain.merge(str(here), str(there)).compiled_added == 0
    assert {(each.program, each.seconds) for each in stored(there)} == {("gemm.bf16", 3.0), ("decode.bf16", 1.25)}
    assert maintain.check(str(there)) == []


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("update compiled set outcome = 'incorrect'", "'incorrect' is no end of a compilation"),
        ("update compiled set outcome = 'splendid'", "splendid"),
        ("update compiled set facts = '[1]'", "facts"),
        ('update compiled set facts = \'{"registers": "many"}\'', "registers is 'many'"),
        ("update compiled set facts = '{\"warps\": 0}'", "warps is '0'"),
        ("update compiled set facts = '{\"instructions\": [1]}'", "instructions is"),
        ("update compiled set versions = '{\"triton\": 3}'", "versions are no texts"),
        ("update compiled set seconds = 'long'", "seconds"),
    ],
)
def test_damage_is_found_by_the_check_and_said_where_it_is_read(here: Path, statement: str, what: str) -> None:
    record(here, cell())
    change(here, statement)
    assert any(problem.where == "compiled 1" and what in problem.what for problem in maintain.check(str(here)))
    with pytest.raises(StoreUnusable, match="compiled"):
        stored(here)


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - set(OUTCOMES)))
def test_no_compilation_ends_as_a_measurement_does(outcome: Outcome) -> None:
    with pytest.raises(AssertionError):
        replace(cell(), outcome=outcome)
