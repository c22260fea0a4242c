"""What every page has: stores, filters that stay, an address that says what is shown, and a word where there is nothing."""

import sqlite3

import pytest

from suite.rows import NO_FRACTIONS
from suite.store.writer import Store
from tests.dashboard.builders import OLD_UID
from tests.dashboard.opened import addressed, charts, labels, opened, table, turn_to, words
from tests.report.builders import UID, result, run_info
from tests.report.stores import write_store
from tests.store.material import run_start

PAGES = ("", "roofline", "gemm", "grouped_gemm", "attention", "decode", "decode_step", "collectives", "run", "hardware")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_over_a_store_of_every_job(monkeypatch, jobs_store, page):
    app = opened(monkeypatch, jobs_store, page=page)
    assert not app.exception
    assert not app.error
    assert not app.info
    assert charts(app) or page == "run"
    assert len(table(app))


def test_choices_narrow_the_page_and_stand_in_the_address(monkeypatch, one_store):
    app = opened(monkeypatch, one_store)
    everything = len(table(app))
    app.multiselect(key="format").select("tf32").run()
    assert set(table(app)["Format"]) == {"tf32"}
    assert addressed(app, "format") == ["tf32"]
    app.multiselect(key="format").unselect("tf32").run()
    assert len(table(app)) == everything
    assert addressed(app, "format") == []


def test_an_address_shows_the_same_view(monkeypatch, two_stores):
    app = opened(monkeypatch, *two_stores, format=["bf16", "fp16"], regime="cold/sustained/device", device=OLD_UID)
    frame = table(app)
    assert len(frame) == 6  # five of two formats, and the calibration
    assert set(frame["Format"]) == {"bf16", "fp16"}
    assert [app.multiselect(key=name).value for name in ("format", "device")] == [["bf16", "fp16"], [OLD_UID]]


def test_each_filter_offers_what_the_ones_before_it_left(monkeypatch, two_stores):
    app = opened(monkeypatch, *two_stores, device=OLD_UID)
    found = labels(app)
    assert found["Formats"] == ["bf16", "fp16", "fp8_e4m3"]
    assert found["Evidence"] == ["measured", "simulated"]
    app.multiselect(key="evidence").select("simulated").run()
    assert len(table(app)) == 1


def test_choices_stay_from_page_to_page_and_come_back_to_the_address(monkeypatch, jobs_store):
    app = opened(monkeypatch, jobs_store, page="gemm")
    app.multiselect(key="implementation").select("library").run()
    turn_to(app, "attention")
    assert not app.exception
    # No attention is by ``library``: the choice waits and leaves this page as it is.
    assert app.multiselect(key="implementation").value == []
    assert len(table(app)) == 6
    assert addressed(app, "implementation") == ["library"]
    app.multiselect(key="implementation").select("triton").run()
    assert len(table(app)) == 3
    turn_to(app, "gemm")
    assert app.multiselect(key="implementation").value == ["library"]
    assert sorted(addressed(app, "implementation")) == ["library", "triton"]


def test_a_link_within_a_session_wins_over_what_was_chosen(monkeypatch, one_store):
    app = opened(monkeypatch, one_store, format="tf32")
    app.query_params["format"] = ["fp64"]
    app.run()
    assert set(table(app)["Format"]) == {"fp64"}


def test_a_single_choice_is_in_the_address_but_for_the_first(monkeypatch, one_store):
    app = opened(monkeypatch, one_store, share="at clock")
    assert app.selectbox(key="share").value == "at clock"
    app.selectbox(key="share").select("of spec").run()
    assert addressed(app, "share") == []
    app.selectbox(key="share").select("empirical").run()
    assert addressed(app, "share") == ["empirical"]
    turn_to(app, "gemm")
    turn_to(app, "")
    assert app.selectbox(key="share").value == "empirical"


def test_an_address_from_another_store_is_no_error(monkeypatch, one_store):
    evil = "<script>alert(1)</script>" * 100
    app = opened(monkeypatch, one_store, run="gone", format=["fp3", evil], device=evil, share=evil, order=evil, page="")
    assert not app.exception
    assert len(table(app)) > 40
    assert all(len(value) <= 400 for value in addressed(app, "format"))


def test_choices_that_leave_nothing_say_how_to_go_on(monkeypatch, two_stores):
    app = opened(monkeypatch, *two_stores, page="gemm", device=OLD_UID, format="fp8_e4m3", regime="cold/sustained/device")
    assert not app.exception
    assert "this value" in words(app) or len(table(app)) == 1
    app = opened(monkeypatch, *two_stores, page="attention", device=OLD_UID)
    assert "No attention results yet." in words(app)
    assert "roofbench run experiment=attention" in words(app)


def test_an_empty_store_says_what_to_run(monkeypatch, tmp_path):
    with Store.open(str(tmp_path / "s.db")):
        pass
    app = opened(monkeypatch, tmp_path / "s.db")
    assert not app.exception
    assert "No results yet." in words(app)
    assert "roofbench run experiment=quick" in words(app)


def test_a_run_without_results_yet_is_no_error(monkeypatch, tmp_path):
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(run_start()):
        app = opened(monkeypatch, tmp_path / "s.db")
        assert "No results" in words(app)
        assert "quick, running, started" in words(turn_to(app, "run"))
        assert not app.exception


def test_a_store_that_cannot_be_opened_is_named_and_the_others_are_shown(monkeypatch, one_store, tmp_path):
    (tmp_path / "text.db").write_text("no database at all " * 100)
    app = opened(monkeypatch, tmp_path / "none.db", one_store, tmp_path / "text.db")
    assert not app.exception
    assert "none.db" in words(app)
    assert "text.db is not a database" in words(app)
    assert len(app.error) == 2
    assert len(table(app)) > 40


def test_no_store_at_all_is_a_message(monkeypatch, tmp_path):
    app = opened(monkeypatch, tmp_path / "none.db")
    assert not app.exception
    assert "roofbench dashboard PATH" in words(app)


def test_stores_are_shown_side_by_side_and_nothing_is_written_to_them(monkeypatch, two_stores):
    before = [path.read_bytes() for path in two_stores]
    app = opened(monkeypatch, *two_stores)
    assert set(table(app)["Device"]) == {"Testium T0", "Testium T1"}
    assert "2 devices" in words(app)
    assert [path.read_bytes() for path in two_stores] == before


def test_the_same_chip_in_two_stores_is_told_apart(monkeypatch, one_store, tmp_path):
    write_store(tmp_path / "again.db", [result(share=0.2)], info=run_info())
    app = opened(monkeypatch, one_store, tmp_path / "again.db")
    assert not app.exception
    devices = app.dataframe[0].value["Device"]
    assert set(devices) == {"Testium T1 (one.db)", "Testium T1 (again.db)"}


def test_results_that_come_are_seen_and_what_has_not_changed_is_not_read_again(monkeypatch, tmp_path):
    path = tmp_path / "s.db"
    write_store(path, [result()], info=run_info())
    app = opened(monkeypatch, path)
    assert len(table(app)) == 2  # with the calibration
    asked = []
    monkeypatch.setattr("suite.store.browsing.Browser.groups", counting(asked))
    app.run()
    assert asked == []
    write_store(path, [result(m=1), result(m=2)], info=run_info())
    app.run()
    assert len(table(app)) == 5
    assert len(asked) == 1  # the new run alone


def counting(asked):
    from suite.store.browsing import Browser

    groups = Browser.groups

    def counted(self, run):
        asked.append(run)
        return groups(self, run)

    return counted


def test_damage_that_shows_late_is_one_line_and_the_rest_is_shown(monkeypatch, tmp_path):
    path = tmp_path / "s.db"
    write_store(path, [result()], info=run_info())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE result SET device_slot = 5")
    connection.close()
    app = opened(monkeypatch, path)
    assert not app.exception
    assert "is damaged: result" in words(app)
    assert "`roofbench store check` lists what is wrong" in words(app)


def test_unknown_shares_and_devices_without_a_sheet_are_told(monkeypatch, tmp_path):
    from tests.report.builders import device

    unknown = device(hardware=None, spec=None, match_reason="no sheet has the runtime name 'Testium T1'")
    write_store(tmp_path / "s.db", [result(fractions=NO_FRACTIONS)], devices=(unknown,))
    app = opened(monkeypatch, tmp_path / "s.db")
    assert not app.exception
    assert "no sheet has the runtime name" in words(app)
    assert "TFLOP/s" in app.metric[0].value
    assert UID[:4] not in app.metric[0].value
