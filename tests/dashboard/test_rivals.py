"""Devices side by side: which of several computes a case fastest, and what is never held against each other."""

from dataclasses import replace

import pytest

from dashboard.contests import short_titles
from dashboard.rivals import TITLE, races
from tests.dashboard.builders import OLD_UID, decode, other_device
from tests.dashboard.opened import opened, words
from tests.report.builders import result, run_info
from tests.report.stores import write_store


def times(p50_s, **fields):
    return decode(1024, p50_s=p50_s, interval_s=(p50_s * 0.99, p50_s * 1.01), **fields)


def test_the_fastest_device_of_a_case_stands_first_with_its_lead():
    slow, fast = times(2e-3), times(1e-3, implementation="triton")
    (race,) = races({"slow": [slow], "fast": [fast, times(1.5e-3)]})
    assert race.fastest == "fast"
    assert race.entrants[0].row is fast
    assert race.lead.times == pytest.approx(2.0)


def test_what_cannot_be_told_apart_is_alike():
    (race,) = races({"a": [times(1.001e-3)], "b": [times(1e-3)]})
    assert race.fastest == "alike: b, a"


@pytest.mark.parametrize("surely", [[], [times(2e-3)]], ids=["nothing else", "slower"])
def test_what_is_in_doubt_leads_nobody_and_where_it_reads_faster_nobody_else_does(surely):
    """Other work on a device makes nothing faster, and what is not resolved may be anything."""
    (race,) = races({"a": [times(1e-3)], "b": [*surely, times(0.5e-3, contended=True)]})
    assert (race.fastest, race.entrants[1].name) == ("in doubt: b, a", "b")
    (race,) = races({"a": [times(1e-3), times(0.4e-3, contended=True)], "b": [*surely, times(0.5e-3, contended=True)]})
    assert (race.fastest, race.entrants[0].row.p50_s) == ("in doubt: b, a", 1e-3)
    (race,) = races({"a": [times(1e-3)], "b": [*surely, times(1.5e-3, contended=True)]})
    assert (race.fastest, race.entrants[1].name) == ("a", "b")


@pytest.mark.parametrize("differing", [{"evidence": "simulated"}, {"regime": "warm/sustained/device"}])
def test_other_evidence_or_another_regime_is_another_case(differing):
    assert races({"a": [times(1e-3)], "b": [replace_of(times(2e-3), **differing)]}) == []


def replace_of(row, **fields):
    if "regime" in fields:
        cache, load, dispatch = fields.pop("regime").split("/")
        fields |= {"cache": cache, "load": load, "dispatch": dispatch}
    return replace(row, **fields)


def test_a_page_of_two_devices_has_the_table_and_one_of_one_device_has_not(monkeypatch, tmp_path):
    write_store(tmp_path / "a.db", [times(1e-3), result()], info=run_info())
    write_store(tmp_path / "b.db", [times(2e-3), result()], devices=(other_device(),), info=run_info())
    app = opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page="decode")
    assert TITLE in words(app)
    (frame,) = (each.value for each in app.dataframe if "Every device" in each.value)
    assert list(frame["Fastest"]) == ["Testium T1"]
    assert frame["Over next"][0] == pytest.approx(2.0)
    assert TITLE not in words(opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page="decode", device=OLD_UID))


def test_titles_lose_what_all_of_them_have():
    titles = ["decode 1x1/1024 page_size=16 bf16, cold/burst/device", "decode 1x1/2048 page_size=16 bf16, cold/burst/device"]
    assert short_titles(titles) == (["decode 1x1/1024", "decode 1x1/2048"], "page_size=16, bf16, cold/burst/device")
    assert short_titles(titles[:1]) == (["decode 1x1/1024 page_size=16 bf16 cold/burst/device"], "")
    assert short_titles([]) == ([], "")
