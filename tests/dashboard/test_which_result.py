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
    assert cells["text"] == ["62.0 %"]
    assert [metric.value for metric in app.metric] == ["62.0 %"]
    (points,) = traces(app, number=1)
    assert len(points["y"]) == 1
    assert "62.0 %" in points["hovertext"][0]
    assert "best of 2 sustained; passed over: 1 contended or not resolved" in words(app)
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


def mapped(app):
    (cells,) = traces(app, "cells")
    return dict(zip(cells["text"], cells["hovertext"], strict=True))


def test_a_map_of_shapes_is_of_one_backend_and_says_which(monkeypatch, tmp_path):
    infos = [replace(device().info, backend=backend) for backend in ("cpu", "xla")]
    devices = tuple(device(slot=slot, info=info) for slot, info in enumerate(infos))
    rows = [result(n, n, n, backend="cpu", share=share) for n, share in ((512, 0.5), (1024, 0.6))]
    rows.append(result(256, 256, 256, backend="xla", device_slot=1, execution="emulated", pipe="fp32", share=0.3))
    write_store(tmp_path / "s.db", rows, devices=devices, info=run_info())
    app = opened(monkeypatch, tmp_path / "s.db", page="gemm")
    assert labels(app)["Backend"] == ["cpu", "xla"]
    assert sorted(mapped(app)) == ["50.0 %", "60.0 %"]
    other = opened(monkeypatch, tmp_path / "s.db", page="gemm", on="xla")
    assert list(mapped(other)) == ["30.0 %"]


@pytest.mark.parametrize("differing", [{"execution": "emulated"}, {"distribution": "outliers"}])
def test_native_and_emulated_results_or_other_data_share_no_map(monkeypatch, tmp_path, differing):
    rows = [result(512, share=0.6), result(1024, share=0.5, **differing)]
    app = opened(monkeypatch, in_runs(tmp_path / "s.db", rows), page="gemm")
    assert list(mapped(app)) == ["60.0 %"]


def test_the_map_of_the_overview_and_its_cards_say_which_backend_a_best_result_is_of(monkeypatch, tmp_path):
    infos = [replace(device().info, backend=backend) for backend in ("cpu", "xla")]
    devices = tuple(device(slot=slot, info=info) for slot, info in enumerate(infos))
    rows = [result(backend="cpu", format=name, share=0.6) for name in ("bf16", "fp16")]
    rows.append(result(backend="xla", device_slot=1, format="fp32", execution="emulated", share=0.3))
    write_store(tmp_path / "s.db", rows, devices=devices, info=run_info())
    app = opened(monkeypatch, tmp_path / "s.db")
    assert "30.0 %ᵃ" in mapped(app)
    assert "memory bound, xla, emulated" in words(app) or "compute bound, xla, emulated" in words(app)


def ladder_rows(**fields):
    return [result(512, 512, 512, format=name, quantisation_error=1e-3, **fields) for name in ("fp32", "bf16", "fp8_e4m3")]


@pytest.mark.parametrize("again", ["bf16", "fp8_e4m3"])
def test_a_ladder_keeps_a_format_that_a_later_run_has_measured_again(monkeypatch, tmp_path, again):
    later = result(512, 512, 512, format=again, contended=True)
    path = in_runs(tmp_path / "s.db", ladder_rows(contended=True), [later, result(1024)])
    app = opened(monkeypatch, path, page="gemm")
    ladder = app.dataframe[0].value
    assert list(ladder["Format"]) == ["fp32", "bf16", "fp8_e4m3"]
    assert "Over bf16" in ladder
    assert "Without a rate" not in words(app)


def test_of_a_ladder_that_was_climbed_twice_the_newest_is_shown_first(monkeypatch, tmp_path):
    path = in_runs(tmp_path / "s.db", ladder_rows(share=0.4), ladder_rows(share=0.5))
    app = opened(monkeypatch, path, page="gemm")
    assert app.dataframe[0].value["Of spec"].tolist() == [50.0] * 3


def test_a_lever_keeps_a_batch_size_that_a_later_run_has_measured_again(monkeypatch, tmp_path):
    rows = [result(m, 4096, 4096) for m in (1, 16, 256, 4096)]
    path = in_runs(tmp_path / "s.db", rows, [result(16, 4096, 4096)])
    app = opened(monkeypatch, path, page="gemm")
    (lever,) = (each.value for each in app.dataframe if "M" in each.value)
    assert [int(str(m).replace(",", "")) for m in lever["M"]] == [1, 16, 256, 4096]
