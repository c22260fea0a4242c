"""XLA's slope against JAX's own profiler: the time of one launch inside a program, as each of them sees it in the same runs.

    python -m tests.peers.xla_profiler --backend xla --out DIR --seconds 200

A launch is all that a turn of the program runs on the device, copies of what the program is handed left out; time in which two
kernels run at once counts once.  Both say what a launch adds: of a program's first launch, for which the device waited, nothing
says that it takes as long as those that follow.  They are compared pair by pair, since at a limit of power one pair runs at
another clock than the next; what is judged is the median of the differences.  Samples are longer than a run's: how a program
starts varies by tens of microseconds, which says nothing of what a launch takes.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from suite.backend import Sampler
from suite.outcome import Outcome
from suite.planned import PlannedCase
from tests.peers.bench import COLD, WARM
from tests.peers.gemms import square
from tests.peers.judge import within
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number, percent

LIMIT = 0.02
SHORTEST_S = 100e-6  # below this a program's own bookkeeping weighs, and no limit is held
PAIRS = 49
SAMPLE_S = 20e-3
TIMES_AT_MOST = 3  # a pair that is taken again is seen by the profiler and is in no sample
RUNS_IN_A_PAIR = 3
COPY = "Memcpy"  # of what a program is handed, once a program: no launch's
GEMMS = (square("bf16", 8192), square("bf16", 4096), square("fp8_e4m3", 8192), square("int8", 8192), square("tf32", 4096))


class Event(NamedTuple):
    """A kernel on the device: its name, when it began and how long it took."""

    name: str
    began_s: float
    seconds: float


class Profiled(NamedTuple):
    """Samples, each of a pair of programs and of ``launches``, and the kernels of all these programs."""

    durations_s: list[float]
    kernels: list[Event]
    launches: int


def run(session: Session) -> None:
    """Each product warm, the first one cold too."""
    for number_, gemm in enumerate(GEMMS):
        for regime in (WARM, COLD) if number_ == 0 else (WARM,):
            planned = session.bench.gemm(gemm.scaled(session.tiny), regime)
            session.record.add(_row(session, planned, f"{gemm.title} {regime.cache}"))


def _row(session: Session, planned: PlannedCase, name: str) -> Row:
    """Measure through the spine; then, while the device is as that left it, take more samples under the profiler.

    Both speak of these samples: a device that meanwhile rested runs at another clock.
    """
    settings = session.bench.settings()
    trial = session.bench.trial(planned, settings if session.tiny else replace(settings, sample_s=SAMPLE_S))
    try:
        ended = trial.prepare()
        if ended is not None:
            verdict = Verdict.ABSENT if ended.outcome is Outcome.UNSUPPORTED else Verdict.FAILED
            return PART.without(name, ended.reason, verdict)
        trial.measure(0)
        seen = undisturbed(trial._ready_sampler())
        measurement = trial.finish()
    finally:
        trial.close()
    samples = measurement.samples
    if samples is None:
        return PART.without(name, f"{measurement.outcome.value}: {measurement.reason}")
    if seen is None:
        return PART.without(name, f"pairs had to be taken again in each of {TIMES_AT_MOST} attempts")
    longest = longest_kernel(seen.kernels)
    if longest is None:
        return PART.without(name, "the profiler shows no kernel on a device", Verdict.ABSENT)
    pairs = len(seen.durations_s)
    added_s = added(seen.kernels, longest, pairs, seen.launches)
    if not added_s:
        return PART.without(name, f"{len(seen.kernels)} kernels are not those of {pairs} pairs of programs")
    lower, difference, upper = quantiles(differences(seen.durations_s, added_s, seen.launches), n=4)
    theirs_s = median(added_s)
    every = RUNS_IN_A_PAIR * pairs * seen.launches
    verdict = within(difference, LIMIT) if theirs_s >= SHORTEST_S else Verdict.INFO
    figures: dict[str, Any] = {
        "ours_s": median(seen.durations_s) / seen.launches,
        "profiler_s": theirs_s,
        "difference": difference,
        "differences_quartiles": [lower, upper],
        "pairs": pairs,
        "profiler_mean_s": busy(seen.kernels) / every,
        "at_once_s": (sum(event.seconds for event in seen.kernels) - busy(seen.kernels)) / every,
        "unprofiled_s": median(samples.durations_ns) * 1e-9 / samples.launches,
        "kernel": longest,
        "kernel_s": sum(event.seconds for event in seen.kernels if event.name == longest) / every,
        "kernels": dict(Counter(event.name for event in seen.kernels)),
        "launches": every,
        "method": samples.method,
        "details": dict(samples.details),
        "description": dict(measurement.description),
    }
    cells = (
        *(f"{number(figures[side], 1e6)} us" for side in ("ours_s", "profiler_s")),
        *(percent(difference), f"{percent(lower)} to {percent(upper)}"),
        "2 %" if verdict is not Verdict.INFO else NOTHING,
        f"{samples.method}, tied by {samples.details.get('tie', NOTHING)}",
    )
    return Row(name, cells, verdict, figures, f"{longest[:80]}, {measurement.execution}")


def undisturbed(sampler: Sampler) -> Profiled | None:
    """Samples of which none had to be taken again, under the profiler; ``None`` where each attempt had such a pair."""
    for _ in range(TIMES_AT_MOST):
        before = taken_again(sampler)
        seen = profiled(sampler)
        if taken_again(sampler) == before:
            return seen
    return None


def profiled(sampler: Sampler) -> Profiled:
    """Some samples, and what the profiler saw meanwhile."""
    import jax

    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            durations_s = [ns * 1e-9 for ns in sampler.sample(PAIRS)]
        files = sorted(Path(folder).rglob("*.xplane.pb"))
        events = list(device_events(jax.profiler.ProfileData.from_file(str(files[-1])))) if files else []
    kernels = [event for event in events if not event.name.startswith(COPY)]
    return Profiled(durations_s, sorted(kernels, key=lambda event: event.began_s), sampler.launches)


def differences(durations_s: Sequence[float], added_s: Sequence[float], launches: int) -> list[float]:
    """By how much each sample differs from what the profiler saw of the same pair; ``added_s`` is that of one launch."""
    return [sample_s / launches / launch_s - 1 for sample_s, launch_s in zip(durations_s, added_s, strict=True)]


def added(kernels: Sequence[Event], product: str, pairs: int, launches: int) -> list[float]:
    """Seconds that a launch adds, by each pair: 2N turns of a program less N, in the order in which a slope runs them.

    Empty where ``product`` did not run equally often in every launch.
    """
    ends = [place + 1 for place, event in enumerate(kernels) if event.name == product]
    every = RUNS_IN_A_PAIR * pairs * launches
    if not ends or len(ends) % every:
        return []
    of_launches = len(ends) // every * launches  # of products, in the shorter of a pair's programs
    stops = [0, *ends[of_launches - 1 :: of_launches]]
    taken_s = [busy(kernels[first:last]) for first, last in pairwise(stops)]
    return [(a + b - c) / launches for a, b, c in zip(*[iter(taken_s)] * RUNS_IN_A_PAIR, strict=True)]


def busy(kernels: Sequence[Event]) -> float:
    """Seconds in which any of them runs; they are in the order in which they began."""
    total_s, ended_s = 0.0, float("-inf")
    for event in kernels:
        end_s = event.began_s + event.seconds
        total_s += max(0.0, end_s - max(event.began_s, ended_s))
        ended_s = max(ended_s, end_s)
    return total_s


def taken_again(sampler: Sampler) -> int:
    """Pairs; a sampler that is not the slope's takes none again."""
    return int(sampler.details.get("pairs_taken_again", 0))


def device_events(data: Any) -> Iterable[Event]:
    """Kernels on the compute streams of every device; copies are lines of their own."""
    for plane in data.planes:
        if not plane.name.startswith("/device:"):
            continue
        for line in plane.lines:
            if line.name.startswith("Stream"):
                yield from (Event(event.name, event.start_ns * 1e-9, event.duration_ns * 1e-9) for event in line.events)


def longest_kernel(events: Iterable[Event]) -> str | None:
    """The name under which most time is spent: the product, among what a loop needs beside it."""
    spent: defaultdict[str, float] = defaultdict(float)
    for event in events:
        spent[event.name] += event.seconds
    return max(spent, key=lambda name: spent[name]) if spent else None


PART = Part(
    name="xla_profiler",
    shows="one launch inside an XLA program, warm unless said",
    headings=("slope", "profiler", "difference", "of half the pairs", "limit", "how"),
    run=run,
    foot=("Run it with --backend xla.",),
)

if __name__ == "__main__":
    run_as_script(PART)
