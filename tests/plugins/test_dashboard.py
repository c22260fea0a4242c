"""The dashboard shows results of a package that is not installed where it is read."""

import pytest

from tests.dashboard.opened import opened, words
from tests.plugins.conftest import STORE

JOB_PAGES = ("gemm", "attention", "decode", "collectives")


@pytest.mark.parametrize("page", ["", "roofline", "run", "hardware", "compare"])
def test_general_pages_show_them(monkeypatch, measured, page):
    app = opened(monkeypatch, measured / STORE, page=page)
    assert not app.exception
    assert not app.error
    if page in ("", "run"):
        assert any("64x128" in each.value.to_string() for each in app.dataframe)


@pytest.mark.parametrize("page", JOB_PAGES)
def test_pages_of_another_job_say_that_there_is_none(monkeypatch, measured, page):
    app = opened(monkeypatch, measured / STORE, page=page)
    assert not app.exception
    assert words(app)
