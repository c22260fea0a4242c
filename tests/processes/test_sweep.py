"""The straight line on the fake backend: from planned cases to rows in a store."""

import errno
import os
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.errors import DeviceBusy, StoreWriteFailed, WorkerStartFailed
from suite.events import CaseFinished, Event, SweepFinished, SweepStarted, WorkerRestarted
from suite.launcher.launch import Launcher
from suite.locks import hold
from suite.measurement import Measurement
from suite.outcome import Evidence, Outcome
from suite.roofline import Summary, summarize
from suite.rows import BaseKey, ResultRow, RunInfo
from suite.store.queries import Reader
from suite.store.writer import RunWriter, Store
from suite.sweep import sweep
from tests.processes.driver import planned_sweep


def measured(path: Path, **spec: Any) -> tuple[SweepFinished, list[Event], list[ResultRow]]:
    """Run a sweep into a store and read it back."""
    events: list[Event] = []
    with Store.open(str(path / "store.db")) as store:
        end = sweep(planned_sweep(spec), store, events.append)
    return end, events, stored(path)


def stored(path: Path) -> list[ResultRow]:
    with Reader.open(str(path / "store.db")) as reader:
        return reader.results()


def runs(path: Path) -> list[RunInfo]:
    with Reader.open(str(path / "store.db")) as reader:
        return reader.runs()


def test_every_planned_case_is_stored_with_calibration_first(tmp_path: Path) -> None:
    end, events, rows = measured(tmp_path, shapes=["64x64x64", "4096x4096x4096"], options={"launch_s": 3e-6})
    assert (end.status, end.by_signal) == ("complete", False)
    assert isinstance(events[0], SweepStarted)
    assert isinstance(events[-1], SweepFinished)
    finished = [event for event in events if isinstance(event, CaseFinished)]
    assert [event.done for event in finished] == list(range(1, len(rows) + 1))
    assert {row.outcome for row in rows} == {"ok"}
    assert {row.evidence for row in rows} == {"simulated"}
    # What the first results calibrate judges the later ones: the small case takes one empty kernel, the large one many.
    assert [event.row.job for event in finished] == ["calibration"] * 5 + ["gemm"] * 2
    small, large = (event.row for event in finished[5:])
    assert small.bound == "launch"
    assert large.bound != "launch"
    assert large.p50_s == pytest.approx(2 * 4096**3 / 800e12, rel=0.01)
    with Reader.open(str(tmp_path / "store.db")) as reader:
        calibration = reader.calibration("simulated0", "fake", Evidence.SIMULATED)
    rates = (calibration.read_bytes_s, calibration.copy_bytes_s, calibration.triad_bytes_s)
    assert rates == pytest.approx((4e12, 4e12, 4e12), rel=0.01)
    assert (calibration.empty_device_s, calibration.empty_call_s) == pytest.approx((3e-6, 15e-6), rel=0.01)


def test_a_case_that_cannot_fit_is_stored_without_being_run(tmp_path: Path) -> None:
    _, _, rows = measured(tmp_path, shapes=["64x64x64", "200000x200000x200000"], options={})
    by_size = {row.params["m"]: row for row in rows if row.job == "gemm"}
    assert by_size[200000].outcome == "out_of_memory"
    assert "predicted" in by_size[200000].reason
    assert by_size[200000].p50_s is None
    assert by_size[64].outcome == "ok"


def test_outcomes_logs_and_environment_are_kept_with_the_run(tmp_path: Path) -> None:
    faults = {"1x8x8": "say_and_die:dying words", "2x8x8": "oom", "3x8x8": "hang@measure"}
    end, events, rows = measured(tmp_path, shapes=[*faults, "4x8x8"], options={"faults": faults}, deadlines={"measure_s": 0.3})
    outcomes = {row.params["m"]: row.outcome for row in rows if row.job == "gemm"}
    assert outcomes == {1: "crashed", 2: "out_of_memory", 3: "timeout", 4: "ok"}
    assert end.status == "complete"
    assert sum(isinstance(event, WorkerRestarted) for event in events) == 2
    crashed = next(row for row in rows if row.params.get("m") == 1)
    with Reader.open(str(tmp_path / "store.db")) as reader:
        detail = reader.detail(crashed.result_id)
    assert "dying words" in detail.log
    assert detail.environment["fake device 0"]["fake"].value == "1.0"
    assert detail.environment["python"]["python"].status == "measured"


def test_two_devices_measure_side_by_side_every_case_on_each(tmp_path: Path) -> None:
    # The first case of each device waits for the other's to have begun: taken in turns, both would time out.
    meet = tmp_path / "meet"
    meet.mkdir()
    faults = {"64x64x64": f"meet:{meet}"}
    _, _, rows = measured(
        tmp_path, shapes=["64x64x64", "65x64x64"], options={"devices": 2, "faults": faults}, deadlines={"compile_s": 5.0}
    )
    gemm = {(row.device_slot, row.params["m"]): row.outcome for row in rows if row.job == "gemm"}
    assert gemm == {(slot, m): "ok" for slot in (0, 1) for m in (64, 65)}


def test_max_time_ends_politely_and_resume_goes_on(tmp_path: Path) -> None:
    shapes = [f"{m}x8x8" for m in range(1, 9)]
    end, _, rows = measured(tmp_path, shapes=shapes, options={"sleep_s": 0.15}, run={"max_time_s": 0.6})
    assert (end.status, end.by_signal) == ("interrupted", False)
    assert "max_time_s=0.6 reached" in end.reason
    assert 0 < len(rows) < 13
    again, events, more = measured(tmp_path, shapes=shapes, options={}, resume=end.run)
    assert (again.run, again.status) == (end.run, "complete")
    assert events[0] == SweepStarted(end.run, 13, len(rows))
    assert len(more) == len({row.case_key for row in more}) == 13


def test_a_signal_that_comes_too_late_to_be_told_counts_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last happening and the end of the run nobody waits for another."""
    monkeypatch.setattr(Launcher, "interrupt", lambda self, reason: None)

    def interrupt(event: Event) -> None:
        if isinstance(event, CaseFinished) and event.done == event.total:
            os.kill(os.getpid(), signal.SIGTERM)

    with Store.open(str(tmp_path / "store.db")) as store:
        end = sweep(planned_sweep({"shapes": ["1x8x8"]}), store, interrupt)
    assert (end.status, end.reason, end.by_signal) == ("complete", "", True)
    assert runs(tmp_path)[0].status == "complete"


def test_a_worker_that_never_starts_ends_the_command_before_a_run_is_stored(tmp_path: Path) -> None:
    with pytest.raises(WorkerStartFailed, match=r"could not be started 3 times: worker left with status 3 while starting"):
        measured(tmp_path, shapes=["64x64x64"], options={"start": "exit"})
    assert runs(tmp_path) == []


def test_a_device_without_a_worker_has_its_cases_recorded_while_the_other_goes_on(tmp_path: Path) -> None:
    end, _, rows = measured(tmp_path, shapes=["64x64x64"], options={"devices": 2, "select": {"1": "error:no such chip"}})
    assert end.status == "complete"
    by_slot = {slot: {(row.outcome, row.reason) for row in rows if row.device_slot == slot} for slot in (0, 1)}
    assert {outcome for outcome, _ in by_slot[0]} == {"ok"}
    ((outcome, reason),) = by_slot[1]
    assert outcome == "error"
    assert reason.endswith("did not start: RuntimeError: no such chip")


def test_workers_that_stop_starting_in_the_middle_end_their_cases_not_the_sweep(tmp_path: Path) -> None:
    flag = tmp_path / "started"
    spec = {"options": {"start": f"die_after_the_first:{flag}", "faults": {"2x8x8": "abort"}}}
    end, _, rows = measured(tmp_path, shapes=["1x8x8", "2x8x8", "3x8x8", "4x8x8"], **spec)
    outcomes = {row.params["m"]: (row.outcome, row.reason) for row in rows if row.job == "gemm"}
    assert end.status == "complete"
    assert [outcomes[m][0] for m in (1, 2, 3, 4)] == ["ok", "crashed", "crashed", "crashed"]
    assert "could not be started 3 times" in outcomes[3][1]


def test_a_device_that_another_run_holds_is_refused_by_name(tmp_path: Path) -> None:
    device = planned_sweep({"shapes": ["64x64x64"]}).slots[0].info
    assert device is not None
    with hold([device], "20261129T120000-abcd"), pytest.raises(DeviceBusy, match=r"run 20261129T120000-abcd, process \d+"):
        measured(tmp_path, shapes=["64x64x64"], options={})
    assert runs(tmp_path) == []


def test_a_store_that_fails_stops_the_run_and_resume_measures_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = ["1x8x8", "2x8x8", "3x8x8"]
    record, calls = RunWriter.record, iter(range(100))

    def full_at_the_seventh(self: RunWriter, *given: Any) -> ResultRow:
        if next(calls) == 6:
            raise StoreWriteFailed("no space left on device")
        return record(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "record", full_at_the_seventh)
        with pytest.raises(StoreWriteFailed):
            measured(tmp_path, shapes=shapes, options={})
    before = {row.result_id for row in stored(tmp_path)}
    assert len(before) == 6
    end, _, rows = measured(tmp_path, shapes=shapes, options={}, resume="latest")
    assert end.status == "complete"
    assert len(rows) == 8
    assert before <= {row.result_id for row in rows}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "the reader of the output went away"),
        (OSError(errno.ENOSPC, "No space left on device"), "the output could not be written: No space left on device"),
    ],
    ids=["nobody reads", "no room"],
)
def test_who_watches_and_cannot_print_interrupts_the_run(tmp_path: Path, error: OSError, reason: str) -> None:
    def watch(event: Event) -> None:
        if isinstance(event, CaseFinished) and event.done == 3:
            raise error

    plan = planned_sweep({"shapes": ["64x64x64"], "options": {}})
    with Store.open(str(tmp_path / "store.db")) as store, pytest.raises(type(error)):
        sweep(plan, store, watch)
    connection = sqlite3.connect(tmp_path / "store.db")
    assert connection.execute("select status, reason from run").fetchall() == [("interrupted", reason)]
    connection.close()
    assert len(stored(tmp_path)) == 3


def test_a_run_that_is_complete_stays_so_when_its_end_cannot_be_told(tmp_path: Path) -> None:
    def watch(event: Event) -> None:
        if isinstance(event, SweepFinished):
            raise BrokenPipeError

    with Store.open(str(tmp_path / "store.db")) as store, pytest.raises(BrokenPipeError):
        sweep(planned_sweep({"shapes": ["64x64x64"], "options": {}}), store, watch)
    assert [run.status for run in runs(tmp_path)] == ["complete"]


def test_a_run_that_goes_on_elsewhere_calibrates_the_other_chip(tmp_path: Path) -> None:
    """Case keys name no chip: without it the second chip would have neither a launch bound nor a memory roof."""
    spec = {"shapes": ["64x64x64"], "options": {}}
    with Store.open(str(tmp_path / "store.db")) as store:
        first = sweep(planned_sweep(spec), store, lambda _: None)
        events: list[Event] = []
        sweep(replace(planned_sweep(spec), resume=first.run), store, events.append)
        assert [event for event in events if isinstance(event, CaseFinished)] == []
        sweep(replace(planned_sweep(spec), resume=first.run, recalibrate=frozenset({0})), store, events.append)
    again = [event.row for event in events if isinstance(event, CaseFinished)]
    assert [row.job for row in again] == ["calibration"] * 5
    assert {row.attempt for row in again} == {2}


def test_a_simulated_device_is_not_judged_by_measured_calibrations(tmp_path: Path) -> None:
    whole = planned_sweep({"shapes": ["4096x4096x4096"], "options": {}})
    only_gemm = tuple(planned for planned in whole.cases if planned.case.workload.job == "gemm")
    slow = {BaseKey("simulated0", "fake", f"empty_{dispatch}_s"): 1e3 for dispatch in ("device", "call")}
    with Store.open(str(tmp_path / "store.db")) as store:
        sweep(replace(whole, cases=only_gemm, figures=slow), store, lambda _: None)
    assert "launch" not in [row.bound for row in stored(tmp_path)]  # which it would be by those


def test_numbers_that_are_not_finite_together_end_their_case_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflowing(measurement: Measurement, *given: Any) -> Summary | None:
        if measurement.outcome is Outcome.OK and measurement.description["kernel"] == "fake_bf16":
            raise OverflowError("integer division result too large for a float")
        return summarize(measurement, *given)

    monkeypatch.setattr("suite.ledger.summarize", overflowing)
    end, _, rows = measured(tmp_path, shapes=["1x8x8", "2x8x8"], options={})
    assert end.status == "complete"
    gemm = [row for row in rows if row.job == "gemm"]
    assert [row.outcome for row in gemm] == ["error", "error"]
    assert all("OverflowError" in row.reason for row in gemm)
    assert {row.outcome for row in rows if row.job != "gemm"} == {"ok"}
