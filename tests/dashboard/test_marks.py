"""The column that decides whether a number is trusted is whole and in sight."""

import json

from dashboard.mark_codes import codes
from suite.report.words import marks
from tests.dashboard.builders import decode, other_device
from tests.dashboard.opened import opened, table, words
from tests.report.builders import result, run_info
from tests.report.stores import write_store

EVERY = {
    "converged": False, "steady": False, "contended": True, "throttle": "sw_power_cap 100%", "execution": "emulated",
    "evidence": "simulated", "interval_s": (1e-9, 1.0),
}  # fmt: skip


def test_every_mark_has_a_letter_of_its_own():
    alone = [codes(result(**{name: value})) for name, value in EVERY.items()]
    assert sorted(alone) == sorted("CSOTEMR")
    row = result(**EVERY)
    assert codes(row) == "RCSOTEM"
    assert len(marks(row)) == 7
    assert codes(result()) is None
    assert codes(result(interval_s=None, count=1)) == codes(result(interval_s=None, count=5)) == "I"
    assert codes(result(evidence="dreamt")) == "*"
    assert codes(result(share=1.01, hardware=None)) == "D"


def test_the_column_is_as_wide_as_its_letters_and_they_are_explained_once(monkeypatch, tmp_path):
    """It was cut at ``not converged, not steady, cont`` on a screen of 1400 px."""
    write_store(tmp_path / "s.db", [result(**EVERY), result(512, contended=True)], info=run_info())
    app = opened(monkeypatch, tmp_path / "s.db", page="gemm")
    column = json.loads(app.dataframe[-1].proto.columns)["Marks"]
    assert column["width"] >= 6.5 * len("RCSOTEM")
    before = json.loads(app.dataframe[-1].proto.columns)["Case"]["width"]
    assert list(table(app))[:2] == ["Case", "Marks"]
    assert before + column["width"] <= 390 - 32  # of a telephone, without its margins
    said = words(app)
    assert said.count("Marks: R not resolved, C not converged, S not steady, O contended: others used the device,") == 1
    assert "throttled: sw_power_cap 100 %" in table(app)["Remarks"].str.cat()


def test_tables_of_contests_and_of_devices_have_them_too(monkeypatch, tmp_path):
    rows = [decode(1024, contended=True, implementation=by, p50_s=time_s) for by, time_s in (("naive", 2e-3), ("triton", 1e-3))]
    write_store(tmp_path / "a.db", rows, info=run_info())
    write_store(tmp_path / "b.db", [decode(1024, p50_s=3e-3)], devices=(other_device(),), info=run_info())
    app = opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page="decode")
    tables = [each.value for each in app.dataframe if "Fastest" in each.value]
    assert tables
    for each in tables:
        columns = list(each)
        assert columns[columns.index("Fastest") + 1] == "Marks" or "Marks" not in columns
        assert ("Remarks" in columns) == ("Marks" in columns)
    assert any("Marks" in each for each in tables)
