"""Selftests in a store: what goes in comes out, and none vanishes or stays behind when runs are pruned or merged."""

import shutil
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from suite.errors import StoreUnusable, UsageError
from suite.selftest.record import Finding, Repeatability, Selftest, Status
from suite.store import maintain
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import material

DAY = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)
FINDINGS = (
    Finding("timer", Status.OK, "steps of 1 ns", {"resolution_s": 1e-9, "method": "graph"}),
    Finding("load", Status.WARN, "sustained is 18 % under burst: power limit 700 W reached", {"share": 0.18, "cap": None}),
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the run of a selftest: copying it takes a hundredth of the time of making another."""
    path = tmp_path_factory.mktemp("selftests") / "store.db"
    run_of(path)
    return path


@pytest.fixture
def here(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "here.db"))


@pytest.fixture
def run(here: Path) -> str:
    """The run in the store."""
    return Reader.open(str(here)).resolve().run


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there.db"


def run_of(path: Path, experiment: str = "selftest") -> str:
    with Store.open(str(path)) as store, store.start_run(material.run_start(experiment=experiment)) as run:
        run.record(material.record())
        run.finish("complete")
    return run.run


def selftest(*runs: str, days: float = 0, **fields: Any) -> Selftest:
    given: dict[str, Any] = {
        "device_uid": "a1b2",
        "device": "NVIDIA H200",
        "backend": "cuda",
        "runs": runs,
        "finished_at": DAY + timedelta(days=days),
        "findings": FINDINGS,
        "repeatability": Repeatability(0.004, None, True, 12),
        "facts": {"driver": "580.1", "power_limit": None},
    }
    return Selftest(**{**given, **fields})


def record(path: Path, *selftests: Selftest) -> None:
    with Store.open(str(path)) as store:
        for each in selftests:
            store.record_selftest(each)


def stored(path: Path, device_uid: str | None = None) -> list[Selftest]:
    return Reader.open(str(path)).selftests(device_uid)


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_what_goes_in_comes_out_the_newest_first_and_by_device(here: Path, run: str) -> None:
    kolkata = timezone(timedelta(hours=5, minutes=30))
    first, last = selftest(run), selftest(run, days=2, repeatability=None, facts={})
    other = selftest(run, days=1, device_uid="ffff", findings=(), finished_at=(DAY + timedelta(days=1)).astimezone(kolkata))
    record(here, last, first, other)
    assert stored(here) == [last, other, first]
    assert stored(here)[1].finished_at.utcoffset() == timedelta(0)
    assert stored(here, "a1b2") == [last, first]
    assert stored(here, "nowhere") == []
    assert [each.status for each in stored(here)] == ["warn", "unavailable", "warn"]
    assert maintain.check(str(here)) == []


def test_the_same_selftest_is_stored_once(here: Path, run: str) -> None:
    record(here, selftest(run), selftest(run, finished_at=DAY.astimezone(timezone(timedelta(hours=-8)))))
    record(here, selftest(run), selftest(run, backend="xla"))
    assert len(stored(here)) == 2


def test_a_repeatability_that_failed_or_was_disturbed_gives_way_to_the_one_before(here: Path, run: str) -> None:
    """As such were stored before anything was left out: 95 % and 3 %, measured beside other work."""
    failed = (Finding("repeatability", Status.FAIL, "1 of 20 cases", {"cases": 20, "contended_cases": 20}),)
    disturbed = (Finding("repeatability", Status.WARN, "18 of 20 cases", {"cases": 20, "contended_cases": 3}),)
    record(
        here,
        selftest(run),
        selftest(run, days=1, findings=disturbed, repeatability=Repeatability(0.03, None, True, 20)),
        selftest(run, days=2, findings=failed, repeatability=Repeatability(0.95, 0.77, True, 20)),
    )
    assert Reader.open(str(here)).repeatability("a1b2") == selftest(run).repeatability
    record(here, selftest(run, days=3, findings=failed, facts={"driver": "590.1"}))
    assert Reader.open(str(here)).repeatability("a1b2") is None


def test_repeatability_is_that_of_the_newest_selftest_that_could_tell_one(here: Path, run: str) -> None:
    reader = Reader.open(str(here))
    assert reader.repeatability("a1b2") is None
    told = [Repeatability(0.004, 0.002, True, 20), Repeatability(None, 0.01, False, 3)]
    unknown = (None, Repeatability(None, None, False, 0))
    for days, each in enumerate((*told, *unknown)):
        record(here, selftest(run, days=days, repeatability=each))
    record(here, selftest(run, days=9, device_uid="ffff", repeatability=Repeatability(0.2, None, True, 1)))
    assert reader.repeatability("a1b2") == told[1]
    assert reader.selftests("a1b2")[0].repeatability == unknown[1]
    assert reader.repeatability("ffff") == Repeatability(0.2, None, True, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"runs": ("20260101T000000-none",)},
        {"repeatability": Repeatability(float("nan"), None, True, 1)},
        {"findings": (Finding("timer", Status.OK, "", {"s": float("inf")}),)},
        {"finished_at": datetime(2026, 11, 29)},  # noqa: DTZ001
    ],
    ids=["a run that is not there", "a figure that is none", "a finding without end", "a time without zone"],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(here: Path, run: str, wrong: dict[str, Any]) -> None:
    with Store.open(str(here)) as store:
        with pytest.raises(ValueError):
            store.record_selftest(replace(selftest(run), **wrong))
        store.record_selftest(selftest(run, days=1))
    assert stored(here) == [selftest(run, days=1)]


def test_pruning_a_run_leaves_a_note_in_the_selftests_that_rest_on_others_too(here: Path, run: str) -> None:
    runs = [run, run_of(here), run_of(here)]
    both, one, apart = selftest(*runs[:2]), selftest(runs[0], days=1), selftest(runs[2], days=2)
    record(here, both, one, apart)
    would = maintain.prune(str(here), runs=[runs[0]], dry_run=True)
    assert (would.selftests, would.noted) == (1, 1)
    assert len(stored(here)) == 3
    assert maintain.prune(str(here), runs=[runs[0]]) == would
    kept = replace(both, runs=(runs[1],), facts={**both.facts, "pruned_runs": runs[0]})
    assert stored(here) == [apart, kept]
    assert Reader.open(str(here)).repeatability("a1b2") == apart.repeatability
    assert maintain.check(str(here)) == []


def test_a_selftest_goes_with_the_last_of_its_runs(here: Path, run: str) -> None:
    """Nothing of a device is left behind when all of its runs were removed."""
    runs = [run, run_of(here)]
    bare = selftest(days=1, device_uid="ffff")
    record(here, selftest(*runs), bare)
    assert maintain.prune(str(here), before=datetime.now(UTC) + timedelta(days=1)).selftests == 1
    assert stored(here) == [bare]


def test_a_merge_brings_selftests_over_once_with_the_names_that_runs_have_here(here: Path, there: Path, run: str) -> None:
    mine, theirs = run, run_of(there)
    record(here, selftest(mine))
    record(there, selftest(theirs, days=1))
    change(there, f"update run set name = '{mine}'")
    merged = maintain.merge(str(there), str(here))
    assert merged.selftests_added == 1
    assert stored(here) == [selftest(merged.renamed[mine], days=1), selftest(mine)]
    assert maintain.merge(str(there), str(here)).selftests_added == 0
    assert len(stored(here)) == 2
    assert maintain.check(str(here)) == []


def test_a_merge_mends_the_selftest_whose_run_comes_back(here: Path, there: Path, run: str) -> None:
    runs = [run, run_of(here)]
    record(here, selftest(*runs))
    shutil.copy(here, there)
    maintain.prune(str(here), runs=[runs[0]])
    maintain.merge(str(there), str(here))
    assert stored(here) == [selftest(*runs)]


def test_vacuuming_and_rebuilding_leave_selftests_alone(here: Path, run: str) -> None:
    record(here, selftest(run))
    maintain.vacuum(str(here))
    maintain.rebuild(str(here), lambda stored: None, everything=True)
    assert stored(here) == [selftest(run)]


DAMAGE = {
    "findings that are none": ("findings = '{}'", "findings is no list"),
    "a finding without a status": ('findings = \'[{"name": "timer", "says": "", "figures": {}}]\'', "'status' is missing"),
    "a status that is none": ('findings = \'[{"name": "t", "status": "fine", "says": "", "figures": {}}]\'', "fine"),
    "facts that are none": ("facts = '{\"driver\": 580}'", "facts are no texts"),
    "runs that are none": ("runs = '[\"20260101T000000-none\"]'", "no run's uid and name"),
    "half a repeatability": ("cases = null", "not whole"),
    "an infinite figure": ("cycles_rel = 9e999", "inf"),
    "less than no difference": ("cycles_rel = -1", "cycles_rel -1.0 is below 0"),
    "less than no difference of bytes": ("bytes_rel = -0.5", "bytes_rel -0.5 is below 0"),
    "less than no cases": ("cases = -3", "cases '-3' is no count"),
    "a time that is none": ("finished_at = 'once'", "once"),
}


@pytest.mark.parametrize(("damage", "finding"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_one_line_for_readers_and_is_found_by_a_check(
    here: Path, there: Path, run: str, damage: str, finding: str
) -> None:
    record(here, selftest(run))
    change(here, f"update selftest set {damage}")
    with pytest.raises(StoreUnusable, match=r"is damaged: .*`roofbench store check`") as told:
        stored(here)
    assert finding in str(told.value)
    assert any(finding in problem.what for problem in maintain.check(str(here)))
    with pytest.raises(StoreUnusable, match="is damaged: "):
        maintain.merge(str(here), str(there))
    assert not there.exists()


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("update selftest set status = 'ok'", "status 'ok' is not that of its findings"),
        ("update run set uid = 'another'", "none of the runs that it rests on is there"),
    ],
)
def test_a_check_finds_what_contradicts_itself(here: Path, run: str, damage: str, finding: str) -> None:
    record(here, selftest(run))
    change(here, damage)
    assert any(finding in problem.what for problem in maintain.check(str(here)))


def test_the_run_of_a_selftest_is_the_latest_only_where_no_other_is(here: Path, run: str) -> None:
    tested = run
    reader = Reader.open(str(here))
    assert reader.resolve().run == reader.resolve("latest").run == tested
    own, again = run_of(here, "quick"), run_of(here)
    assert reader.resolve().run == reader.resolve("latest").run == own
    assert reader.resolve(again).run == again
    assert [row.run for row in reader.results("latest")] == [own]
    assert [info.run for info in reader.runs()] == [again, own, tested]
    with Store.open(str(here)) as store, store.resume_run("latest") as resumed:
        assert resumed.run == own
        resumed.finish("complete")
    maintain.prune(str(here), runs=[own])
    assert reader.resolve().run == again


def test_another_run_that_is_given_no_experiment_is_the_latest(here: Path) -> None:
    own = run_of(here, "")
    run_of(here)  # after it
    assert Reader.open(str(here)).resolve().run == own
    with pytest.raises(UsageError, match="no run 'selftest'"):
        Reader.open(str(here)).resolve("selftest")
