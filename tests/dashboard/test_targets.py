"""The page of what was compiled: over stores with and without runs, and one that was made to do harm."""

import json
import sqlite3
from dataclasses import replace
from datetime import timedelta

import pytest

from suite.store.writer import Store
from suite.targets.names import TARGETS
from tests.dashboard.opened import charts, labels, opened, words
from tests.targets.cells import AT, cell, estimated, failed
from tests.targets.scripted import facts

CELLS = (
    cell(facts=facts(registers=155, shared_bytes=213_016, warps=8, instructions=["wgmma.m64n256k16"])),
    cell(target="gfx942", facts=facts(execution="upcast", instead="operands converted", spilled_bytes=16)),
    failed("unsupported", "no configuration is made for gfx1100", target="gfx1100"),
    failed("crashed", "the compiler's process died of SIGABRT", "decode.bf16", "sm_80"),
    estimated(),
)


def store_of(path, *cells):
    with Store.open(str(path)) as store:
        for each in cells:
            store.record_compiled(each)
    return path


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A store that nothing was measured into."""
    return store_of(tmp_path_factory.mktemp("compiled") / "c.db", *CELLS)


def marks(app, number=0):
    (points,) = [trace for trace in json.loads(charts(app)[number].proto.spec)["data"] if trace.get("meta") == "cells"]
    return points


def test_a_store_without_runs_opens_on_what_was_compiled(monkeypatch, compiled):
    app = opened(monkeypatch, compiled)
    assert not app.exception
    assert not app.error
    assert "5 cells, compiled: no program here has run" in words(app)
    assert [len(marks(app, number)["text"]) for number in range(2)] == [4, 1]
    assert sorted(marks(app)["text"]) == ["-", "C", "N", "U*"]
    assert "Why cells are empty" in words(app)


def test_figures_stand_in_the_table_and_in_the_hover(monkeypatch, compiled, one_store):
    app = opened(monkeypatch, one_store, compiled, page="targets")
    assert not app.exception
    table = app.dataframe[-1].value
    by_place = {(line["Program"], line["Target"]): line for line in table.to_dict("records")}
    assert len(by_place) == len(CELLS)
    hopper = by_place["gemm.bf16", "sm_90"]
    assert (hopper["Registers"], hopper["Resident warps"], hopper["Occupancy"]) == (155, 8, 0.125)
    assert hopper["Limited by"] == "registers, shared memory"
    assert by_place["xla_gemm.bf16", "v5e"]["Estimate (TFLOP/s)"] == pytest.approx(197, rel=0.01)
    assert by_place["decode.bf16", "sm_80"]["Reason"] == "the compiler's process died of SIGABRT"
    why = app.table[0].value.to_dict("records")
    assert [line["Should compile"] for line in why] == ["yes", "no"]
    hover = "\n".join(marks(app)["hovertext"])
    assert "8 warps a unit, 12.5 %, limited by registers, shared memory" in hover
    assert "operands converted" in hover
    assert max(len(line) for text in marks(app)["hovertext"] for line in text.split("<br>")) <= 64
    (axis,) = (json.loads(chart.proto.spec)["layout"]["xaxis"] for chart in charts(app)[:1])
    assert axis["scaleanchor"] == "y"  # the figure takes its whole place, and its cells stay as they are


def test_choices_narrow_the_page(monkeypatch, compiled):
    app = opened(monkeypatch, compiled, page="targets")
    assert labels(app)["Targets"] == [target.name for target in TARGETS if target.name in {each.target for each in CELLS}]
    app.multiselect(key="kernel").select("decode").run()
    assert list(app.dataframe[-1].value["Program"]) == ["decode.bf16"]
    assert len(charts(app)) == 1


def test_of_several_stores_the_newest_cell_is_shown(monkeypatch, compiled, tmp_path):
    newer = replace(CELLS[0], compiled_at=AT + timedelta(days=1), configuration="a newer one")
    app = opened(monkeypatch, store_of(tmp_path / "n.db", newer), compiled, page="targets")
    table = app.dataframe[-1].value
    assert len(table) == len(CELLS)
    assert "a newer one" in set(table["Configuration"])


def test_a_store_where_nothing_was_compiled_says_how(monkeypatch, one_store):
    app = opened(monkeypatch, one_store, page="targets")
    assert not app.exception
    assert "Nothing was compiled yet." in words(app)
    assert "roofbench targets" in words(app)


def test_text_of_a_hostile_store_stays_text_and_short(monkeypatch, tmp_path):
    evil = "<script>alert(1)</script>" * 1000
    cells = [cell(evil, facts=facts(instructions=[evil] * 500, instead=evil)), failed("error", evil, "b")]
    app = opened(monkeypatch, store_of(tmp_path / "h.db", *cells, cell(target="sm_90 no target")), page="targets")
    assert not app.exception
    spec = charts(app)[0].proto.spec
    assert "<script>" not in spec
    assert len(spec) < 60_000
    assert len(app.dataframe[-1].value) == 2


def test_a_damaged_cell_is_an_error_of_its_page_alone(monkeypatch, compiled, one_store, tmp_path):
    path = store_of(tmp_path / "d.db", *CELLS)
    connection = sqlite3.connect(path)
    connection.execute("update compiled set facts = '[1]'")
    connection.commit()
    connection.close()
    app = opened(monkeypatch, one_store, path, page="targets")
    assert not app.exception
    assert "compiled" in app.error[0].value
    assert not opened(monkeypatch, one_store, path).error
