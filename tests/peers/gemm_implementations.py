"""Roofbench's own matrix products beside the library's: the same data, sustained, in alternating rounds of one process.

    python -m tests.peers.gemm_implementations --out DIR

A row is one product: both rates, the ratio of the library's time to ours over the rounds, and how ours is cut.  After it come
other configurations, for a few seconds, each on the same product: the fastest of them and what it would gain.  At the end
stand the geometric mean and the lowest ratio of each format, and the configurations that were fastest over all products.
"""

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from statistics import geometric_mean, median
from typing import Any, NamedTuple

from suite.jobs.shapes import model_shapes
from suite.plan import data_seed
from suite.planned import PlannedCase
from suite.worker.serve import caught
from tests.peers.bench import COLD, NO_TIME, Measured, batches_s
from tests.peers.gemms import Gemm, square
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number
from tests.peers.together import together

OURS = "triton"
ROUNDS = 6
PAIR_S = 12.0  # what both sides of the largest product take, checks included
STEADY_S = 3.0  # the device is hot from the product before
SWEEP_S = 6.0
MEAN_LIMIT, LOWEST_LIMIT = 1.0, 0.97
JUDGED = "bf16"  # for the other formats no ratio is promised
NAMED_AT_MOST = 8
MODEL, TOKENS = "llama-3.3-70b", (4096, 8192, 2048)


def products(format_name: str) -> list[Gemm]:
    """What the ratios are promised for, then the prompts of a 70B model: the projections first, its vocabulary last."""
    squares = [square(format_name, 4096), square(format_name, 8192), Gemm(format_name, 8192, 8192, 28672)]
    projections = [Gemm(format_name, *shape) for m in TOKENS for shape in model_shapes(MODEL, m)]
    by_columns = sorted(projections, key=lambda gemm: gemm.n > 100_000)
    return list(dict.fromkeys([*squares, *by_columns]))


class Pair(NamedTuple):
    """One product: the library and ours, or why they are absent; ``tried`` has seconds of a launch, the default's first."""

    name: str
    sides: Sequence[Measured] = ()
    absent: str = ""
    tried: Mapping[str, float] = {}

    @property
    def ratios(self) -> list[float]:
        """The library's time over ours, round by round; empty where a side has none."""
        sampled = [side.measurement.samples for side in self.sides if side.summary and side.measurement]
        medians = [[median(batch) for batch in batches_s(samples)] for samples in sampled if samples]
        return [theirs_s / ours_s for theirs_s, ours_s in zip(*medians, strict=True)] if len(medians) == 2 else []


def run(session: Session) -> None:
    """Format by format, the judged one first; other configurations are tried only in time that no product needs."""
    todo = {name: dict.fromkeys(each.scaled(session.tiny) for each in products(name)) for name in (JUDGED, "fp8_e4m3")}
    left = sum(map(len, todo.values()))
    for format_name, gemms in todo.items():
        pairs = []
        for gemm in gemms:
            left -= 1
            pair = measured(session, gemm, left * PAIR_S)
            session.record.add(row(pair))
            pairs.append(pair)
        for each in conclusions(format_name, pairs):
            session.record.add(each)


def measured(session: Session, gemm: Gemm, others_s: float = 0.0) -> Pair:
    """Both sides in turns, then the sweep; nothing where ours is not offered or no time is left.  Others need ``others_s``."""
    library = session.bench.gemm(gemm, COLD)
    ours = library._replace(case=replace(library.case, implementation=OURS))
    why_not = NO_TIME if session.deadline.left_s() < PAIR_S else session.bench.backend.supports(ours.case)
    if why_not:
        return Pair(gemm.title, absent=why_not)
    settings = session.bench.settings(steady_timeout_s=STEADY_S)
    sides = together(session.bench, [library, ours], settings, ROUNDS)
    for side in sides:
        session.record.keep(side.planned.case.title, side.figures())
    return Pair(gemm.title, sides, tried=swept(session, ours, others_s))


def swept(session: Session, planned: PlannedCase, others_s: float = 0.0) -> Mapping[str, float]:
    """Seconds of a launch by configuration, as many as there is time for beside ``others_s``; empty where none is tried."""
    seconds = min(SWEEP_S, session.deadline.left_s() - others_s)
    if not find_spec("triton") or seconds <= 0:
        return {}
    from backends.triton.gemm.kernel import TritonKernel

    found: dict[str, float] = {}

    def sweep() -> None:
        kernel = session.bench.backend.prepare(planned.case, planned.sets, data_seed(0, planned.case.workload.key))
        try:
            if isinstance(kernel, TritonKernel):
                found.update(tried(kernel, seconds))
        finally:
            kernel.close()

    failure = caught(sweep, session.bench.backend.classify)
    session.record.keep(f"sweep of {planned.case.title}", found or (failure.reason if failure else "nothing to try"))
    return found


def tried(kernel: Any, seconds: float) -> dict[str, float]:
    """Time the default, its neighbours, then everything else in an order that is the same for every product."""
    from backends.triton.gemm.config import candidates
    from backends.triton.gemm.kernel import Trials
    from backends.triton.gemm.tuning import search

    problem, device, _ = kernel.task
    near, all_of_them = candidates(problem, device), candidates(problem, device, wide=True)
    random.Random(0).shuffle(all_of_them)
    found = search(list(dict.fromkeys([*near, *all_of_them])), Trials(kernel.task), seconds)
    return {config.label: time_s for config, time_s in found.times_s.items()}


def row(pair: Pair) -> Row:
    """One product; only the formats' means are judged."""
    if pair.absent:
        return PART.without(pair.name, pair.absent, Verdict.ABSENT)
    lost = next((side for side in pair.sides if side.summary is None), None)
    if lost is not None:
        return PART.lost(pair.name, lost)
    ratios, ours = pair.ratios, pair.sides[1].measurement
    description = ours.description if ours else {}
    best, gain = _best(pair.tried)
    cells = (
        *(number(side.summary.flop_s, 1e-12) if side.summary else NOTHING for side in pair.sides),
        number(median(ratios)),
        f"{min(ratios):.3f} to {max(ratios):.3f}",
        str(description.get("tiles", NOTHING)),
        number(gain),
        best,
    )
    figures = {"ratio": median(ratios), "ratios": ratios, "best": best, "gain": gain, "tried": len(pair.tried)}
    return Row(pair.name, cells, Verdict.INFO, {**figures, "description": dict(description)})


def _best(tried: Mapping[str, float]) -> tuple[str, float | None]:
    """The fastest configuration, and the default's time over its."""
    if not tried:
        return NOTHING, None
    best = min(tried, key=lambda label: tried[label])
    return best, next(iter(tried.values())) / tried[best]


def conclusions(format_name: str, pairs: Sequence[Pair]) -> Iterator[Row]:
    """The mean and the lowest of the ratios, then the configurations that gained most over all products."""
    ratios = {pair.name: median(pair.ratios) for pair in pairs if pair.ratios}
    yield _mean(format_name, ratios, len(pairs))
    for label, (gain, count) in overall([pair.tried for pair in pairs if pair.tried]).items():
        cells = (*[NOTHING] * 2, number(gain), f"over {count}", label.partition(",")[0], NOTHING, label)
        yield Row(f"{format_name} cut as", cells, Verdict.INFO, {"configuration": label, "gain": gain, "products": count})


def _mean(format_name: str, ratios: Mapping[str, float], products_: int) -> Row:
    if not ratios:
        return PART.without(f"{format_name} mean", "no product was measured on both sides", Verdict.ABSENT)
    mean, lowest = geometric_mean(ratios.values()), min(ratios, key=lambda name: ratios[name])
    passed = mean >= MEAN_LIMIT and ratios[lowest] >= LOWEST_LIMIT
    verdict = (Verdict.PASS if passed else Verdict.FAIL) if format_name == JUDGED else Verdict.INFO
    limits = f"limits {MEAN_LIMIT:.2f}, {LOWEST_LIMIT:.2f}" if format_name == JUDGED else NOTHING
    cells = (*[NOTHING] * 2, number(mean), f"lowest {ratios[lowest]:.3f}", NOTHING, NOTHING, limits)
    note = f"{len(ratios)} of {products_} products; lowest at {lowest}"
    return Row(f"{format_name} mean", cells, verdict, {"mean": mean, "lowest": ratios[lowest], "at": lowest}, note)


def overall(sweeps: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, int]]:
    """Geometric mean of default over configuration, and over how many products, best first; tried on half of them at least."""
    gains: dict[str, list[float]] = defaultdict(list)
    for tried in sweeps:
        default_s = next(iter(tried.values()))
        for label, time_s in tried.items():
            gains[label].append(math.log(default_s / time_s))
    means = {label: math.exp(sum(each) / len(each)) for label, each in gains.items() if 2 * len(each) >= len(sweeps)}
    ranked = sorted(means, key=lambda label: -means[label])[:NAMED_AT_MOST]
    return {label: (means[label], len(gains[label])) for label in ranked}


PART = Part(
    name="gemm_implementations",
    shows="roofbench's own matrix products beside the library's, sustained, in turns",
    headings=("library TFLOP/s", "ours", "ratio", "rounds", "tiles", "best gains", "the best"),
    run=run,
    foot=(
        "The ratio is the library's time over ours, the median over the rounds; 'best gains' is the default's time over that",
        "of the fastest configuration tried, each timed for milliseconds: a hint, to be measured before it is a default.",
    ),
)

if __name__ == "__main__":
    run_as_script(PART)
