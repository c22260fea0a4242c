"""Every way a case can end, through real worker processes; what comes after it is measured all the same."""

import re
from pathlib import Path

import pytest

from suite.events import PhaseStarted, WorkerRestarted
from suite.launcher.happenings import CaseEnded, Happening, WorkerLog
from suite.outcome import Evidence, Outcome
from tests.processes.bench import BURST, alive, ends, gone_within, name, planned, quick, run


def test_a_case_runs_through_its_phases_and_brings_samples_home() -> None:
    happenings = run([planned("64x64x64"), planned("128x128x128", regime=BURST)])
    measured = ends(happenings)
    assert {name: m.outcome for name, m in measured.items()} == {"64": Outcome.OK, "128": Outcome.OK}
    assert measured["64"].samples is not None
    assert measured["64"].samples.count >= 5
    phases = [h.phase for h in happenings if isinstance(h, PhaseStarted) and h.case.regime.load == "sustained"]
    assert phases[:2] == ["compile", "verify"]
    assert phases[-2:] == ["measure", "verify"]
    ended = next(h for h in happenings if isinstance(h, CaseEnded))
    assert ended.ready is not None
    assert ended.ready.evidence is Evidence.SIMULATED
    assert ended.ready.environment["fake"].value == "1.0"
    assert ended.elapsed_s > 0


LIMITS_S = {"compile_s": 7.0, "verify_s": 6.0, "measure_s": 5.0}  # every other case passes within them

# Fault, outcome, what the reason must say, and whether the worker survives it.
FAULTS = [
    ("segfault", Outcome.CRASHED, r"died with SIGSEGV while compiling; it printed nothing", False),
    ("say_and_die:last words@measure", Outcome.CRASHED, r"died with SIGABRT while measuring; last log line: last words", False),
    ("exit:7@verify", Outcome.CRASHED, r"left with status 7 while verifying", False),
    ("sigkill", Outcome.CRASHED, r"died with SIGKILL while compiling", False),
    (
        "hang@measure",
        Outcome.TIMEOUT,
        r"measuring took longer than measure.deadlines.measure_s=5 plus .* in phase measure",
        False,
    ),
    ("hang@verify", Outcome.TIMEOUT, r"verifying took longer than measure.deadlines.verify_s=6", False),
    ("hang", Outcome.TIMEOUT, r"compiling took longer than measure.deadlines.compile_s=7", False),
    ("oom", Outcome.OUT_OF_MEMORY, r"no room for 1 byte", True),
    ("error", Outcome.ERROR, r"RuntimeError: the kernel does not like this shape", True),
    ("error@measure", Outcome.ERROR, r"RuntimeError", True),
    ("fatal@verify", Outcome.CRASHED, r"device context is lost", False),
    ("wrong", Outcome.INCORRECT, r"before timing: relative error", True),
    ("wrong_after", Outcome.INCORRECT, r"after timing: relative error", True),
    ("stale", Outcome.INCORRECT, r"after timing", True),
    ("unwritten", Outcome.INCORRECT, r"1 elements never written", True),
    ("nan", Outcome.INCORRECT, r"1 NaN or infinite", True),
    ("unsupported", Outcome.UNSUPPORTED, r"planted: unsupported", True),
    ("slow:0.2", Outcome.OK, r"^$", True),
]


@pytest.fixture(scope="module")
def faulty_run() -> list[Happening]:
    """One run with every fault, a sound case after each: starting workers is what costs time here."""
    cases, faults = [], {}
    for index, (fault, _, _, _) in enumerate(FAULTS):
        shape = f"{index + 1}x8x8"
        faults[shape] = fault
        cases += [planned(shape), planned(f"{index + 101}x8x8")]
    return run(cases, quick(**LIMITS_S), faults=faults)


@pytest.mark.parametrize("index", range(len(FAULTS)), ids=[fault[0] for fault in FAULTS])
def test_a_fault_has_its_outcome_and_reason_and_costs_no_other_case(faulty_run: list[Happening], index: int) -> None:
    _, outcome, reason, _ = FAULTS[index]
    measured = ends(faulty_run)
    struck, after = measured[str(index + 1)], measured[str(index + 101)]
    assert struck.outcome is outcome
    assert re.search(reason, struck.reason)
    assert (struck.samples is not None) == (outcome is Outcome.OK)
    assert after.outcome is Outcome.OK


def test_a_worker_is_replaced_exactly_when_it_was_lost(faulty_run: list[Happening]) -> None:
    restarts = [happening for happening in faulty_run if isinstance(happening, WorkerRestarted)]
    assert len(restarts) == sum(1 for *_, survives in FAULTS if not survives)
    logs = [happening.text for happening in faulty_run if isinstance(happening, WorkerLog)]
    assert len(logs) == len(restarts) + 1
    assert any("Fatal Python error: Segmentation fault" in text for text in logs)
    assert any("Traceback" in text and "does not like this shape" in text for text in logs)


def test_a_timeout_keeps_how_long_each_phase_had(faulty_run: list[Happening]) -> None:
    number = [fault[0] for fault in FAULTS].index("hang@verify") + 1
    (hung,) = [each for each in faulty_run if isinstance(each, CaseEnded) and name(each.planned) == str(number)]
    assert LIMITS_S["verify_s"] <= hung.measurement.phases_s["verify"] <= hung.elapsed_s


def test_a_hanging_worker_is_killed_with_its_children_in_any_session(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    happenings = run(
        [planned("1x8x8"), planned("2x8x8")],
        quick(compile_s=LIMITS_S["compile_s"]),
        faults={"1x8x8": f"hang_with_children:{pids}"},
    )
    assert ends(happenings)["1"].outcome is Outcome.TIMEOUT
    children = [int(pid) for pid in pids.read_text().split()]
    assert len(children) == 2
    assert not any(alive(pid) for pid in children)


def test_children_of_a_worker_that_crashed_by_itself_are_killed_too(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    happenings = run([planned("1x8x8"), planned("2x8x8")], faults={"1x8x8": f"leave_children:{pids}"})
    assert ends(happenings)["1"].outcome is Outcome.CRASHED
    assert ends(happenings)["2"].outcome is Outcome.OK
    assert all(gone_within(int(pid), 0) for pid in pids.read_text().split())


def test_megabytes_on_stdout_block_nothing_and_are_kept_in_part() -> None:
    happenings = run([planned("1x8x8"), planned("2x8x8")], faults={"1x8x8": "chatter:8@measure"})
    assert [m.outcome for m in ends(happenings).values()] == [Outcome.OK, Outcome.OK]
    (log,) = [happening.text for happening in happenings if isinstance(happening, WorkerLog)]
    assert len(log) < 2**20
    assert "bytes left out" in log
    assert "last of many lines" in log


ODD = "tests.processes.strange:Odd"


def test_what_a_backend_gets_wrong_ends_its_own_case_with_one_plain_line() -> None:
    modes = {"1": "negative", "2": "huge", "3": "no_execution", "4": "speechless", "5": "raw"}
    happenings = run([planned(f"{m}x8x8") for m in range(1, 7)], target=ODD, modes=modes)
    measured = ends(happenings)
    expected = {
        "1": "kept sample 0 lasted -5 ns",
        "2": "longer together than 64 bits",
        "3": "execution is None, not one of native, emulated",
        "4": "Speechless",
        "5": r"RuntimeError: \\x1b\[31m\\u202ered yyy",
    }
    for size, reason in expected.items():
        assert measured[size].outcome is Outcome.ERROR
        assert re.search(reason, measured[size].reason)
        assert measured[size].reason.isprintable()
        assert len(measured[size].reason) <= 300
    assert measured["6"].outcome is Outcome.OK


def test_a_copy_of_the_worker_that_a_kernel_forks_answers_nothing() -> None:
    happenings = run([planned(f"{m}x8x8") for m in (1, 2, 3)], target=ODD, modes={"1": "fork_once", "3": "no_execution"})
    measured = ends(happenings)
    assert [measured[name].outcome for name in "123"] == [Outcome.OK, Outcome.OK, Outcome.ERROR]
    assert [measured[name].description.get("mode") for name in "12"] == ["", ""]
    assert len({measured[name].description["pid"] for name in "12"}) == 1
    assert not any(isinstance(happening, WorkerRestarted) for happening in happenings)
