"""The search beside a scan that a test wrote: how it is called, stopped and read, and what is judged."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suite.jobs.shapes import Shape
from tests.peers import peak
from tests.peers.bench import Bench, Measured
from tests.peers.child import Deadline, PeerFailed
from tests.peers.part import Session
from tests.peers.peak import Found, Options, read_options, row, run, scan_command, winner
from tests.peers.record import Record, Verdict

DEVICE = "tests.peers.stand_in.device:CudaStandIn"
SCAN = """
import signal, sys, time
assert "--m_range" in sys.argv and sys.argv[sys.argv.index("--dtype") + 1] == "bfloat16"
def finish(*_):
    print("\\nTried 7 shapes => the best outcomes were:")
    print("mean:   1.5 TFLOPS @ 128x64x192 (MxNxK)")
    print("median: 2.0 TFLOPS @ 64x64x64 (MxNxK)")
    sys.exit(1)
signal.signal(signal.SIGINT, finish)
print("Warming up ... ", end="", flush=True)
print("accelerator warmup finished")
while True:
    print("     1 |    1.0(mean) @ 64x64x64", end="\\r")
    time.sleep(0.01)
"""

Make = Callable[..., Session]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def session(seconds: float = 300.0, **options: Any) -> Session:
        bench = Bench(DEVICE, tiny=True, options=options)
        return Session(bench, Record("peak", tmp_path / "x.json"), Deadline(seconds), DEVICE, "")

    return session


@pytest.fixture
def options(tmp_path: Path) -> Options:
    script = tmp_path / "scan.py"
    script.write_text(SCAN)
    return Options(script, ("bf16",), 0.5, 0.1, 0.0, 2)


def test_a_winner_is_read_from_what_the_scan_prints() -> None:
    text = "  7 | 1.0(mean) @ 1x1x1\r\x1b[K\nmean:   795.9 TFLOPS @ 3072x11264x9216 (MxNxK)\nmedian: 800 TFLOPS @ 1x2x3 (MxNxK)"
    assert winner(text) == Shape(3072, 11264, 9216)
    with pytest.raises(PeerFailed, match="printed no winner"):
        winner("Traceback")


def test_the_scan_looks_at_the_same_sizes_as_the_search() -> None:
    words = scan_command(Path("x.py"), "fp8_e4m3")
    assert words[:3] == [sys.executable, "-u", "x.py"]
    assert " ".join(words[3:15]) == "--m_range 0 20480 1024 --n_range 0 16384 1024 --k_range 0 16384 1024"
    assert words[16] == "float8_e4m3fn"
    with pytest.raises(PeerFailed, match="no dtype for int8"):
        scan_command(Path("x.py"), "int8")


def test_winners_of_search_and_scan_are_measured_in_turns_in_each_load(make: Make, options: Options) -> None:
    session = make()
    run(options, session)
    assert [each.name for each in session.record.rows] == ["bf16 sustained", "bf16 burst"]
    for each in session.record.rows:
        assert each.figures["shapes"][1] == "128x64x192"
        assert len(each.figures["rates"]) == 3
        assert all(ratio > 1 for ratio in each.figures["ratios"]), "the scan's is bound by its launch"
    assert "accelerator warmup finished" in session.record.raw["scan of bf16"]
    assert session.record.raw["first search of bf16"]["done"][-1] == "burst"
    assert all(seconds > 0 for seconds in session.record.raw["first search of bf16"]["seconds"].values())


def test_one_search_has_nothing_to_repeat(make: Make, options: Options) -> None:
    session = make()
    run(options._replace(repeats=1), session)
    assert len(session.record.rows[0].figures["rates"]) == 2
    assert len(session.record.rows[0].cells) == len(peak.PART.headings)


def test_without_the_scan_its_rows_are_absent(make: Make, options: Options) -> None:
    session = make()
    run(options._replace(mamf=None), session)
    assert [(each.verdict, each.note) for each in session.record.rows] == [
        (Verdict.ABSENT, "the scan was not brought: --mamf PATH")
    ]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; sys.exit('no torch here')", "did not become warm: no torch here"),
        (SCAN.replace("mean:   1.5", "men:   1.5"), "printed no winner"),
    ],
)
def test_a_scan_that_fails_is_a_failed_row(script: str, words: str, make: Make, options: Options) -> None:
    assert options.mamf is not None
    options.mamf.write_text(script)
    session = make()
    run(options, session)
    assert session.record.rows[0].verdict is Verdict.FAILED
    assert words in session.record.rows[0].note


def test_without_time_nothing_is_begun(make: Make, options: Options) -> None:
    session = make(seconds=0.0)
    run(options, session)
    assert session.record.rows[0].note == "no time was left"
    assert not session.record.raw


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [(1.0, 1.0, "pass"), (0.996, 1.0, "pass"), (0.99, 1.0, "fail"), (1.05, 1.02, "fail"), (1.0, 0.994, "fail")],
)
def test_ours_is_judged_against_the_scan_and_against_itself(
    first: float, second: float, verdict: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"first": [100 * first] * 3, "scan": [100.0] * 3, "second": [100 * second] * 3}
    planned = make().bench.gemm(peak.Gemm("bf16", 64, 64, 64), peak.COLD)
    measured = make().bench.measure(planned)
    sides = [measured._replace(reason=name) for name in rates]
    monkeypatch.setattr(peak, "_rates", lambda side: rates[side.reason])
    found = [Found(Shape(64, 64, 64), Shape(64, 64, 64), 10.0)] * 3
    assert row("bf16 sustained", sides, found).verdict == verdict


def test_a_winner_that_cannot_be_measured_fails_its_row(make: Make) -> None:
    bench = make(faults={"64x64x64": "wrong"}).bench
    side: Measured = bench.measure(bench.gemm(peak.Gemm("bf16", 64, 64, 64), peak.COLD))
    found = [Found(Shape(64, 64, 64), Shape(64, 64, 64), 10.0)] * 3
    shown = row("bf16 sustained", [side] * 3, found)
    assert shown.verdict is Verdict.FAILED


def test_own_options_leave_those_of_every_part() -> None:
    own, rest = read_options(["--out", "x", "--mamf", "m.py", "--formats", "bf16,fp16", "--tiny", "--budget", "5"])
    assert (own.mamf, own.formats, own.budget_s, own.repeats) == (Path("m.py"), ("bf16", "fp16"), 5.0, 2)
    assert rest == ["--out", "x", "--tiny"]
