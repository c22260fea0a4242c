"""Numbers, sources and units that a reader takes in at a glance: few digits, nothing cut, nothing cited that is none."""

import json
from dataclasses import replace

from suite.measurement import Check
from tests.dashboard.opened import charts, opened, words
from tests.dashboard.test_pages import address_of, figure
from tests.report.builders import result, run_info
from tests.report.recordings import sustained
from tests.report.stores import write_store


def test_errors_of_checks_and_settings_are_told_with_few_digits(monkeypatch, tmp_path):
    """They read ``0.0000000000000006`` of ``0.00000000000001``."""

    def checked(row):
        found = sustained(row.p50_s, 40 * row.p50_s)
        checks = {name: Check(True, 6.123e-16, 1e-14, None, 0, 0) for name in ("check_before", "check_after")}
        return replace(found, **checks, description={"threshold": 1 / 3})

    write_store(tmp_path / "s.db", [result()], info=run_info(), measured=checked)
    name, _ = address_of(tmp_path / "s.db", job="gemm")
    app = opened(monkeypatch, tmp_path / "s.db", page="gemm", case=name)
    checks = next(frame.value for frame in app.dataframe if "Allowed" in frame.value)
    assert checks["Relative error"].tolist() == ["6.1e-16"] * 2
    assert checks["Allowed"].tolist() == ["1.0e-14"] * 2
    told = next(frame.value for frame in app.dataframe if "What" in frame.value)
    assert dict(told.itertuples(index=False))["threshold"] == "0.333333"
    (axis,) = (figure(app, n)["layout"]["yaxis"] for n in range(len(charts(app))) if "yaxis2" in figure(app, n)["layout"])
    assert axis["title"]["text"] == "One launch (µs)"


def test_a_sheet_cites_no_source_that_was_not_recorded_and_cuts_no_figure(monkeypatch, one_store):
    app = opened(monkeypatch, one_store, page="hardware", sheet="amd-mi100")
    number, sheet = next((n, each.value) for n, each in enumerate(app.dataframe) if "Trust" in each.value)
    assert sheet["Sources"][sheet["Part"] == "released"].tolist() == ["not recorded"]
    assert sheet["Sources"].str.contains(r"\[1\]").any()
    said = words(app)
    assert "[1] not recorded" not in said
    assert "whose source was not recorded" in said
    columns = json.loads(app.dataframe[number].proto.columns)
    for name in ("Part", "Figure", "Value", "Trust", "Sources"):
        assert columns[name]["width"] >= 6.5 * sheet[name].str.len().max()
