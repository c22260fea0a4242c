"""The fastest matrix product that a search finds, beside the one that mamf-finder's scan finds in seven times as long.

    python -m tests.peers.peak --out DIR --mamf PATH/mamf-finder.py

Each format: our search, the scan, our search again, each alone on the device after the same warm-up.  Then all three winners
are measured by roofbench in turns, sustained and from idle, on data that none of them was chosen on.  A row is one load: the
rates of the three, ours over the scan's, and what our second search gains over the first.
"""

import argparse
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from suite.jobs.gemm import GemmSettings
from suite.jobs.shapes import Shape, parse_shape
from suite.measure.look import Glimpse, Look
from suite.plan import data_seed
from suite.search.hunt import Allowance, Hunt, Stage
from suite.search.standings import Standings
from suite.search.subject import Subject, shape_text, subjects
from suite.settings import RunConfig, SearchSettings
from suite.worker.serve import caught
from tests.peers.bench import BURST, COLD, NO_TIME, Measured, batches_s
from tests.peers.child import Deadline, PeerFailed, end
from tests.peers.gemms import Gemm
from tests.peers.part import Part, Session, main
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number, percent
from tests.peers.together import together

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8_e4m3": "float8_e4m3fn"}
MEAN = re.compile(r"^mean: +([\d.]+) TFLOPS @ (\d+x\d+x\d+)", re.MULTILINE)
WARMED = "warmup finished"
START_S = 60.0  # until the scan says that it is warm, beside its warm-up
LEAVE_S = 20.0
LEAST_RATIO, MOST_APART = 0.995, 0.01
SUSTAINED_ROUNDS, BURST_ROUNDS = 6, 2
LOOK_SEED = 0x100C


class Options(NamedTuple):
    """What this part takes beside what every part does; ``scan_s`` is without the scan's own warm-up of ``warm_up_s``."""

    mamf: Path | None
    formats: tuple[str, ...]
    budget_s: float
    scan_s: float
    warm_up_s: float
    repeats: int


class Found(NamedTuple):
    """A winner, and how long finding it took.  ``burst`` is the one from idle, where that was looked for."""

    shape: Shape
    burst: Shape
    seconds: float


class Here:
    """Looks in this process."""

    def __init__(self, session: Session, subject: Subject) -> None:
        self._session, self._subject = session, subject
        self._looks: dict[Shape, Look] = {}
        self.spent_s = {"ready": 0.0, "look": 0.0, "keep": 0.0}

    def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Glimpse | str:
        taken: list[Glimpse] = []

        def take() -> None:
            began_s = time.monotonic()
            if shape not in self._looks:
                planned = self._subject.look(shape)
                seed = data_seed(LOOK_SEED, planned.case.workload.key)
                sample_s = self._session.bench.settings().sample_s
                self._looks[shape] = Look(self._session.bench.backend, planned.case, seed, sample_s)
            ready_s = time.monotonic()
            self.spent_s["ready"] += ready_s - began_s
            taken.append(self._looks[shape].take(seconds, idle_s))
            self.spent_s["look"] += time.monotonic() - ready_s

        failure = caught(take, self._session.bench.backend.classify)
        return failure.reason if failure else taken[0]

    def keep(self, shapes: Sequence[Shape]) -> None:
        began_s = time.monotonic()
        for shape in set(self._looks) - set(shapes):
            self._looks.pop(shape).close()
        self.spent_s["keep"] += time.monotonic() - began_s


def run(options: Options, session: Session) -> None:
    """Format by format; one that has no time left is not begun."""
    for format_name in options.formats:
        if session.deadline.left_s() < _needed_s(options):
            session.record.add(PART.without(format_name, NO_TIME, Verdict.ABSENT))
            continue
        try:
            compared(options, session, format_name)
        except PeerFailed as failed:
            session.record.add(
                PART.without(format_name, str(failed), Verdict.ABSENT if options.mamf is None else Verdict.FAILED)
            )


def compared(options: Options, session: Session, format_name: str) -> None:
    """Search, scan, search, and the winners in turns: a row a load."""
    first = searched(options, session, format_name, "first")
    theirs = scanned(options, session, format_name)
    again = [searched(options, session, format_name, "second")] if options.repeats > 1 else []
    for load, regime, rounds in (("sustained", COLD, SUSTAINED_ROUNDS), ("burst", BURST, BURST_ROUNDS)):
        shapes = [each.burst if load == "burst" else each.shape for each in (first, theirs, *again)]
        settings = session.bench.settings(steady_window_s=1.0, steady_timeout_s=1.0, min_time_s=0.3, burst_first_idle_s=1.0)
        cases = [session.bench.gemm(Gemm(format_name, *shape), regime) for shape in shapes]
        distinct = {planned.case.key: planned for planned in cases}
        measured = dict(zip(distinct, together(session.bench, list(distinct.values()), settings, rounds), strict=True))
        sides = [measured[planned.case.key] for planned in cases]
        for side in sides:
            session.record.keep(f"{load} {side.planned.case.title}", side.figures())
        session.record.add(row(f"{format_name} {load}", sides, (first, theirs, *again)))


def searched(options: Options, session: Session, format_name: str, name: str) -> Found:
    """Our search, in this process; ``PeerFailed`` where nothing could be looked at."""
    settings = SearchSettings(budget_s=options.budget_s, warm_up_s=options.warm_up_s)
    job = GemmSettings(formats=[format_name], shapes=["8192x8192x8192"])
    measure = session.bench.settings()
    if session.tiny:
        settings, job = SearchSettings(256, 256, 256, 64, 0.5, 0.0), GemmSettings(formats=[format_name], shapes=["128x128x128"])
    (subject,) = subjects(RunConfig(jobs={"gemm": job}, measure=measure, search=settings), [session.bench.slot])
    heard: list[str] = []
    began_s = time.monotonic()

    def tell(stage: Stage, standings: Standings) -> None:
        ahead = standings.ranking[0] if standings.contenders else None
        leader = f"{shape_text(ahead.shape)} about {ahead.about_flop_s / 1e12:.4g}" if ahead else NOTHING
        spent = ", ".join(f"{name} {seconds:.2f}" for name, seconds in here.spent_s.items())
        at = f"{time.monotonic() - began_s:.2f} s {stage.name} of {stage.of}"
        heard.append(f"{at}: {stage.contenders} of {len(standings.contenders)}, {leader}; seconds so far: {spent}")

    allowance = Allowance(
        settings.budget_s, settings.warm_up_s, measure.burst_window_s, measure.burst_idle_s, subject.most_flop_s
    )
    here = Here(session, subject)
    hunt = Hunt(subject.candidates(), here, allowance, tell)
    standings = hunt.run()
    session.record.keep(f"{name} search of {format_name}", {"heard": heard, "seconds": here.spent_s, **standings.to_json()})
    stood = [each for each in standings.ranking if not each.fallen]
    if not stood:
        raise PeerFailed(f"nothing could be looked at: {standings.contenders[0].fallen}")
    taken_s = time.monotonic() - began_s - settings.warm_up_s
    return Found(stood[0].shape, standings.burst_ranking[0].shape, taken_s)


def scanned(options: Options, session: Session, format_name: str) -> Found:
    """The scan, stopped after its time as a person stops it; ``PeerFailed`` where it finds nothing."""
    if options.mamf is None:
        raise PeerFailed("the scan was not brought: --mamf PATH")
    command = scan_command(options.mamf, format_name, session.tiny)
    began_s, text = time.monotonic(), _interrupted(command, options)
    session.record.keep(f"scan of {format_name}", text[-2000:])
    found = winner(text)
    seconds = time.monotonic() - began_s - options.warm_up_s
    return Found(found, found, seconds)


def scan_command(script: Path, format_name: str, tiny: bool = False) -> list[str]:
    """Its command line: the same sizes as ours, everything else as it comes."""
    if format_name not in DTYPES:
        raise PeerFailed(f"the scan has no dtype for {format_name}")
    sizes = (256, 256, 256, 64) if tiny else (20480, 16384, 16384, 1024)
    ranges = [[f"--{name}_range", "0", str(size), str(sizes[3])] for name, size in zip("mnk", sizes, strict=False)]
    flat = [word for words in ranges for word in words]
    return [sys.executable, "-u", str(script), *flat, "--dtype", DTYPES[format_name], "--output_file", "/dev/null"]


def winner(text: str) -> Shape:
    """The shape whose mean was highest."""
    found = MEAN.search(text.replace("\r", "\n"))
    if found is None:
        raise PeerFailed("the scan printed no winner")
    return parse_shape(found[2])


def _interrupted(command: Sequence[str], options: Options) -> str:
    """Run until ``scan_s`` after it is warm, then interrupt it; return what it printed, all of it."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    text = bytearray()
    warm_at_s: float | None = None
    deadline, until = Deadline(START_S + options.warm_up_s + 30.0), math.inf
    os.set_blocking(process.stdout.fileno(), False)
    try:
        while process.poll() is None and deadline.left_s():
            text += process.stdout.read() or b""
            if warm_at_s is None and WARMED.encode() in text:
                warm_at_s = time.monotonic()
                until, deadline = warm_at_s + options.scan_s, Deadline(options.scan_s + LEAVE_S)
            if time.monotonic() >= until:
                process.send_signal(signal.SIGINT)
                until = math.inf
            time.sleep(0.02)
        text += process.stdout.read() or b""
    finally:
        end(process)
        process.stdout.close()
    if warm_at_s is None:
        raise PeerFailed(f"the scan did not become warm: {text.decode(errors='replace').strip()[-200:]}")
    return text.decode(errors="replace")


def row(name: str, sides: Sequence[Measured], found: Sequence[Found]) -> Row:
    """One load: rates over the rounds, ours against the scan's and against itself."""
    lost = next((side for side in sides if side.summary is None), None)
    if lost is not None:
        return PART.lost(name, lost)
    rates = [_rates(side) for side in sides]
    ours, scans = [rates[0], *rates[2:]], rates[1]
    ratios = [median(mine / theirs for mine, theirs in zip(each, scans, strict=True)) for each in ours]
    apart = [median(second / one - 1 for one, second in zip(ours[0], each, strict=True)) for each in ours[1:]]
    shapes = [shape_text(each.burst if name.endswith("burst") else each.shape) for each in found]
    cells = (
        *_three([number(median(each), 1e-12) for each in rates]),
        *_three([number(each) for each in ratios])[:2],
        percent(apart[0] if apart else None),
        " / ".join(number(each.seconds, digits=3) for each in found),
        " / ".join(shapes),
    )
    passed = min(ratios) >= LEAST_RATIO and max(map(abs, apart), default=0.0) <= MOST_APART
    figures = {"ratios": ratios, "apart": apart, "rates": rates, "shapes": shapes, "seconds": [each.seconds for each in found]}
    return Row(name, cells, Verdict.PASS if passed else Verdict.FAIL, figures)


def _three(cells: Sequence[str]) -> list[str]:
    """A dash where there was no second search."""
    return [*cells, *[NOTHING] * (3 - len(cells))]


def _rates(side: Measured) -> list[float]:
    """Operations per second of each round or window."""
    assert side.measurement is not None
    assert side.measurement.samples is not None
    return [side.planned.work.flops / median(batch) for batch in batches_s(side.measurement.samples) if batch]


def _needed_s(options: Options) -> float:
    """What one format takes at least."""
    return 2 * (options.budget_s + options.warm_up_s) + options.scan_s + options.warm_up_s + 60.0 * (options.scan_s > 5)


def read_options(argv: Sequence[str] | None = None) -> tuple[Options, list[str]]:
    """This part's own options, and the words that are left for those of every part."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--mamf", type=Path, help="mamf-finder.py of stas00/ml-engineering")
    parser.add_argument("--formats", default="bf16,fp8_e4m3", help="comma-separated")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of our search")
    parser.add_argument("--scan", type=float, default=70.0, help="seconds of the scan after its warm-up")
    parser.add_argument(
        "--searches", type=int, choices=(1, 2), default=2, help="of ours; a second shows how closely it repeats"
    )
    parser.add_argument("--warm-up", type=float, default=30.0, help="seconds of ours; the scan's own is 30")
    given, rest = parser.parse_known_args(argv)
    formats = tuple(name for name in given.formats.split(",") if name)
    return Options(given.mamf, formats, given.budget, given.scan, given.warm_up, given.searches), rest


PART = Part(
    name="peak",
    shows="the fastest product that a search finds beside that of a scan, winners measured in turns",
    headings=("first TFLOP/s", "scan's", "second", "first/scan", "second/scan", "second/first", "seconds", "shapes"),
    run=lambda session: run(read_options([])[0], session),
    foot=(
        "Limits: ours at least 0.995 of the scan's, and the second search within 1 % of the first.",
        "Seconds are without the 30 s of warm-up that each had, and with what each process takes to start.",
    ),
)

if __name__ == "__main__":
    own, words = read_options()
    sys.exit(main(PART._replace(run=partial(run, own)), words))
