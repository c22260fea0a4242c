"""Which of several results of one case the pages show: what was disturbed hides nothing, and pages agree."""

from dataclasses import replace

import pytest

from suite.report.standings import is_clean, preferred
from tests.dashboard.opened import labels, opened, words
from tests.dashboard.test_pages import traces
from tests.report.builders import device, failed, result, run_info
from tests.report.stores import write_store

CLEAN = result(share=0.6)
NEWER = replace(CLEAN, result_id=CLEAN.result_id + 1)


def in_runs(path, *runs):
    """A store of a run for each of these lists of rows."""
    for rows in runs:
        write_store(path, rows, info=run_info(experiment="quick"))
    return path


@pytest.mark.parametrize("doubt", [{"contended": True}, {"converged": False}, {"steady": False}])
def test_a_clean_result_comes_before_a_newer_one_in_doubt(doubt):
    doubtful = replace(NEWER, **doubt)
    assert not is_clean(doubtful)
    assert preferred([CLEAN, doubtful]) is preferred([doubtful, CLEAN]) is CLEAN


def test_a_power_cap_is_the_regime_and_hides_no_newer_result():
    capped = replace(NEWER, throttle="sw_power_cap 90%")
    assert is_clean(capped)
    assert preferred([CLEAN, capped]) is preferred([capped, CLEAN]) is capped


def test_of_clean_ones_the_newest_is_shown_and_a_failure_only_where_nothing_else_is():
    assert preferred([NEWER, CLEAN]) is NEWER
    ended = replace(failed("timeout", "over 120 s"), result_id=NEWER.result_id + 1)
    assert preferred([CLEAN, ended]) is CLEAN
    unsteady, contended = replace(CLEAN, steady=False), replace(NEWER, contended=True)
    assert preferred([contended, unsteady]) is unsteady


def test_a_contended_run_again_hides_no_good_result_and_map_cards_and_points_agree(monkeypatch, tmp_path):
    again = result(share=0.453, contended=True)
    app = opened(monkeypatch, in_runs(tmp_path / "s.db", [result(share=0.62)], [result(share=0.58)], [again]))
    (cells,) = traces(app, "cells")
    assert cells["text"] == ["62.0"]
    assert [metric.value for metric in app.metric] == ["62.0 %"]
    (points,) = traces(app, number=1)
    assert len(points["y"]) == 1
    assert "62.0 %" in points["hovertext"][0]
    assert "best of 3 sustained, 1 passed over" in words(app)
    assert "of all the runs shown" in words(app)


@pytest.mark.parametrize("page", ["gemm", "roofline"])
def test_figures_show_the_newest_clean_result_and_say_so(monkeypatch, tmp_path, page):
    again = result(share=0.453, contended=True)
    app = opened(monkeypatch, in_runs(tmp_path / "s.db", [result(share=0.62)], [result(share=0.58)], [again]), page=page)
    (shown,) = traces(app, "cells" if page == "gemm" else "points")
    assert "58.0 %" in shown["hovertext"][0]
    assert "1 point of older runs" in words(app)
    assert "Of each case the newest clean result is shown" in words(app)


def test_runs_of_two_backends_are_told_apart_by_them(monkeypatch, tmp_path):
    for backend in ("cpu", "xla"):
        own = device(info=replace(device().info, backend=backend))
        write_store(tmp_path / "s.db", [result(backend=backend)], devices=(own,), info=run_info(experiment="quick"))
    path = tmp_path / "s.db"
    for page, label in (("", "Runs"), ("run", "Run"), ("compare", "A, what was"), ("compare", "B, what is")):
        options = labels(opened(monkeypatch, path, page=page))[label]
        assert sorted(backend for each in options for backend in ("cpu", "xla") if backend in each.split(", ")) == [
            "cpu",
            "xla",
        ]


def test_a_run_of_two_backends_shows_them_beside_the_case(monkeypatch, tmp_path):
    infos = [replace(device().info, backend=backend) for backend in ("cpu", "xla")]
    devices = tuple(device(slot=slot, info=info) for slot, info in enumerate(infos))
    rows = [result(backend=info.backend, device_slot=slot) for slot, info in enumerate(infos)]
    write_store(tmp_path / "s.db", rows, devices=devices, info=run_info())
    app = opened(monkeypatch, tmp_path / "s.db", page="run")
    shown = app.dataframe[0].value
    assert list(shown.columns[:2]) == ["Case", "Backend"]
    assert {"cpu", "xla"} <= set(shown["Backend"])
