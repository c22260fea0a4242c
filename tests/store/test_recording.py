"""Recording a run, finishing it, and going on with it later."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.backend import Fact
from suite.errors import StoreWriteFailed, UsageError
from suite.outcome import Outcome
from suite.rows import NO_FRACTIONS, ResultRow
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import material


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def unseen(row: ResultRow) -> ResultRow:
    """The row as its writer knows it: what the device has been seen to do is for readers."""
    return replace(row, fractions=row.fractions._replace(empirical=None))


def test_the_row_that_recording_gives_is_the_row_that_readers_get(path: str) -> None:
    cases = [
        material.record(),
        material.record(material.planned(material.case(1)), material.measurement(Outcome.CRASHED, reason="signal 11")),
        material.record(material.planned(material.calibration_case("copy")), summary=material.summary(flop_s=0.0)),
        material.record(material.planned(material.case(2)), material.measurement(Outcome.IMPOSSIBLE, material.sample_set())),
    ]
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        written = [run.record(each) for each in cases]
        assert [unseen(row) for row in Reader.open(path).results()] == written
    assert written[1].p50_s is None
    assert written[1].fractions == NO_FRACTIONS
    assert written[0].interval_s == (2.0e-6 * 0.998, 2.0e-6 * 1.002)


def test_detail_gives_back_everything_of_a_result(path: str) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        row = run.record(material.record())
        run.log("worker-0", "autotuned\n", slot=0)
        run.log("worker-1", "of the other device\n", slot=1)
        run.log("worker-0", "done\n", slot=0)
    detail = Reader.open(path).detail((None, row.case_key[:6]))
    assert detail.measurement == material.measurement()
    assert unseen(detail.row) == row
    assert detail.environment["host"] == {"cpu": Fact.measured("EPYC"), "rapl": Fact.unavailable("no msr")}
    assert detail.log == "autotuned\ndone\n"


def test_a_run_is_there_before_anything_is_measured(path: str) -> None:
    start = material.run_start(note="after the driver update", planned=12)
    with Store.open(path) as store, store.start_run(start) as run:
        (info,) = Reader.open(path).runs()
        assert (info.run, info.status, info.planned, info.finished) == (run.run, "running", 12, 0)
        assert (info.note, info.config, info.argv) == ("after the driver update", start.config, ("roofbench", "run"))
        assert Reader.open(path).devices() == [material.device()]


@pytest.mark.parametrize("status", ["complete", "interrupted", "failed"])
def test_a_run_ends_as_it_was_finished(path: str, status: str) -> None:
    with Store.open(path) as store:
        with store.start_run(material.run_start()) as run:
            run.finish(status, "said so")
        info = Reader.open(path).resolve(run.run)
    assert info.status == status
    assert info.finished_at is not None
    assert info.planned == material.run_start().planned


def test_a_run_that_turned_out_longer_is_stored_with_what_it_was(path: str) -> None:
    with Store.open(path) as store:
        with store.start_run(material.run_start()) as run:
            run.finish("complete", planned=14)
        assert Reader.open(path).resolve(run.run).planned == 14


@pytest.mark.parametrize(
    ("error", "status"),
    [(KeyboardInterrupt(), "interrupted"), (StoreWriteFailed("disk"), "interrupted"), (RuntimeError("bug"), "failed")],
)
def test_a_run_that_is_left_by_an_exception_says_so_and_can_go_on(path: str, error: BaseException, status: str) -> None:
    with Store.open(path) as store:
        with pytest.raises(type(error)):
            _broken_run(store, error)
        assert Reader.open(path).resolve().status == status
        with store.resume_run("latest") as again:
            assert again.finished == {(0, material.case().key)}


def _broken_run(store: Store, error: BaseException) -> None:
    with store.start_run(material.run_start()) as run:
        run.record(material.record())
        raise error


def test_the_same_attempt_is_never_stored_twice(path: str) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
        with pytest.raises(StoreWriteFailed, match=f"second result for attempt 1 at case {material.case().key}"):
            run.record(material.record())
        run.record(material.record(material.planned(material.case(1))))
    assert Reader.open(path).counts() == {"ok": 2}


def test_only_the_latest_attempt_at_a_case_is_shown(path: str) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        run.record(material.record(measured=material.measurement(Outcome.TIMEOUT)))
        second = run.record(material.record(attempt=2))
        assert run.attempts == {(0, second.case_key): 2}
    reader = Reader.open(path)
    assert [unseen(row) for row in reader.results()] == [second]
    assert reader.counts() == {"ok": 1}
    assert reader.resolve().finished == 1
    assert reader.detail((None, second.case_key)).row.attempt == 2


def test_the_seed_is_the_runs_unless_the_case_has_its_own(path: str) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
        run.record(material.record(material.planned(material.case(1)), seed=2**64 - 1))
    with sqlite3.connect(path) as connection:
        assert connection.execute("select seed from result order by id").fetchall() == [("7",), (str(2**64 - 1),)]
    connection.close()


def test_a_resumed_run_keeps_its_config_and_what_was_finished(path: str) -> None:
    config = {"jobs": {"gemm": {"shapes": ["64x64x64"]}}, "seed": 3, "max_time_s": None}
    with Store.open(path) as store, store.start_run(material.run_start(config=config)) as run:
        run.record(material.record())
        run.record(material.record(material.planned(material.case(1)), material.measurement(Outcome.CRASHED)))
    with Store.open(path) as store, store.resume_run(run.run[:12]) as again:
        assert (again.run, again.config) == (run.run, config)
        assert again.finished == {(0, material.case().key), (0, material.case(1).key)}
        assert Reader.open(path).resolve().status == "running"
        again.record(material.record(material.planned(material.case(2))))
        again.finish("complete")
    info = Reader.open(path).resolve()
    assert (info.status, info.finished) == ("complete", 3)


def test_results_of_a_resumed_run_point_to_the_chip_and_system_they_were_taken_on(path: str) -> None:
    other, facts = material.device(uid="ffff", driver="590"), {"host": {"cpu": Fact.measured("Grace")}}
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
    with Store.open(path) as store, store.resume_run(run.run) as again:
        again.register([other], facts)
        again.record(material.record(material.planned(material.case(1))))
    reader = Reader.open(path)
    first, second = reader.results()
    assert (first.device_uid, second.device_uid) == ("a1b2", "ffff")
    assert reader.detail(first.result_id).environment["host"]["cpu"].value == "EPYC"
    assert reader.detail(second.result_id).environment["host"]["cpu"].value == "Grace"
    assert reader.devices() == [material.device(), other]
    assert reader.environment() == facts


def test_registering_the_same_chip_again_adds_nothing(path: str) -> None:
    start = material.run_start()
    with Store.open(path) as store, store.start_run(start) as run:
        run.register(start.devices, start.environment)
        run.record(material.record())
    with Store.open(path) as store, store.resume_run("latest") as again:
        again.register(start.devices, start.environment)
        again.record(material.record(material.planned(material.case(1))))
    assert Reader.open(path).devices() == [material.device()]
    with sqlite3.connect(path) as connection:
        assert connection.execute("select count(*) from environment").fetchone() == (1,)
    connection.close()


def test_a_slot_without_a_device_cannot_be_recorded(path: str) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run, pytest.raises(ValueError, match="slot 3"):
        run.record(material.record(material.planned(slot=3)))


def test_two_slots_keep_their_results_apart(path: str) -> None:
    devices = (material.device(0), material.device(1, uid="c3d4"))
    with Store.open(path) as store, store.start_run(material.run_start(*devices)) as run:
        rows = [run.record(material.record(material.planned(slot=slot))) for slot in (0, 1)]
        assert run.finished == {(0, rows[0].case_key), (1, rows[0].case_key)}
    reader = Reader.open(path)
    key = rows[0].case_key
    with pytest.raises(UsageError, match=f"{key}@0, {key}@1"):
        reader.detail((None, key[:5]))
    assert reader.detail((None, f"{key[:5]}@1")).row.device_uid == "c3d4"


@pytest.mark.parametrize("given", ["20200101", "latest-but-one", "", "%", "_", "' or 1=1 --"])
def test_resuming_a_run_that_is_not_there_is_refused_with_its_name(path: str, given: str) -> None:
    with Store.open(path) as store:
        with store.start_run(material.run_start()) as run, store.start_run(material.run_start()):
            pass
        with pytest.raises(UsageError, match=r"run '|an empty name"):
            store.resume_run(given)
        with pytest.raises(UsageError, match=f"did you mean '{run.run}'"):
            store.resume_run(f"{run.run[:-1]}!")


def test_resuming_in_an_empty_store_says_to_run_first(path: str) -> None:
    with Store.open(path) as store, pytest.raises(UsageError, match="holds no runs yet"):
        store.resume_run("latest")


def test_a_run_being_written_is_not_resumed_even_by_the_same_process(path: str) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        with Store.open(path) as other, pytest.raises(UsageError, match=f"run {run.run} is being written by process"):
            other.resume_run("latest")
        run.record(material.record())
        run.finish("complete")
        with store.resume_run(run.run) as again:
            assert len(again.finished) == 1


def test_logs_and_artifacts_are_kept_with_the_run(path: str) -> None:
    import zlib

    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        run.log("nccl", "ring 0\n")
        run.log("nccl", "ring 1\n")
        run.log("build", "\N{SNOWMAN}" * 100_000)
        run.artifact("trace.json", b"old")
        run.artifact("trace.json", b"[1, 2]" * 1000)
    assert Reader.open(path).logs() == {"nccl": "ring 0\nring 1\n", "build": "\N{SNOWMAN}" * 100_000}
    with sqlite3.connect(path) as connection:
        ((size, content),) = connection.execute("select size_bytes, content from artifact").fetchall()
    connection.close()
    assert (size, zlib.decompress(content)) == (6000, b"[1, 2]" * 1000)


HOSTILE = "'); drop table result; -- <script>alert(1)</script> \"`$(reboot)\u202e\n\t" + "x" * 200_000


def test_hostile_names_are_only_names(path: str) -> None:
    device = material.device(uid=HOSTILE, driver=HOSTILE)
    start = material.run_start(device, experiment=HOSTILE, note=HOSTILE, config={HOSTILE: [HOSTILE]}, argv=[HOSTILE])
    measurement = material.measurement(description={HOSTILE: HOSTILE})
    case = material.case(implementation=HOSTILE, format=HOSTILE)
    with Store.open(path) as store, store.start_run(start) as run:
        written = run.record(material.record(material.planned(case), measurement))
        run.log(HOSTILE, HOSTILE)
        run.artifact(HOSTILE, HOSTILE.encode())
    reader = Reader.open(path)
    (row,) = reader.results(format=HOSTILE, device_uid=HOSTILE)
    assert unseen(row) == written
    assert reader.detail(row.result_id).measurement == measurement
    assert reader.logs() == {HOSTILE: HOSTILE}
    assert reader.resolve().config == {HOSTILE: [HOSTILE]}
    for argument in ("job", "backend", "implementation", "case_key"):
        none: Any = {argument: "' or '1'='1"}
        assert reader.results(**none) == []


def test_a_value_too_large_for_the_database_loses_nothing_else(path: str) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
        driver = store.session._connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 50_000)
        with pytest.raises(StoreWriteFailed, match="larger than store"):
            run.log("compiler", "y" * 60_000)
        run.record(material.record(material.planned(material.case(1))))
    assert Reader.open(path).counts() == {"ok": 2}


@pytest.mark.parametrize(
    ("odd", "text"),
    [({"execution": None}, "NOT NULL constraint failed: result.execution"), ({"peak_memory_bytes": 2**63}, "too large")],
)
def test_what_the_store_refuses_is_told_as_it_is_and_the_run_goes_on(path: str, odd: dict[str, Any], text: str) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        with pytest.raises(StoreWriteFailed, match=text) as raised:
            run.record(material.record(measured=material.measurement(**odd)))
        assert "second result" not in str(raised.value)
        run.record(material.record())
    assert Reader.open(path).counts() == {"ok": 1}
