"""Results page by page, in an order, and as files: never more of them is read than is shown."""

import csv
import io
import json
import threading
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow.parquet as pq
import pytest

from dashboard import listing
from dashboard.downloads import as_csv, as_parquet, flat
from dashboard.results import case_names, regimes_apart, told_apart
from dashboard.selection import Selection, thinned
from dashboard.shelf import Shelf
from dashboard.stores import Run, Stores
from suite.errors import StoreUnusable
from suite.store.browsing import Browser
from tests.dashboard.builders import other_device
from tests.dashboard.opened import addressed, opened, table, turn_to
from tests.report.builders import device, failed, result, run_info
from tests.report.stores import write_store


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two stores of three runs: 1 + 4 results, 1 + 3 and, the newest, 1 + 2."""
    folder = tmp_path_factory.mktemp("listing")
    write_store(folder / "a.db", [result(m) for m in (1, 2, 3, 4)], info=run_info())
    write_store(folder / "b.db", [result(m, share=0.3) for m in (5, 6, 7)], devices=(other_device(),), info=run_info())
    write_store(folder / "a.db", [result(8, share=0.9), failed("timeout", "over 120 s", m=9)], info=run_info())
    return folder / "a.db", folder / "b.db"


@pytest.fixture(scope="module")
def selection(stores):
    shelves = tuple(Shelf(str(path), Browser.open(str(path)), number) for number, path in enumerate(stores))
    runs = [Run(number, entry) for number, shelf in enumerate(shelves) for entry in shelf.look()]
    runs.sort(key=lambda run: run.entry.started_at, reverse=True)
    groups = tuple(pair for shelf in shelves for pair in shelf.held(wait_s=30).pairs if pair[1].job == "gemm")
    devices = tuple(dict.fromkeys(device for device, _ in groups))
    nothing = {"runs": (), "regimes": (), "formats": (), "implementations": (), "evidence": (), "missing": 0, "problems": ()}
    names = {device: device.uid for device in devices}
    return Selection(Stores(shelves, tuple(runs), {}), "gemm", groups, devices, names, devices, theme="light", **nothing)


def sizes(rows):
    return [row.params["m"] for row in rows]


def test_pages_go_through_runs_and_stores_the_newest_first(selection):
    assert selection.results == 9
    whole = sizes(listing.page_of(selection, 0, 100))
    assert whole == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert [number for first in range(0, 9, 2) for number in sizes(listing.page_of(selection, first, 2))] == whole
    assert listing.page_of(selection, 9, 2) == []
    assert sizes(listing.all_rows(selection, 4)) == whole[:4]


def test_a_page_asks_only_the_runs_that_it_lies_in(selection):
    found = list(listing.pieces(selection, 3, 3))
    assert [(piece.offset, piece.limit) for piece in found] == [(1, 2), (0, 1)]
    assert [piece.store for piece in found] == [1, 0]


def test_an_order_goes_through_all_stores_and_what_has_no_value_comes_last(selection):
    best = listing.page_of(selection, 0, 100, "best share of spec")
    assert sizes(best)[0] == 8
    assert [row.fractions.spec for row in best[1:5]] == [0.7] * 4
    assert sizes(best)[-1] == 9
    assert sizes(listing.page_of(selection, 1, 3, "best share of spec")) == sizes(best)[1:4]
    times = [row.p50_s for row in listing.page_of(selection, 0, 8, "shortest")]
    assert times == sorted(times)


def test_a_median_that_is_not_resolved_leads_no_order(monkeypatch, tmp_path):
    wide = {"share": 0.95, "interval_s": (1e-12, 1.0)}
    write_store(tmp_path / "a.db", [result(1, **wide), result(2, share=0.3)], info=run_info())
    write_store(tmp_path / "b.db", [result(3, share=0.2), failed("timeout", "over", m=4)], devices=(other_device(),))
    monkeypatch.setattr(listing, "PAGE_ROWS", 3)
    app = opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page="gemm", order="best share of spec")
    assert list(table(app)["Of spec"]) == pytest.approx([30.0, 20.0, 95.0])


def test_a_long_table_has_pages_in_the_address(monkeypatch, stores):
    monkeypatch.setattr(listing, "PAGE_ROWS", 4)
    app = opened(monkeypatch, *stores, page="gemm")
    assert len(table(app)) == 4
    app.number_input(key="page-number").set_value(3).run()
    assert (len(table(app)), addressed(app, "page")) == (1, ["3"])
    app.query_params["page"] = "2"  # a step back
    app.run()
    assert (len(table(app)), addressed(app, "page"), app.number_input(key="page-number").value) == (4, ["2"], 2)
    turn_to(app, "roofline")
    assert (len(table(app)), addressed(app, "page")) == (4, [])
    turn_to(app, "gemm")
    app.selectbox(key="order").select("longest").run()
    assert addressed(app, "order") == ["longest"]
    assert not app.exception


def test_orders_are_offered_for_what_can_be_ordered(monkeypatch, stores):
    monkeypatch.setattr(listing, "PAGE_ROWS", 2)
    monkeypatch.setattr(listing, "MOST_ORDERED", 8)
    app = opened(monkeypatch, *stores, page="gemm")
    assert app.selectbox(key="order").options == ["newest first"]
    assert "Narrow the choice to 8 results" in app.selectbox(key="order").help


def test_files_hold_every_row_with_its_regime_and_intervals():
    rows = [result(m, semantics={"scaling": "row"}, switches={"tf32": True}) for m in (1, 2)]
    rows += [failed("timeout", "over, 120 s")]
    lines = list(csv.DictReader(io.StringIO(as_csv(rows).decode())))
    assert [line["outcome"] for line in lines] == ["ok", "ok", "timeout"]
    assert float(lines[0]["p50_s"]) == rows[0].p50_s
    assert (lines[0]["cache"], lines[0]["load"], lines[0]["dispatch"]) == ("cold", "sustained", "device")
    assert json.loads(lines[1]["params"]) == {"m": 2, "n": 4096, "k": 4096}
    assert lines[2]["reason"] == "over, 120 s"
    assert float(lines[0]["interval_high_s"]) == rows[0].interval_s[1]
    frame = pq.read_table(io.BytesIO(as_parquet(rows))).to_pandas()
    assert list(frame.columns) == list(flat(rows[0])) == list(lines[0])
    assert frame["fraction_spec"][0] == rows[0].fractions.spec
    assert pd.isna(frame["p50_s"][2])
    assert as_csv([]) == b"result_id\r\n"
    assert pq.read_table(io.BytesIO(as_parquet([]))).num_rows == 0


def test_names_leave_out_what_all_of_them_say():
    names = ["gemm 1x2x3 layout=nt", "gemm 4x5x6 layout=nt x=1"]
    assert told_apart(names, ["gemm"] * 2) == (["gemm 1x2x3", "gemm 4x5x6 x=1"], "layout=nt")
    assert told_apart(names[:1], ["gemm"]) == (names[:1], "")
    mixed = [*names, "decode 8 page=1 layout=nt", "decode 9 page=1"]
    short, shared = told_apart(mixed, ["gemm", "gemm", "decode", "decode"])
    assert short == ["gemm 1x2x3", "gemm 4x5x6 x=1", "decode 8 layout=nt", "decode 9"]
    assert shared == "gemm: layout=nt; decode: page=1"


def test_more_points_than_can_be_drawn_are_chosen_evenly():
    assert thinned(list(range(10)), 4) == [0, 3, 6, 9]
    assert thinned([], 4) == []
    assert thinned([5], 4) == [5]


class Listed(NamedTuple):
    run: str


class Grouped(NamedTuple):
    device_uid: str
    name: str


class SlowBrowser:
    """Runs whose groups come when they are let."""

    path = Path("x.db")

    def __init__(self, runs, broken=()):
        self.let, self.asked, self.broken = threading.Semaphore(0), [], broken
        self.runs = list(runs)

    def entries(self):
        return [Listed(each) for each in self.runs]

    def groups(self, run):
        self.let.acquire()
        self.asked.append(run)
        if run in self.broken:
            raise StoreUnusable(f"{run} is damaged")
        return [Grouped("uid", f"group of {run}")]

    def devices(self, run):
        return [device()]


def names(held):
    return tuple(group.name for _, group in held.pairs)


def test_a_page_shows_the_runs_that_were_read_in_time_the_newest_first():
    browser = SlowBrowser(["new", "middle", "old"])
    shelf = Shelf("x.db", browser)
    shelf.look()
    held = shelf.held(wait_s=0)
    assert (names(held), held.missing) == ((), 3)
    browser.let.release()
    while shelf.held(wait_s=0.05).missing == 3:
        pass
    held = shelf.held(wait_s=0)
    assert (names(held), held.missing, browser.asked) == (("group of new",), 2, ["new"])
    browser.let.release(2)
    held = shelf.held(wait_s=30)
    assert (held.missing, browser.asked) == (0, ["new", "middle", "old"])
    assert names(shelf.held(["old"], wait_s=0)) == ("group of old",)


def test_a_run_that_cannot_be_read_is_said_and_the_others_are_shown():
    browser = SlowBrowser(["new", "old"], broken=["new"])
    browser.let.release(2)
    shelf = Shelf("x.db", browser)
    shelf.look()
    held = shelf.held(wait_s=30)
    assert (names(held), held.missing, held.problems) == (("group of old",), 0, ("new is damaged",))


def test_only_a_run_that_changed_is_read_again():
    browser = SlowBrowser(["a", "b"])
    browser.let.release(10)
    shelf = Shelf("x.db", browser)
    shelf.look()
    shelf.held(wait_s=30)
    browser.runs.append("c")
    shelf.look()
    assert shelf.held(wait_s=30).missing == 0
    assert browser.asked == ["a", "b", "c"]


def test_what_tells_two_cases_of_one_name_apart_is_in_their_names_and_nothing_else():
    rows = [
        result(distribution="outliers", switches={"tf32": True}),
        result(switches={"tf32": True}),
        result(switches={"tf32": False}),
        result(512, switches={"tf32": True}),
        result(format="fp16", switches={"reduced_precision_reduction": True}),
    ]
    whole = "gemm 4096x4096x4096"
    assert case_names(rows) == [
        f"{whole} outliers data",
        f"{whole} tf32=True",
        f"{whole} tf32=False",
        "gemm 512x4096x4096",
        whole,
    ]


def test_how_a_case_ended_is_no_bound(monkeypatch, tmp_path):
    rows = [result(), failed("unsupported", "no unit", format="tf32"), result(distribution="outliers")]
    write_store(tmp_path / "s.db", rows, info=run_info())
    shown = table(opened(monkeypatch, tmp_path / "s.db", page="roofline"))
    by_format = {line["Format"]: line for line in shown.to_dict("records")}
    assert by_format["tf32"]["Outcome"] == "unsupported"
    assert not {"unsupported"} & set(shown["Bound"])
    assert {"gemm 4096x4096x4096", "gemm 4096x4096x4096 outliers data"} <= set(shown["Case"])
    write_store(tmp_path / "t.db", [result()], info=run_info())
    assert "Outcome" not in table(opened(monkeypatch, tmp_path / "t.db", page="roofline"))


def test_what_all_regimes_have_in_common_is_said_once():
    rows = [result(cache=cache, load="sustained", dispatch="device") for cache in ("cold", "warm")]
    assert regimes_apart(rows) == (["cold", "warm"], "sustained, device")
    assert regimes_apart(rows[:1]) == (["cold/sustained/device"], "")
    mixed = [*rows, result(cache="warm", load="burst", dispatch="call")]
    assert regimes_apart(mixed) == ([row.regime for row in mixed], "")
