"""Roofbench's own products on quantised operands beside torch's library paths: cold, in turns, on copies that rotate.

    python -m tests.peers.quantised_gemm --out DIR

A row is one way to compute one product: its time, its rate or the share of the read bandwidth that its weights came at, and the
ratio to the path that its limit is held against.  Every way is checked against the product in float64 of the numbers stored.
Rows are printed as they come; a product's best configuration comes first, and is the one that is judged.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import torch

from suite.worker.serve import caught, describe
from tests.peers.bench import NO_TIME
from tests.peers.part import Part, Session, run_as_script
from tests.peers.quantised_gemm_cases import cases
from tests.peers.quantised_gemm_read import read_bandwidth
from tests.peers.quantised_gemm_ways import Case, Limit, Way
from tests.peers.record import Row, Verdict
from tests.peers.rotation import Timed, heat, take_turns
from tests.peers.table import NOTHING, number

ROUNDS = 7
GRAPH_S = 4e-3
HEAT_S = 1.0
RIGHT = 0.01  # of the norm: rounding to bf16 is a third of it
FEWEST_SECONDS = 12.0


def run(session: Session) -> None:
    if not torch.cuda.is_available() or session.tiny:
        session.record.add(PART.without("all", "these products need a CUDA device and their full sizes", Verdict.ABSENT))
        return
    bandwidth = read_bandwidth()
    _show(session, Row("read bandwidth", ("", "", number(bandwidth, 1e-12), "", ""), Verdict.INFO, {"bytes_s": bandwidth}))
    for make in cases():
        if session.deadline.left_s() < FEWEST_SECONDS:
            _show(session, PART.without("the rest", NO_TIME, Verdict.ABSENT))
            return
        began_s = time.monotonic()
        for row in measured(make(), bandwidth):
            _show(session, row)
        torch.cuda.empty_cache()
        print(f"    {time.monotonic() - began_s:.1f} s", flush=True)


def measured(case: Case, bandwidth: float) -> Iterator[Row]:
    """Every way of a case: checked, then timed in turns; limits last."""
    ready_ways: list[Timed] = []
    lost: list[Row] = []
    for number_, make in enumerate(case.ways()):
        found = made(case, make)
        if isinstance(found, Timed):
            ready_ways.append(found)
        else:
            lost.append(PART.without(f"{case.name}: {_named(make, number_)}", found, Verdict.FAILED))
    if ready_ways:
        heat(ready_ways[0], HEAT_S)
    take_turns(ready_ways, ROUNDS)
    ranked = sorted(ready_ways, key=lambda each: each.median_s)
    base = next((each.median_s for each in ready_ways if "cuBLAS bf16" in each.way.name or "unchecked" in each.way.name), None)
    for each in ranked:
        yield _row(case, each, base, bandwidth)
    yield from lost
    for limit in case.limits:
        yield _judged(case, limit, ranked, bandwidth)


def made(case: Case, make: Callable[[], Way]) -> Timed | str:
    """A way that is ready to be timed and computes the product, or why there is none."""
    found: list[Timed] = []
    distances: list[float] = []

    def prepare() -> None:
        way = make()
        way.output.fill_(float("nan"))
        way.launches[0]()
        torch.cuda.synchronize()
        distances.append(0.0 if way.name.startswith("unchecked") else case.reference.distance(way.output))
        found.append(Timed(way, GRAPH_S))

    failure = caught(prepare, describe)
    if failure:
        return failure.reason
    return found[0] if distances[0] <= RIGHT else f"its result is {distances[0]:.3g} of the norm away"


def _named(make: Callable[[], Way], place: int) -> str:
    arguments = [
        getattr(each, "label", str(each)) for each in getattr(make, "args", ()) if not isinstance(each, (list, torch.Tensor))
    ]
    return " ".join([f"way {place}", *arguments])[:90]


def _row(case: Case, timed: Timed, base_s: float | None, bandwidth: float) -> Row:
    time_s = timed.median_s
    share = case.weight_bytes / time_s / bandwidth if case.weight_bytes and case.shape.m <= 64 else None
    cells = (
        number(time_s, 1e6),
        number(case.shape.flops / time_s, 1e-12),
        number(case.weight_bytes / time_s, 1e-12, 3) if share else NOTHING,
        f"{share:.3f}" if share else NOTHING,
        f"{base_s / time_s:.3f}" if base_s else NOTHING,
    )
    figures = {"times_s": timed.times_s, "time_s": time_s, "share": share, "flop_s": case.shape.flops / time_s}
    return Row(f"{case.name}: {timed.way.name}", cells, Verdict.INFO, figures)


def _judged(case: Case, limit: Limit, ranked: Sequence[Timed], bandwidth: float) -> Row:
    """The fastest of ours against the fastest of the peer's."""
    ours = next((each for each in ranked if each.way.name.startswith(limit.ours)), None)
    peer = next((each for each in ranked if limit.peer and each.way.name.startswith(limit.peer)), None)
    name = f"= {case.name}: {limit.ours} over {limit.peer or 'bandwidth'}"
    if ours is None or (limit.peer and peer is None):
        return PART.without(name, "a side is missing", Verdict.ABSENT)
    found = peer.median_s / ours.median_s if peer else case.weight_bytes / ours.median_s / bandwidth
    cells = (number(ours.median_s, 1e6), NOTHING, NOTHING, f"{found:.3f}", f"limit {limit.least}")
    figures = {"found": found, "least": limit.least, "best": ours.way.name}
    return Row(name, cells, Verdict.PASS if found >= limit.least else Verdict.FAIL, figures, ours.way.name)


def _show(session: Session, row: Row) -> None:
    """Into the record, and at once onto the terminal: a run that is killed has shown what it had."""
    session.record.add(row)
    print(f"{row.name:<100} {'  '.join(f'{cell:>9}' for cell in row.cells)}  {row.verdict.value} {row.note}", flush=True)


PART = Part(
    name="quantised_gemm",
    shows="roofbench's own products on quantised operands beside torch's, cold, in turns",
    headings=("us", "TFLOP/s", "TB/s", "share", "ratio"),
    run=run,
    foot=(
        "'share' is the weights' bytes over the time, of the read bandwidth measured first; 'ratio' is the time of the first",
        "library path over that of the row.  A row that begins with = is judged: the fastest of ours against its limit.",
    ),
)

if __name__ == "__main__":
    run_as_script(PART)
