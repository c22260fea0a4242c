"""One chip under two spec sheets in one store: roofs are of the sheet that judged the results."""

from dataclasses import replace

import pytest

from suite.store.browsing import Browser
from tests.dashboard.opened import opened, words
from tests.dashboard.test_pages import figure, traces
from tests.report.builders import SPEC, device, result, run_info
from tests.report.stores import write_store

DERIVED = replace(SPEC, id="cpu", derived=True, peaks={"bf16": replace(SPEC.peaks["bf16"], value=4.3e12)})
MINE = replace(SPEC, id="my-xeon", name="My Xeon", peaks={"bf16": replace(SPEC.peaks["bf16"], value=12e12)})


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "s.db"
    derived = device(hardware=None, spec=DERIVED.to_json(), match_reason="derived")
    write_store(path, [result(512, hardware=None), result(1024, hardware=None)], devices=(derived,), info=run_info())
    mine = device(hardware="my-xeon", spec=MINE.to_json())
    write_store(path, [result(2048, hardware="my-xeon")], devices=(mine,), info=run_info())
    return path


@pytest.mark.parametrize("page", ["roofline", ""])
def test_each_sheet_has_its_own_named_roofs_and_a_note(monkeypatch, store, page):
    app = opened(monkeypatch, store, page=page, ceiling="spec")
    number = 0 if page else 1
    flat = {str(trace["hovertext"]) for trace in traces(app, "roof", number)}
    assert {"spec roof: derived: bf16 4.30 TFLOP/s", "spec roof: my-xeon: bf16 12.0 TFLOP/s"} <= flat
    notes = " ".join(note["text"] for note in figure(app, number)["layout"]["annotations"]).replace("\u00a0", " ")
    assert "judged by 2 sheets, each with roofs of its own:" in notes.replace("<br>", " ")
    assert "Spec sheet: My Xeon" in words(app)
    assert "Derived spec: " in words(app)


def test_results_of_one_sheet_stand_under_its_roofs_alone(monkeypatch, store):
    first = Browser.open(str(store)).entries()[-1].run
    app = opened(monkeypatch, store, page="roofline", ceiling="spec", run=first)
    flat = {str(trace["hovertext"]) for trace in traces(app, "roof")}
    assert "spec roof: bf16 4.30 TFLOP/s" in flat
    assert not [text for text in flat if "12.0 TFLOP/s" in text]
    assert "My Xeon" not in words(app)


def test_several_devices_say_whose_results_have_several_sheets(monkeypatch, store, two_stores):
    app = opened(monkeypatch, store, two_stores[1], page="roofline")
    assert "judged by 2 sheets, each with roofs of its own: " in words(app)
