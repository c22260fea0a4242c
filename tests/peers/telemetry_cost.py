"""What telemetry costs: one kernel of about 10 us with telemetry on and off, in turns, on the same buffers and graph."""

import math
from collections.abc import Iterator
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from suite.backend import Backend, Telemetry
from suite.measure.statistics import t_95
from suite.telemetry import NoTelemetry
from tests.peers.bench import WARM, Measured, batches_s, in_batches
from tests.peers.gemms import Gemm
from tests.peers.judge import at_most
from tests.peers.order import turns
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number, percent

LIMIT = 0.005
PAIRS = 16
BATCH_S = 0.1
WANTED_S = 10e-6
# Few rows: a product that fills the device reaches the limit of power, whose clock wanders by more than what is looked for.
CANDIDATES = tuple(Gemm("bf16", 16, 4096, k) for k in (3072, 4096, 5120))


class Switchable:
    """A backend whose telemetry can be turned off between two rounds; everything else is the backend's own."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.on = True

    def telemetry(self) -> Telemetry:
        return self._backend.telemetry() if self.on else NoTelemetry("turned off for this round")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


class Cost(NamedTuple):
    """Medians with and without, of seconds or Hz; the mean relative difference of a pair's medians, with its 95 % interval."""

    with_: float
    without: float
    difference: float
    low: float
    high: float

    @property
    def farthest(self) -> float:
        """The largest change that the interval still allows."""
        return max(abs(self.low), abs(self.high))


def run(session: Session) -> None:
    """Choose the kernel that comes nearest to 10 us, then let both sides take turns."""
    gemm = nearest(session)
    measured, sides = in_turns(session, gemm)
    if measured.measurement is None or measured.measurement.samples is None:
        session.record.add(PART.lost(gemm.title, measured))
        return
    samples = measured.measurement.samples
    session.record.add(row(gemm.title, cost(batches_s(samples), sides), measured))
    if samples.clocks_khz:
        clocks = cost([[1e3 * clock for clock in batch] for batch in in_batches(samples.clocks_khz, samples)], sides)
        session.record.add(clock_row(clocks))


def nearest(session: Session) -> Gemm:
    """The candidate whose time is nearest to what is wanted."""
    settings = session.bench.settings(min_time_s=0.02, steady_window_s=0.05, steady_timeout_s=0.2)
    timed = []
    for candidate in CANDIDATES:
        gemm = candidate.scaled(session.tiny)
        measured = session.measure(session.bench.gemm(gemm, WARM), settings)
        if measured.summary is not None:
            timed.append((abs(measured.summary.p50_s - WANTED_S), gemm))
    return min(timed)[1] if timed else CANDIDATES[0].scaled(session.tiny)


def in_turns(session: Session, gemm: Gemm) -> tuple[Measured, list[int]]:
    """One trial of which every round is a batch; returned with the side of each round, 0 with telemetry and 1 without."""
    bench, sides = session.bench, [side for _, side in turns(PAIRS)]
    backend = Switchable(bench.backend)
    planned = bench.gemm(gemm, WARM)

    def rounds() -> Iterator[int]:
        for number_, side in enumerate(sides):
            backend.on = side == 0
            yield number_

    trial = bench.trial(planned, bench.settings(min_time_s=BATCH_S), rounds=len(sides), backend=backend)
    return bench.carry_out(planned, trial, rounds()), sides


def cost(batches: list[list[float]], sides: list[int]) -> Cost:
    """Compare the medians of each pair; the interval is by Student's t."""
    medians: tuple[list[float], list[float]] = ([], [])
    for batch, side in zip(batches, sides, strict=True):
        medians[side].append(median(batch))
    with_, without = medians
    changes = [on / off - 1 for on, off in zip(with_, without, strict=True)]
    half = t_95(len(changes) - 1) * stdev(changes) / math.sqrt(len(changes))
    center = fmean(changes)
    return Cost(median(with_), median(without), center, center - half, center + half)


def row(name: str, found: Cost, measured: Measured) -> Row:
    """Passed only if the whole interval lies within the limit."""
    cells = (
        f"{number(found.with_, 1e6, 5)} us",
        f"{number(found.without, 1e6, 5)} us",
        percent(found.difference, 3),
        f"{percent(found.low, 3)} to {percent(found.high, 3)}",
        "0.5 %",
    )
    figures = {**found._asdict(), "pairs": PAIRS, "ours": measured.figures()}
    return Row(name, cells, at_most(found.farthest, LIMIT), figures, f"{PAIRS} pairs in turns")


def clock_row(found: Cost) -> Row:
    """Whether a difference in time is one of the clock."""
    cells = (
        f"{number(found.with_, 1e-6, 5)} MHz",
        f"{number(found.without, 1e-6, 5)} MHz",
        percent(found.difference, 3),
        f"{percent(found.low, 3)} to {percent(found.high, 3)}",
        NOTHING,
    )
    return Row("its clock", cells, Verdict.INFO, {"with_hz": found.with_, "without_hz": found.without})


PART = Part(
    name="telemetry_cost",
    shows="a kernel of about 10 us with telemetry and without",
    headings=("with", "without", "difference", "95 % interval", "limit"),
    run=run,
)

if __name__ == "__main__":
    run_as_script(PART)
