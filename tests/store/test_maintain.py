"""Merging, pruning, checking, rebuilding."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from suite.case import Regime
from suite.errors import StoreUnusable, UsageError
from suite.outcome import Outcome
from suite.roofline import FORMULAS_VERSION, Summary
from suite.rows import Calibration
from suite.store import maintain, merge
from suite.store.queries import Reader
from suite.store.recorder import Record
from suite.store.writer import Store
from tests.store import material


def filled(path: Path, numbers: range, **start: Any) -> str:
    """Store a run with these cases and give its id."""
    with Store.open(str(path)) as store, store.start_run(material.run_start(**start)) as run:
        for number in numbers:
            run.record(material.record(material.planned(material.case(number))))
        run.log("worker-0", f"from {path.name}\n", slot=0)
        run.artifact("trace", path.name.encode())
        run.finish("complete")
    return run.run


@cache
def whole_of_three() -> bytes:
    """A store of three results, in which a check finds nothing."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        filled(path, range(3))
        assert maintain.check(str(path)) == []
        return path.read_bytes()


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("pragma foreign_keys=off")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def rows_in(path: Path, table: str) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute(f'select count(*) from "{table}"').fetchone()[0])
    finally:
        connection.close()


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def details(path: Path, run: str) -> list[Any]:
    """Everything of a run's results that does not depend on which store they are in."""
    reader = Reader.open(str(path))
    every = [reader.detail(row.result_id) for row in reader.results(run)]
    return [(each.row.case_key, each.row.p50_s, each.measurement, each.environment, each.log) for each in every]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here.db"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there.db"


class TestMerge:
    def test_every_run_comes_over_whole_and_once(self, here: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(merge, "CHUNK", 3)
        mine, theirs = filled(here, range(4)), filled(there, range(2, 12))
        expected = details(there, theirs)
        before = there.read_bytes()
        merged = maintain.merge(str(there), str(here))
        assert (merged.runs_added, merged.results_added, merged.results_present) == (1, 10, 0)
        assert details(here, theirs) == expected
        assert len(details(here, mine)) == 4
        assert rows_in(here, "case") == 12
        assert Reader.open(str(here)).resolve(theirs).status == "complete"
        assert maintain.check(str(here)) == []
        again = maintain.merge(str(there), str(here))
        assert (again.runs_added, again.results_added, again.results_present) == (0, 0, 10)
        assert {table: rows_in(here, table) for table in ("run", "result", "log", "artifact", "device", "environment")} == {
            "run": 2, "result": 14, "log": 2, "artifact": 2, "device": 2, "environment": 2,
        }  # fmt: skip
        assert there.read_bytes() == before

    def test_a_new_store_is_made_of_others(self, here: Path, there: Path, tmp_path: Path) -> None:
        filled(here, range(3))
        filled(there, range(3))
        for source in (here, there):
            maintain.merge(str(source), str(tmp_path / "all.db"))
        assert len(Reader.open(str(tmp_path / "all.db")).results()) == 6

    def test_a_run_that_went_on_after_the_first_merge_is_completed(self, here: Path, there: Path) -> None:
        with Store.open(str(there)) as store:
            with store.start_run(material.run_start()) as run:
                run.record(material.record(material.planned(material.case(0))))
                maintain.merge(str(there), str(here))
            assert Reader.open(str(here)).resolve().status == "interrupted"
            with store.resume_run(run.run) as again:
                again.register([material.device(uid="ffff")])
                again.record(material.record(material.planned(material.case(1))))
                again.finish("complete")
        merged = maintain.merge(str(there), str(here))
        assert (merged.runs_added, merged.results_added, merged.results_present) == (0, 1, 1)
        assert details(here, run.run) == details(there, run.run)
        assert [row.device_uid for row in Reader.open(str(here)).results()] == ["a1b2", "ffff"]
        assert Reader.open(str(here)).resolve().status == "complete"

    def test_copies_that_parted_are_counted_and_left_as_they_are(self, here: Path, there: Path) -> None:
        """Other figures of one attempt were there already, and the copy's end and host were taken over."""
        filled(here, range(4))
        there.write_bytes(here.read_bytes())
        parted = (
            "update result set finished_at = '2099-01-01T00:00:00.000000+00:00', error_rel = 0.25 where id = 2",
            "update sample_blob set sum_ns = sum_ns + 1 where result_id = 3",
            "update summary set p50_s = 1 where result_id = 4",  # derived, maybe by other formulas
            "update run set finished_at = '2099-01-01T00:00:00.000000+00:00', reason = 'again'",
            "update environment set digest = 'other'",
            "update log set created_at = '2099-01-01T00:00:00.000000+00:00'",
        )
        change(there, *parted)
        before = [dump(here), dump(there)]
        merged = maintain.merge(str(there), str(here), is_checked=True)
        assert (merged.results_added, merged.results_present, merged.results_differing) == (0, 4, 2)
        assert [dump(here), dump(there)] == before
        there.write_bytes(here.read_bytes())
        assert maintain.merge(str(there), str(here)).results_differing == 0

    def test_a_run_that_ended_without_another_result_is_ended_here_too(self, here: Path, there: Path) -> None:
        filled(there, range(2))
        here.write_bytes(there.read_bytes())
        change(here, "update run set status = 'interrupted', finished_at = '2001-01-01T00:00:00.000000+00:00'")
        before = dump(here)
        change(there, "update run set status = 'interrupted'")
        maintain.merge(str(there), str(here))
        assert dump(here) == before
        change(there, "update run set status = 'complete'")
        maintain.merge(str(there), str(here))
        assert dump(here) == dump(there)

    def test_two_runs_of_one_name_are_kept_apart(self, here: Path, there: Path) -> None:
        mine, theirs = filled(here, range(2)), filled(there, range(5))
        change(there, f"update run set name = '{mine}'")
        merged = maintain.merge(str(there), str(here))
        new = merged.renamed[mine]
        assert new != mine
        assert (len(details(here, mine)), len(details(here, new))) == (2, 5)
        assert maintain.merge(str(there), str(here)).runs_added == 0
        assert theirs not in [info.run for info in Reader.open(str(here)).runs()]

    def test_a_run_being_written_here_is_left_alone(self, here: Path, there: Path) -> None:
        with Store.open(str(here)) as store, store.start_run(material.run_start()) as run:
            run.record(material.record())
            maintain.merge(str(here), str(there))
            change(there, "update result set attempt = 2")
            merged = maintain.merge(str(there), str(here))
            assert (merged.live, merged.results_added) == ((run.run,), 0)
            run.record(material.record(attempt=2))

    def test_refusals_create_nothing(self, here: Path, tmp_path: Path) -> None:
        filled(here, range(1))
        with pytest.raises(UsageError, match="cannot be merged into itself"):
            maintain.merge(str(here), f"sqlite:///{here}")
        with pytest.raises(StoreUnusable, match="no store at"):
            maintain.merge(str(tmp_path / "none.db"), str(tmp_path / "new.db"))
        (tmp_path / "notes.txt").write_text("notes " * 500)
        with pytest.raises(StoreUnusable, match="is not a database"):
            maintain.merge(str(tmp_path / "notes.txt"), str(tmp_path / "new.db"))
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["here.db", "notes.txt"]


class TestPrune:
    def test_a_run_goes_with_everything_that_only_it_had(self, here: Path) -> None:
        kept, gone = filled(here, range(3)), filled(here, range(2, 9))
        expected = details(here, kept)
        would = maintain.prune(str(here), runs=[gone], dry_run=True)
        assert would == maintain.Pruned((gone,), 7, ())
        assert rows_in(here, "result") == 10
        assert maintain.prune(str(here), runs=[gone]) == would
        assert details(here, kept) == expected
        assert {
            rows_in(here, table) for table in ("result", "summary", "sample_blob", "telemetry_blob", "case", "workload")
        } == {3}
        assert {rows_in(here, table) for table in ("run", "device", "environment", "log", "artifact")} == {1}
        assert maintain.check(str(here)) == []

    def test_old_runs_go_and_live_ones_stay(self, here: Path) -> None:
        old, new = filled(here, range(2)), filled(here, range(3))
        long_ago = (datetime.now(UTC) - timedelta(days=40)).strftime("%Y-%m-%d %H:%M:%S.%f")
        with Store.open(str(here)) as store, store.start_run(material.run_start()) as live:
            change(here, f"update run set started_at = '{long_ago}' where name in ('{old}', '{live.run}')")
            pruned = maintain.prune(str(here), before=datetime.now(UTC) - timedelta(days=30))
            assert pruned == maintain.Pruned((old,), 2, (live.run,))
            live.record(material.record())
        assert {info.run for info in Reader.open(str(here)).runs()} == {new, live.run}

    def test_a_writer_goes_on_when_the_cases_it_knew_were_pruned(self, here: Path) -> None:
        gone = filled(here, range(2))
        with Store.open(str(here)) as store, store.start_run(material.run_start()) as run:
            planned = material.planned(material.case(0))
            with store.session.transaction() as connection:
                run._catalogue.case_id(connection, planned.case.key, planned.case)
            run._catalogue.committed()
            maintain.prune(str(here), runs=[gone])
            assert rows_in(here, "case") == 0
            run.record(material.record(planned))
        assert maintain.check(str(here)) == []

    def test_an_unknown_run_removes_nothing(self, here: Path) -> None:
        run = filled(here, range(2))
        with pytest.raises(UsageError, match="no run 'nope'"):
            maintain.prune(str(here), runs=[run, "nope"])
        assert rows_in(here, "run") == 1


def test_vacuum_gives_space_back(here: Path) -> None:
    run = filled(here, range(60))
    filled(here, range(1))
    maintain.prune(str(here), runs=[run])
    vacuumed = maintain.vacuum(str(here))
    assert vacuumed.after_bytes < vacuumed.before_bytes * 0.7
    assert vacuumed.after_bytes == here.stat().st_size
    assert maintain.check(str(here)) == []


@pytest.mark.parametrize("work", [maintain.vacuum, maintain.check, maintain.prune, maintain.upgrade])
def test_what_is_not_there_is_not_created_by_looking_after_it(here: Path, work: Any) -> None:
    with pytest.raises(StoreUnusable, match="no store at"):
        work(str(here))
    assert not here.exists()


DAMAGE = {
    "a lost device": ("delete from device", "refer to a device"),
    "a lost case": ('delete from "case"', "refer to a case"),
    "a lost result": ("delete from result where id = 2", "refer to a result"),
    "samples that do not decode": ("update sample_blob set durations = x'0102'", "samples cannot be decoded"),
    "samples of another count": ("update sample_blob set count = 3", "not those that were counted"),
    "spans that are none": ("update sample_blob set spans = '[[0, 1]]'", "is no span of samples"),
    "spans that are no JSON": ("update sample_blob set spans = '[[0'", "spans: "),
    "spans of more samples": ("update sample_blob set spans = '[[0, 0, 1], [200, 1, 2]]'", "they begin with samples 0 to 200"),
    "spans out of order": ("update sample_blob set spans = '[[0, 1, 0]]'", "their times are not in order"),
    "samples under the minimum": ("update sample_blob set min_ns = min_ns + 1", "not those that were counted"),
    "telemetry that does not decode": ("update telemetry_blob set channels = x'0102'", "telemetry cannot be decoded"),
    "samples that are missing": ("delete from sample_blob where result_id = 1", "timed, but has no samples"),
    "an outcome that is none": ("update result set outcome = 'splendid'", "'splendid' is no outcome"),
    "JSON that is none": ("update workload set params = '{'", "params: "),
    "NaN in JSON": ("update run set config = '{\"a\": NaN}'", "NaN is not JSON"),
    "an infinity": ("update summary set p50_s = 9e999", "not a finite number"),
    "a word for a number": ("update summary set flop_s = 'fast'", "not a finite number"),
    "a word for a count": ("update result set flops = 'many'", "flops: "),
    "a word for a time": ("update run set started_at = 'once'", "started_at: "),
    "a summary of another device": ("update summary set device_id = 99", "repeats another device"),
    "a summary of another load": ("update summary set load = 'burst'", "repeats another device"),
    "a summary that claims a check": ("update result set outcome = 'impossible'", "repeats another device"),
}


@pytest.mark.parametrize(("damage", "finding"), DAMAGE.values(), ids=DAMAGE)
def test_check_finds(here: Path, damage: str, finding: str) -> None:
    here.write_bytes(whole_of_three())
    change(here, damage)
    found = maintain.check(str(here))
    assert any(finding in problem.what for problem in found), found
    assert all("\n" not in problem.what for problem in found)


def test_check_finds_damaged_pages(here: Path) -> None:
    filled(here, range(40))
    content = bytearray(here.read_bytes())
    for start in range(4096 * 40, 4096 * 60, 4096):
        content[start : start + 100] = b"\xee" * 100
    here.write_bytes(content)
    found = maintain.check(str(here))
    assert any(problem.where.startswith("table ") for problem in found)


def test_check_finds_what_is_there_twice(here: Path) -> None:
    filled(here, range(2))
    change(
        here,
        "create table copy as select * from result",
        "drop table result",
        "alter table copy rename to result",
        "update result set case_id = 1",
    )
    assert any("is there 2 times" in problem.what for problem in maintain.check(str(here)))


def test_check_takes_back_what_a_killed_writer_left_half_written(here: Path, there: Path) -> None:
    run = filled(here, range(20))
    connection = sqlite3.connect(here, isolation_level=None)
    connection.execute("pragma cache_size=2")  # so that pages reach the file before the commit
    connection.execute("begin immediate")
    connection.execute("update result set reason = hex(randomblob(500))")
    for suffix in ("", "-journal"):
        Path(f"{there}{suffix}").write_bytes(Path(f"{here}{suffix}").read_bytes())
    connection.close()
    assert there.read_bytes() != here.read_bytes()
    with pytest.raises(StoreUnusable, match=r"left in the middle of a write: `roofbench store check`"):
        Reader.open(str(there)).results()
    assert maintain.check(str(there)) == []
    assert details(there, run) == details(here, run)


class TestRebuild:
    def test_only_summaries_of_other_formulas_are_derived_anew(self, here: Path) -> None:
        run = filled(here, range(5))
        change(here, f"update summary set formulas_version = {FORMULAS_VERSION - 1}, flop_s = 1 where result_id in (2, 4)")
        change(here, "delete from summary where result_id = 5")
        asked: list[int] = []

        def derive(stored: maintain.Stored) -> Summary:
            asked.append(stored.case.workload.param("m") // 128 - 1)
            assert stored.measurement == material.measurement()
            assert stored.device == material.device()
            assert stored.work == material.planned(stored.case).work
            return material.summary(flop_s=4e14)

        assert maintain.rebuild(str(here), derive) == 3
        assert asked == [1, 3, 4]
        assert [row.flop_s for row in Reader.open(str(here)).results(run)] == [6.6e14, 4e14, 6.6e14, 4e14, 4e14]
        assert maintain.rebuild(str(here), derive) == 0
        assert maintain.rebuild(str(here), derive, everything=True) == 5
        assert maintain.check(str(here)) == []

    def test_calibrations_are_derived_first_for_the_others_to_rest_on(self, here: Path) -> None:
        with Store.open(str(here)) as store, store.start_run(material.run_start()) as run:
            run.record(material.record(material.planned(material.case(0))))
            run.record(material.record(material.planned(material.calibration_case("copy"))))
            run.record(material.record(material.planned(material.case(1)), material.measurement(Outcome.CRASHED)))
        seen: list[tuple[str, Calibration]] = []

        def derive(stored: maintain.Stored) -> Summary:
            seen.append((stored.case.workload.job, stored.calibration))
            return material.summary(flop_s=0.0 if stored.case.workload.job == "calibration" else 6.6e14, bytes_s=3.5e12)

        assert maintain.rebuild(str(here), derive, everything=True) == 2
        assert seen == [("calibration", Calibration(copy_bytes_s=3.1e12)), ("gemm", Calibration(copy_bytes_s=3.5e12))]

    def test_a_result_that_yields_no_summary_any_more_has_none(self, here: Path) -> None:
        filled(here, range(2))
        assert maintain.rebuild(str(here), lambda stored: None, everything=True) == 2
        assert [row.p50_s for row in Reader.open(str(here)).results()] == [None, None]

    @pytest.mark.parametrize(
        ("odd", "says"),
        [
            ({"flop_s": float("nan")}, "flop_s: 'nan' is not a finite number"),
            ({"power_w": -5.0}, "power_w: -5.0 is not between 0 and 1e+12"),
            ({"interval_low_s": 5.0}, "interval_low_s 5.0 is above"),
        ],
    )
    def test_a_summary_that_cannot_be_is_not_put_in_place_of_the_one_before(
        self, here: Path, odd: dict[str, float], says: str
    ) -> None:
        filled(here, range(3))
        before = Reader.open(str(here)).results()
        left: list[maintain.Problem] = []

        def derive(stored: maintain.Stored) -> Summary:
            return material.summary(**{"flop_s": 1.0, **(odd if stored.case == material.case(2) else {})})

        assert maintain.rebuild(str(here), derive, everything=True, tell=left.append) == 2
        assert [each.where for each in left] == ["result 3"]
        assert left[0].what.startswith(says)
        after = Reader.open(str(here)).results()
        assert [row.flop_s for row in after] == [1.0, 1.0, before[2].flop_s]


def test_a_result_is_derived_by_the_calibration_of_its_time_and_backend(here: Path) -> None:
    def empty(p50_s: float, minute: int) -> Record:
        planned = material.planned(material.calibration_case("empty", Regime("warm", "sustained", "device")))
        return material.record(planned, summary=material.summary(p50_s=p50_s), finished_at=at(minute))

    def at(minute: int) -> datetime:
        return material.START + timedelta(minutes=minute)

    for backend, p50_s in (("cuda", 1e-6), ("xla", 7e-6)):
        first = material.run_start(material.device(backend=backend))
        with Store.open(str(here)) as store, store.start_run(first) as run:
            run.record(empty(p50_s, 1))
            run.record(material.record(material.planned(material.case(0)), finished_at=at(2)))
    with Store.open(str(here)) as store, store.start_run(material.run_start()) as run:
        run.record(empty(50e-6, 3))
        run.record(material.record(material.planned(material.case(0)), finished_at=at(4)))
    change(here, "update summary set formulas_version = 1")
    seen: list[tuple[str, float | None]] = []

    def derive(stored: maintain.Stored) -> Summary:
        if stored.case.workload.job == "gemm":
            seen.append((stored.device.info.backend, stored.calibration.empty_device_s))
        nothing = {} if stored.work.flops else {"flop_s": 0.0, "bytes_s": 0.0}
        return material.summary(p50_s=stored.calibration.empty_device_s or 1.0, **nothing)

    assert maintain.rebuild(str(here), derive) == 6
    assert seen == [("cuda", 1e-6), ("xla", 7e-6), ("cuda", 50e-6)]


def test_a_median_that_is_under_the_least_sample_is_no_median(here: Path) -> None:
    filled(here, range(2))
    change(here, "update sample_blob set median_ns = 1.5 where result_id = 2")
    (problem,) = maintain.check(str(here))
    assert problem.where == "result 2"
    assert "not those that were counted" in problem.what
