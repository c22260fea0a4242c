"""Implementations side by side on the pages of jobs: shown where a case was computed in several ways, and only there."""

from dataclasses import replace

import pytest

from dashboard.contests import lead_columns
from suite.report.contest import TITLE
from tests.dashboard.builders import measured
from tests.dashboard.opened import opened, words
from tests.report.builders import result, run_info
from tests.report.stores import write_store


def verdicts(app):
    return [frame.value for frame in app.dataframe if "Fastest" in frame.value.columns]


def test_gemm_names_the_fastest_of_two_ways_and_links_to_both(monkeypatch, tmp_path):
    rows = [result(m, share=0.7, format=name) for m in (512, 4096) for name in ("bf16", "fp16")]
    rows += [replace(result(4096, share=0.6), implementation="triton")]
    write_store(tmp_path / "ways.db", rows, info=run_info(), measured=measured)
    (frame,) = verdicts(app := opened(monkeypatch, tmp_path / "ways.db", page="gemm"))
    assert TITLE in words(app)
    assert list(frame["Fastest"]) == ["library (cuda)"]
    assert list(frame["Next"]) == ["triton (cuda)"]
    assert frame["Over next"][0] == pytest.approx(7 / 6, rel=1e-3)


@pytest.mark.parametrize("page", ["gemm", "attention", "decode"])
def test_pages_of_one_way_have_no_such_table(monkeypatch, one_store, page):
    assert TITLE not in words(opened(monkeypatch, one_store, page=page))


def test_attention_has_one_of_its_own(monkeypatch, jobs_store):
    app = opened(monkeypatch, jobs_store, page="attention")
    assert TITLE in words(app)


@pytest.mark.parametrize("name", ["Over next", "From", "To"])
def test_a_factor_of_1_002_is_not_shown_as_1(name):
    assert lead_columns()[name]["type_config"]["format"] % 1.002 == "1.0020"
