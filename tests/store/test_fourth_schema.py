"""Clocks over samples, and cycles, which stores of the third schema have not."""

from pathlib import Path

import pytest

from suite.store import maintain, schema
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import first_schema, material
from tests.store.first_schema import THIRD


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return first_schema.make(tmp_path / "store.db", 2, THIRD)


def test_an_upgrade_keeps_every_row_and_says_that_no_clock_was_counted(old: Path) -> None:
    assert maintain.upgrade(str(old)) == schema.Upgrade(THIRD, schema.LINEAGE[-1], old.with_name(f"store.db.bak-{THIRD}"))
    reader = Reader.open(str(old))
    rows = reader.results()
    assert [reader.detail(row.result_id).measurement for row in rows] == [material.measurement()] * 2
    assert [(row.p50_cycles, row.interval_cycles) for row in rows] == [(None, None)] * 2
    assert maintain.check(str(old)) == []


def test_an_upgraded_store_takes_results_with_their_clocks_and_cycles(old: Path) -> None:
    derived = material.summary(p50_cycles=2670.0, interval_low_cycles=2669.0, interval_high_cycles=2671.5)
    with Store.open(str(old)) as store, store.resume_run("latest") as run:
        planned = material.planned(material.case(99))
        recorded = run.record(material.record(planned, material.counted(), summary=derived))
    reader = Reader.open(str(old))
    row = reader.results()[-1]
    assert (
        (row.p50_cycles, row.interval_cycles) == (recorded.p50_cycles, recorded.interval_cycles) == (2670.0, (2669.0, 2671.5))
    )
    assert reader.detail(row.result_id).measurement == material.counted()
