"""The error of quantisation, which stores of the second schema had in descriptions only, becomes a number of each row."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from suite.case import Regime, items
from suite.measurement import Measurement
from suite.roofline import Ceilings, Summary, summarize
from suite.store import maintain, schema
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import first_schema, material
from tests.store.first_schema import SECOND

TOLD: tuple[object, ...] = (0.026, 0, "much", True, None, -1.0)
KNOWN = [0.026, 0.0, None, None, None, None]
BY_ROW = {"accumulate": "fp32", "scaling": "row"}


def described(number: int) -> Measurement:
    plain = material.measurement()
    return replace(plain, description={**plain.description, "quantisation_error": TOLD[number]})


def by_formulas(stored: maintain.Stored) -> Summary | None:
    limits = Ceilings(stored.device.info, None)
    return summarize(stored.measurement, stored.work, stored.case.regime, limits, stored.calibration)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return first_schema.make(tmp_path / "store.db", len(TOLD), SECOND, described)


def errors(path: Path) -> list[float | None]:
    return [row.quantisation_error for row in Reader.open(str(path)).results()]


def test_an_upgrade_keeps_every_row_and_a_rebuild_fills_the_errors_of_old_results(old: Path) -> None:
    assert maintain.upgrade(str(old)) == schema.Upgrade(SECOND, schema.LINEAGE[-1], old.with_name(f"store.db.bak-{SECOND}"))
    before = Reader.open(str(old))
    assert [before.detail(row.result_id).measurement for row in before.results()] == [described(n) for n in range(len(TOLD))]
    assert errors(old) == [None] * len(TOLD)
    connection = sqlite3.connect(old)  # as the version that wrote it said of itself
    connection.execute("update summary set formulas_version = 3")
    connection.commit()
    connection.close()
    assert maintain.rebuild(str(old), by_formulas) == len(TOLD)
    assert errors(old) == KNOWN
    assert maintain.rebuild(str(old), by_formulas) == 0
    assert maintain.check(str(old)) == []


def test_an_upgraded_store_takes_new_results_with_their_error(old: Path) -> None:
    with Store.open(str(old)) as store, store.resume_run("latest") as run:
        row = run.record(material.record(material.planned(material.case(99)), summary=material.summary(quantisation_error=0.5)))
    assert row.quantisation_error == errors(old)[-1] == 0.5


def test_a_row_says_how_its_numbers_are_scaled_as_it_is_recorded_and_as_it_is_read(tmp_path: Path) -> None:
    plain = material.case(format="fp8_e4m3", regime=Regime("cold", "sustained", "device"))
    scaled = replace(plain, workload=replace(plain.workload, semantics=items(BY_ROW)))
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:
        recorded = run.record(material.record(material.planned(scaled)))
        run.record(material.record(material.planned(plain)))
    rows = Reader.open(str(tmp_path / "s.db")).results()
    assert [row.format_label for row in rows] == ["fp8_e4m3 row", "fp8_e4m3"]
    assert rows[0].semantics == recorded.semantics == BY_ROW
    written = json.loads(json.dumps(rows[0].to_json()))
    assert (written["semantics"], written["quantisation_error"]) == (BY_ROW, recorded.quantisation_error)


def test_rows_do_not_share_what_they_say_of_their_scaling(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:
        for number in range(2):
            run.record(material.record(material.planned(material.case(number))))
    first, second = Reader.open(str(tmp_path / "s.db")).results()
    first.semantics["scaling"] = "row"
    assert second.format_label == "bf16"
