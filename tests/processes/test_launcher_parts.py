"""The launcher's pieces by themselves: why a worker died, what it printed, how long it may take, who runs beside whom."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.backend import DeviceInfo
from suite.case import Regime
from suite.estimate import Estimate, wall_s
from suite.launcher import reaper
from suite.launcher.deadlines import limit_s
from suite.launcher.death import diagnose
from suite.launcher.happenings import CaseEnded
from suite.launcher.launch import Launcher, waves
from suite.launcher.output import HEAD_BYTES, TAIL_BYTES, Output, last_words
from suite.launcher.process import Birth, WorkerLost, WorkerProcess
from suite.measurement import Measurement
from suite.oom_kills import oom_kill_count
from suite.outcome import Outcome
from suite.planned import DeviceSlot
from suite.protocol import Ready
from suite.settings import BackendSettings, DeadlineSettings, MeasureSettings
from tests.patience import PATIENCE_S
from tests.processes.bench import TARGET, alive, gone_within, planned, quick, slots


@pytest.mark.parametrize(
    ("status", "kills", "outcome", "reason"),
    [
        (-11, 0, Outcome.CRASHED, "worker died with SIGSEGV while measuring; last log line: loading"),
        (-9, 0, Outcome.CRASHED, "worker died with SIGKILL while measuring; last log line: loading"),
        (-9, 1, Outcome.OUT_OF_MEMORY, "the kernel killed the worker for lack of host memory while measuring"),
        (-11, 1, Outcome.CRASHED, "worker died with SIGSEGV"),
        (3, 0, Outcome.CRASHED, "worker left with status 3 while measuring"),
        (-40, 0, Outcome.CRASHED, "worker died with signal 40 while measuring"),
    ],
)
def test_an_exit_status_is_explained(status: int, kills: int, outcome: Outcome, reason: str) -> None:
    death = diagnose(status, "measuring", "hello\nloading\n", kills)
    assert death.outcome is outcome
    assert death.reason.startswith(reason)


def test_a_worker_killed_while_the_kernels_count_rose_ran_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([4, 5])
    monkeypatch.setattr("suite.launcher.process.oom_kill_count", lambda: next(counts))
    worker = WorkerProcess(Birth(DeviceSlot(0, "fake", TARGET, None), 0, {}, quick(), "test-oom"))
    worker.ready()
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerLost) as lost:
        worker.ready()
    assert lost.value.death.outcome is Outcome.OUT_OF_MEMORY
    worker.close()


CGROUPS = {
    "version 2, seen from the host": ("0::/job/7\n", "sys/fs/cgroup/job/7/memory.events", "low 0\noom 3\noom_kill 2\n"),
    "version 2, seen from inside": ("0::/job/7\n", "sys/fs/cgroup/memory.events", "oom 3\noom_kill 2\noom_group_kill 9\n"),
    "version 1": ("4:cpu,memory:/job\n", "sys/fs/cgroup/memory/job/memory.oom_control", "under_oom 0\noom_kill 2\n"),
    "version 1, seen from inside": ("4:memory:/job\n", "sys/fs/cgroup/memory/memory.oom_control", "oom_kill 2\n"),
    "none": ("", "proc/vmstat", "oom_kill_x 7\noom_kill 2\n"),
}


@pytest.mark.parametrize("kind", CGROUPS)
def test_the_kernels_count_is_found_in_any_layout(tmp_path: Path, kind: str) -> None:
    groups, path, text = CGROUPS[kind]
    assert oom_kill_count(tmp_path) == 0
    for name, content in {"proc/vmstat": "oom_kill 50\n", "proc/self/cgroup": groups, path: text}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert oom_kill_count(tmp_path) == 2


def output_of(chunks: list[bytes]) -> str:
    output = Output()
    writer = os.dup(output.write_fd)
    output.started()
    with os.fdopen(writer, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
    output.ended()
    return output.text()


@given(st.lists(st.binary(max_size=2000), max_size=8))
def test_short_output_is_kept_whole(chunks: list[bytes]) -> None:
    assert output_of(chunks) == b"".join(chunks).decode(errors="replace")


def test_long_output_keeps_its_beginning_and_its_end() -> None:
    text = output_of([f"line {number}\n".encode() for number in range(200_000)])
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 199999\n")
    assert HEAD_BYTES + TAIL_BYTES <= len(text) < HEAD_BYTES + TAIL_BYTES + 2**17
    (left_out,) = [int(line.split()[1]) for line in text.splitlines() if line.startswith("[... ")]
    assert left_out == sum(len(f"line {number}\n") for number in range(200_000)) - (len(text) - len(_mark(text)))


def _mark(text: str) -> str:
    return next(f"\n{line}\n" for line in text.splitlines() if line.startswith("[... "))


def test_last_words_are_the_workers_own() -> None:
    assert last_words("a\n  b \n\nFatal Python error: Segmentation fault\n\nStack:\n  File x\n") == "b"
    assert last_words("Fatal Python error: Aborted\n") == ""
    assert last_words("x" * 500) == "x" * 200


def test_deadlines_allow_for_what_the_regime_asks() -> None:
    settings = MeasureSettings(deadlines=DeadlineSettings(measure_s=1.0, compile_s=7.0))
    burst, sustained = Regime("cold", "burst", "device"), Regime("cold", "sustained", "device")
    assert limit_s("compile", settings, planned(regime=burst)) == 7.0
    assert limit_s("measure", settings) == 1.0
    assert limit_s("measure", settings, planned(regime=burst)) > 1.0 + 5.0 + 4 * 1.0 + 5 * 0.02
    assert limit_s("measure", settings, planned(regime=sustained)) > 1.0 + settings.steady_timeout_s + settings.max_time_s


@pytest.mark.parametrize("phase", ["verify", "measure"])
def test_a_launch_of_minutes_is_not_taken_for_a_hang(phase: str) -> None:
    settings, short = MeasureSettings(), planned()
    long = short._replace(predicted_s=6900.0)
    assert limit_s(phase, settings, long) - limit_s(phase, settings, short) == pytest.approx(6900.0 - short.predicted_s)


def slot(number: int, backend: str, uid: str, pci: str | None) -> DeviceSlot:
    return DeviceSlot(number, backend, "m:C", DeviceInfo(backend, number, backend, uid, 1, pci_bus_id=pci))


def test_devices_run_side_by_side_and_what_shares_one_takes_turns() -> None:
    slots = [
        slot(0, "cuda", "gpu-a", "01:00"),
        slot(1, "cuda", "gpu-b", "02:00"),
        slot(2, "xla", "other-name-of-a", "01:00"),
        slot(3, "cpu", "host", None),
        slot(4, "xla", "host", None),
        slot(5, "odd", "unknown", None),
    ]
    numbers = [[[each.slot for each in lane] for lane in wave] for wave in waves(slots)]
    assert numbers == [[[0, 2], [1]], [[3, 4]], [[5]]]
    assert waves([slots[3]]) == [[[slots[3]]]]


def ended(slot_number: int, predicted_s: float, elapsed_s: float) -> CaseEnded:
    case = planned(slot=slot_number)._replace(predicted_s=predicted_s)
    return CaseEnded(case, Measurement(Outcome.ERROR), None, elapsed_s)


def test_time_left_follows_predictions_corrected_by_what_was_taken() -> None:
    slots = [slot(0, "cuda", "a", "01:00"), slot(1, "cuda", "b", "02:00"), slot(2, "cpu", "host", None)]
    todo = [planned(slot=number)._replace(predicted_s=10.0) for number in (0, 0, 0, 1, 2)]
    estimate = Estimate(slots, todo, total=6)
    assert (estimate.done, estimate.remaining_s) == (1, None)
    estimate.ended(ended(0, 10.0, 10.0))
    assert estimate.done == 2
    # Two on device 0 are the longest lane of the first wave; the CPU's one comes after.
    assert estimate.remaining_s == pytest.approx(20.0 + 10.0)
    estimate.ended(ended(0, 10.0, 50.0))
    assert estimate.remaining_s == pytest.approx((10.0 + 10.0) * 70 / 30)
    for number in (0, 1, 2):
        estimate.ended(ended(number, 10.0, 10.0))
    assert (estimate.done, estimate.remaining_s) == (6, 0.0)


def test_what_a_slot_has_to_do_besides_its_cases_counts_until_it_has_passed() -> None:
    slots = [slot(0, "cuda", "a", "01:00"), slot(1, "cuda", "b", "02:00")]
    todo = [planned(slot=number)._replace(predicted_s=10.0) for number in (0, 0, 1)]
    assert wall_s(slots, todo, {1: 15.0}) == 25.0
    estimate = Estimate(slots, todo, total=3, besides_s={1: 15.0})
    estimate.ended(ended(0, 10.0, 10.0))
    assert estimate.remaining_s == pytest.approx(25.0)
    estimate.passed(1, 15.0)
    assert estimate.remaining_s == pytest.approx(10.0)


def marked_sleeper(mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], env={reaper.MARK: mark})


def test_the_reaper_kills_exactly_what_bears_its_mark() -> None:
    mark = f"test-{time.monotonic_ns()}"
    of_ours = [marked_sleeper(mark), marked_sleeper(f"{mark}.0.1")]
    others = [marked_sleeper(f"{mark}9"), marked_sleeper(f"x{mark}")]
    read_fd, write_fd = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", reaper.__file__, "--fd", str(read_fd), "--mark", mark], pass_fds=(read_fd,)
    )
    os.close(read_fd)
    time.sleep(0.2)
    assert all(alive(child.pid) for child in of_ours)
    os.close(write_fd)
    assert process.wait(PATIENCE_S) == 0
    assert all(gone_within(child.pid, PATIENCE_S) for child in of_ours)
    assert all(alive(child.pid) for child in others)
    for child in [*of_ours, *others]:
        child.kill()
        child.wait()


def test_an_end_that_is_interrupted_leaves_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    backends = {"fake": BackendSettings("fake", TARGET, {})}
    launcher = Launcher(slots({}), backends, quick(), {}).__enter__()
    (ready,) = launcher.start().values()
    monkeypatch.setattr(launcher, "_halt", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launcher.__exit__(None, None, None)
    assert isinstance(ready, Ready)
    assert not alive(ready.pid)
    for lane in launcher._lanes:
        lane.close()
