"""The dashboard's questions, against what reading every row says."""

import sqlite3
from collections import defaultdict
from dataclasses import replace

import pytest

from suite.errors import StoreUnusable
from suite.outcome import Evidence
from suite.report.words import resolved as is_resolved
from suite.roofline import FORMULAS_VERSION
from suite.rows import NO_FRACTIONS, ResultRow
from suite.store.browsing import Browser
from suite.store.scopes import ORDERS, Entry, Scope
from suite.store.writer import Store
from tests.report.builders import UID, device, failed, result, run_info, sweep
from tests.report.stores import write_store
from tests.store.material import planned, record, run_start

OTHER = "beef0000"


@pytest.fixture(scope="module")
def rows() -> list[ResultRow]:
    wide = result(p50_s=2e-6, interval_s=(1e-6, 9e-6), m=64)
    doubtful = [result(contended=True, m=32), wide, result(format="fp8_e4m3", semantics={"scaling": "row"})]
    return [*sweep(), *doubtful, result(format="w8a16", fractions=NO_FRACTIONS), failed("incorrect", "off by one", m=16)]


@pytest.fixture(scope="module")
def browser(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("browsing") / "s.db"
    write_store(path, rows)
    other = device(info=replace(device().info, uid=OTHER, name="Testium T0"))
    slower = [replace(row, device_uid=OTHER, device="Testium T0", fractions=row.fractions._replace(spec=0.1)) for row in rows]
    write_store(path, slower[:20], devices=(other,), info=run_info(experiment="standard", note="x" * 1000))
    write_store(path, rows[:3])  # the first device again
    return Browser.open(str(path))


def test_entries_are_the_runs_with_the_newest_result_of_each(browser):
    entries, runs = browser.entries(), browser.runs()
    assert [entry.run for entry in entries] == [run.run for run in runs]
    for entry in entries:
        assert entry.last == max(row.result_id for row in browser.results(entry.run))
        assert (entry.planned, entry.status, entry.formulas) == (60, "complete", FORMULAS_VERSION)
    assert [len(entry.note) for entry in entries] == [0, 200, 0]


def test_groups_count_every_result_once_and_name_the_best(browser):
    for entry in browser.entries():
        expected = defaultdict(list)
        for row in browser.results(entry.run):
            resolved = row.interval_s is not None and row.interval_s[1] - row.interval_s[0] <= 2 * row.p50_s
            key = (row.device_uid, row.job, row.format_label, row.implementation, row.cache, row.load, row.dispatch)
            trusted = row.p50_s is not None and resolved and row.contended is not True
            known = (trusted, row.p50_s is not None and resolved, row.fractions.spec is not None)
            expected[(*key, row.evidence, row.outcome, row.bound, *known)].append(row)
        groups = browser.groups(entry.run)
        assert len(groups) == len(expected)
        assert sum(group.results for group in groups) == sum(map(len, expected.values()))
        by_id = {row.result_id: row for row in browser.results(entry.run)}
        for group in groups:
            best = by_id[group.best]
            own = next(own for own in expected.values() if best in own)
            assert group.results == len(own)
            if best.fractions.spec is not None:
                assert group.standing == best.fractions.spec == max(row.fractions.spec for row in own)
        assert {group.device for group in groups} == {row.device for row in by_id.values()}


def test_a_rate_ranks_what_has_no_share_below_everything_that_has_one(browser, rows):
    groups = browser.groups(browser.entries()[-1].run)
    (unknown,) = (group for group in groups if group.outcome == "ok" and not group.has_share)
    (row,) = (row for row in rows if row.format == "w8a16")
    assert unknown.standing == row.flop_s / 1e30
    assert unknown.standing < min(group.standing for group in groups if group.has_share)


def test_only_the_latest_attempt_counts(tmp_path):
    path = str(tmp_path / "s.db")
    with Store.open(path) as store, store.start_run(run_start()) as run:
        run.record(record())
        run.finish("interrupted")
    with Store.open(path) as store, store.resume_run(run.run) as again:
        again.record(record(attempt=2))
        again.finish("complete")
    browser = Browser.open(path)
    (group,) = browser.groups(run.run)
    assert group.results == 1
    assert [row.attempt for row in browser.page(Scope(), 10)] == [2]
    assert browser.newest(Scope()) == [group.best]


def test_scopes_find_what_they_say_and_nothing_else(browser):
    first, middle, last = reversed(browser.entries())
    every = browser.results()
    scopes = {
        Scope(): lambda row: True,
        Scope(runs=(middle.run,)): lambda row: row.run == middle.run,
        Scope(devices=(OTHER,)): lambda row: row.device_uid == OTHER,
        Scope(runs=(middle.run, last.run), devices=(UID,)): lambda row: row.run == last.run,
        Scope(jobs=("gemm",), devices=(UID,)): lambda row: row.job == "gemm" and row.device_uid == UID,
        Scope(formats=(("fp8_e4m3", '{"scaling":"row"}'),)): lambda row: row.format_label == "fp8_e4m3 row",
        Scope(regimes=(("cold", "burst", "device"),)): lambda row: row.load == "burst",
        Scope(implementations=("nobody",)): lambda row: False,
        Scope(evidence=("measured",), runs=(first.run,)): lambda row: row.run == first.run,
    }
    for scope, passes in scopes.items():
        found = browser.page(scope, 1000)
        assert {row.result_id for row in found} == {row.result_id for row in every if passes(row)}, scope
        assert [row.result_id for row in found] == sorted((row.result_id for row in found), reverse=True)


def test_pages_follow_each_other_and_rows_are_those_of_the_reader(browser):
    scope = Scope(runs=(browser.entries()[-1].run,))
    whole = browser.page(scope, 1000)
    parts = [*browser.page(scope, 10), *browser.page(scope, 10, 10), *browser.page(scope, 1000, 20)]
    assert parts == whole == list(reversed(browser.results(scope.runs[0])))


@pytest.mark.parametrize("order", ORDERS)
def test_orders_put_values_in_order_and_what_has_none_last(browser, order):
    values = {
        "best share of spec": lambda row: row.fractions.spec,
        "highest rate": lambda row: row.flop_s,
        "highest bandwidth": lambda row: row.bytes_s,
        "longest": lambda row: row.p50_s,
        "shortest": lambda row: None if row.p50_s is None else -row.p50_s,
    }
    rows = browser.page(Scope(devices=(UID,)), 1000, order=order)
    found = [values[order](row) for row in rows]
    known = [(is_resolved(row), value) for row, value in zip(rows, found, strict=True) if value is not None]
    assert {first for first, _ in known} == {True, False}
    assert found == [*(value for _, value in sorted(known, reverse=True)), *[None] * (len(found) - len(known))]
    assert len(known) < len(found)


def test_the_newest_of_each_case_on_each_device(browser):
    newest = {}
    for row in browser.results(job="gemm"):
        newest[row.device_uid, row.case_key] = row.result_id
    assert sorted(browser.newest(Scope(jobs=("gemm",)))) == sorted(newest.values())
    own = browser.newest(Scope(devices=(OTHER,), jobs=("gemm",)))
    assert sorted(own) == sorted(number for (uid, _), number in newest.items() if uid == OTHER)


def test_a_newer_result_of_another_kind_of_evidence_hides_none_that_was_measured(tmp_path):
    write_store(tmp_path / "s.db", [result()])
    write_store(tmp_path / "s.db", [result(evidence="simulated", share=0.99)])
    browser = Browser.open(str(tmp_path / "s.db"))
    found = browser.rows(browser.newest(Scope(jobs=("gemm",))))
    assert [(row.evidence, row.fractions.spec) for row in found] == [("measured", 0.7), ("simulated", 0.99)]


def test_workloads_are_found_once_and_lead_to_their_results(browser):
    found = browser.workloads(Scope(devices=(UID,), jobs=("gemm",)))
    gemms = [row for row in browser.results(job="gemm") if row.device_uid == UID]
    assert len(found) == len({row.workload_key for row in gemms})
    some = found[:3]
    rows = browser.rows(browser.newest(Scope(devices=(UID,)), [each.workload_id for each in some]))
    assert {row.format for row in rows} == {each.format for each in some}


def test_rows_come_in_the_order_asked_for_and_without_what_is_gone(browser):
    assert [row.result_id for row in browser.rows([7, 99_999, 3])] == [7, 3]


def test_a_device_is_as_the_newest_run_has_it_with_its_roofs(browser):
    assert browser.device_names() == {UID: "Testium T1", OTHER: "Testium T0"}
    assert browser.device(OTHER).info.name == "Testium T0"
    best, bandwidth = browser.roofs_of(UID, Evidence.MEASURED)
    roofs = browser.empirical_roofs()
    assert best == {(key.pipe, key.load): rate for key, rate in roofs.items() if key.device_uid == UID}
    assert bandwidth == browser.empirical_bandwidth(UID, Evidence.MEASURED)
    history = browser.calibrations_of(UID, "cuda", Evidence.MEASURED)
    assert history == browser.calibrations(UID, "cuda", Evidence.MEASURED)
    with pytest.raises(StoreUnusable, match="there is none of the uid nobody"):
        browser.device("nobody")


def test_the_end_of_a_log_without_the_whole_of_it(tmp_path):
    path = str(tmp_path / "s.db")
    with Store.open(path) as store, store.start_run(run_start()) as run:
        run.log("worker", "a" * 100, slot=0)
        run.log("worker", "b" * 100, slot=0)
        run.log("other", "c", slot=None)
        run.finish("complete")
    browser = Browser.open(path)
    assert browser.log_sizes(run.run) == {"worker": 200, "other": 1}
    assert browser.log_end(run.run, "worker", 150) == "a" * 50 + "b" * 100
    assert browser.log_end(run.run, "worker", 1000) == "a" * 100 + "b" * 100
    assert browser.log_end(run.run, "none", 10) == ""


@pytest.mark.parametrize(
    "strange",
    [
        "CREATE VIEW more AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT x FROM r",
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE words USING fts5(text)",
    ],
    ids=["view", "trigger", "virtual table"],
)
def test_a_file_with_what_no_store_has_is_refused(tmp_path, strange):
    path = tmp_path / "s.db"
    write_store(path, [result()])
    with sqlite3.connect(path) as connection:
        connection.execute(strange)
    connection.close()
    with pytest.raises(StoreUnusable, match="views, triggers or virtual tables, which no store of roofbench has"):
        Browser.open(str(path))


def test_one_that_is_written_stays_running_and_one_that_was_left_is_interrupted(tmp_path):
    path = str(tmp_path / "s.db")
    with Store.open(path) as store:
        with store.start_run(run_start()) as run:
            assert [entry.status for entry in Browser.open(path).entries()] == ["running"]
            run.record(record(planned()))
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE run SET status = 'running'")
        connection.close()
    (entry,) = Browser.open(path).entries()
    assert isinstance(entry, Entry)
    assert entry.status == "interrupted"
