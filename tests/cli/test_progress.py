"""What a person sees while a sweep runs: plain lines in a log, a display on a terminal."""

import io
import time
from dataclasses import replace

import pytest
from rich.console import Console

from suite.backend import DeviceInfo
from suite.case import Case, Regime, Workload, items
from suite.events import CaseFinished, Event, PhaseStarted, SearchRound, SweepFinished, SweepStarted, WorkerRestarted
from suite.planned import DeviceSlot
from suite.progress import display
from suite.progress.lines import Lines
from suite.progress.live import Live
from suite.progress.tally import Tally
from suite.rows import NO_FRACTIONS, ResultRow
from tests.report.builders import result

CASE = Case(Workload("gemm", "bf16", items({"m": 8, "n": 8, "k": 8})), "library", "cuda", Regime("cold", "sustained", "device"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lost(outcome: str, reason: str) -> ResultRow:
    return replace(result(), outcome=outcome, reason=reason, p50_s=None, bound=None, fractions=NO_FRACTIONS)


def story() -> list[Event]:
    return [
        SweepStarted("20310506", 12, 1),
        PhaseStarted(0, CASE, "compile"),
        PhaseStarted(0, CASE, "measure"),
        CaseFinished(result(), 2, 12, 62.0),
        WorkerRestarted(0, "signal 9 (SIGKILL) in measure"),
        CaseFinished(lost("timeout", "measure took over 120 s"), 3, 12, None),
        SweepFinished("20310506", "interrupted", "SIGINT received, 9 cases left; resume=20310506 goes on"),
    ]


def told(events: list[Event]) -> list[str]:
    stream = io.StringIO()
    with Lines(stream) as watch:
        for event in events:
            watch(event)
    return stream.getvalue().splitlines()


def test_a_log_has_one_line_for_each_thing_that_ended() -> None:
    start, done, restarted, timeout, end = told(story())
    assert start == "run 20310506: 12 cases, 1 of them already done"
    assert done.startswith("[ 2/12] gemm 4096x4096x4096 bf16 library cold/sustained/device: ")
    assert done.endswith("70.0 % of the spec roof, compute bound, 1 min 02 s left")
    assert restarted == "worker of device 0 restarted: signal 9 (SIGKILL) in measure"
    assert timeout.endswith(": timeout: measure took over 120 s")
    assert end == "interrupted: SIGINT received, 9 cases left; resume=20310506 goes on"


TWO = SweepStarted("20310506", 2, 0, {0: "cpu", 1: "xla"})


def test_in_a_run_on_several_devices_every_line_says_which_it_is_of() -> None:
    """Two lines of one case, one by torch and one by JAX, read alike."""
    rows = [result(backend=backend, device_slot=slot) for slot, backend in TWO.devices.items()]
    first, second = (CaseFinished(row, number, 2, None) for number, row in enumerate(rows, 1))
    _, *lines = told([TWO, first, second, WorkerRestarted(1, "signal 9"), ROUND._replace(slot=1)])
    of_cpu, of_xla, restarted, search = lines
    assert of_cpu.startswith("[1/2] gemm 4096x4096x4096 bf16 library cold/sustained/device on device 0 (cpu): ")
    assert of_xla.startswith("[2/2] gemm 4096x4096x4096 bf16 library cold/sustained/device on device 1 (xla): ")
    assert restarted == "worker of device 1 (xla) restarted: signal 9"
    assert search.startswith("search gemm int8 library on device 1 (xla): round 2 of 5")
    shown = screen([TWO, first, PhaseStarted(1, CASE, "measure")], width=200)
    assert "cold/sustained/device on device 0 (cpu)" in shown
    assert "device 1 (xla): measuring gemm 8x8x8" in shown


def test_a_run_without_incident_ends_without_a_word() -> None:
    assert told([SweepStarted("r", 1, 0), SweepFinished("r", "complete", "")]) == ["run r: 1 case"]


ROUND = SearchRound(0, "gemm int8 library", "int8", 2, 5, 22, "8192x8192x4096", 1.4e15)


@pytest.mark.parametrize(
    ("event", "ahead"),
    [
        (ROUND, "; ahead 8192x8192x4096, about 1.40 POP/s (unverified)"),
        (ROUND._replace(format="bf16", about_flop_s=7.01e14), "; ahead 8192x8192x4096, about 701 TFLOP/s (unverified)"),
        (ROUND._replace(about_flop_s=None), "; ahead 8192x8192x4096"),  # resumed: it was ahead, and was not looked at yet
        (ROUND._replace(ahead="", about_flop_s=None), ""),
    ],
)
def test_a_round_of_a_search_tells_who_is_ahead_and_a_rate_in_its_format_s_unit_where_one_is_known(
    event: SearchRound, ahead: str
) -> None:
    assert told([event]) == [f"search gemm int8 library: round 2 of 5, 22 candidates{ahead}"]
    assert f"device 0: search gemm int8 library: round 2 of 5, 22 candidates{ahead}\n" in screen([event], width=200)


def test_a_device_without_a_sheet_is_judged_by_what_it_was_measured_to_do() -> None:
    row = result()
    row = replace(row, fractions=row.fractions._replace(spec=None, empirical=0.5))
    assert "50.0 % of the empirical roof" in told([CaseFinished(row, 1, 1, None)])[0]
    unknown = replace(row, fractions=NO_FRACTIONS)
    assert "roof" not in told([CaseFinished(unknown, 1, 1, None)])[0]


def test_every_line_is_out_before_the_next_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is followed while the run goes on, also through a pipe."""
    stream = io.StringIO()
    flushed: list[str] = []
    monkeypatch.setattr(stream, "flush", lambda: flushed.append(stream.getvalue()))
    Lines(stream)(SweepStarted("r", 1, 0))
    assert flushed == ["run r: 1 case\n"]


def test_time_left_counts_down_between_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 15.0, 90.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    tally = Tally()
    left_s = [tally.left_s]
    tally.take(CaseFinished(result(), 1, 9, 60.0))
    left_s += [tally.left_s, tally.left_s]
    assert left_s == [None, 55.0, 0.0]


def test_the_display_is_live_on_a_terminal_only() -> None:
    assert isinstance(display(io.StringIO()), Lines)
    assert isinstance(display(Terminal()), Live)


def screen(events: list[Event], width: int = 100) -> str:
    live = Live(Terminal())
    for event in events:
        live(event)
    paper = Console(file=io.StringIO(), width=width)
    paper.print(live.render())
    assert isinstance(paper.file, io.StringIO)
    return paper.file.getvalue()


def test_the_display_shows_what_runs_what_ended_and_what_is_left() -> None:
    running = screen([*story()[:4], PhaseStarted(1, CASE, "verify")])
    for text in ("2/12", "about 1 min 02 s left", "device 1: checking gemm 8x8x8 bf16", "70.0 % of the spec roof", "1 ok"):
        assert text in running
    assert "device 0" not in running


def test_the_display_counts_how_cases_ended_and_forgets_a_dead_worker_s_case() -> None:
    after = screen([*story()[:6]])
    assert "1 ok, 1 timeout" in after
    assert "measuring" not in after


@pytest.mark.parametrize("width", [20, 40, 200])
def test_no_line_of_the_display_wraps(width: int) -> None:
    lines = screen([*story()[:4], PhaseStarted(0, CASE, "measure")], width).splitlines()
    assert len(lines) <= 5
    assert max(map(len, lines)) <= width


def test_the_display_cleans_up_after_itself_and_keeps_restarts() -> None:
    terminal = Terminal()
    with Live(terminal) as watch:
        for event in story():
            watch(event)
    said = terminal.getvalue()
    assert "worker of device 0 restarted" in said
    hidden, shown = said.rindex("\x1b[?25l"), said.rindex("\x1b[?25h")
    assert shown > hidden, "the cursor is there again"


def test_a_device_that_is_asked_for_by_another_number_than_its_place_says_which() -> None:
    """The locks and the header of the run name it so."""
    info = DeviceInfo("cuda", 2, "H200", "a1b2", 2**37)
    slots = DeviceSlot(0, "cuda", "m:B", info), DeviceSlot(1, "cuda", "m:B", None), DeviceSlot(2, "cuda", "m:B", info)
    assert [slot.distinction for slot in slots] == ["device=2, cuda", "cuda", "cuda"]
    several = SweepStarted("r", 2, 0, {slot.slot: slot.distinction for slot in slots})
    assert told([several, WorkerRestarted(0, "signal 9")])[1] == "worker of device 0 (device=2, cuda) restarted: signal 9"
