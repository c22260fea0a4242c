"""How far two runs of triton's do_bench differ, over the fixed list of 20 matrix products with the other 19 between.

Roofbench's own figure comes from its selftest; this is what to hold it against.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from suite.measure.statistics import quantile
from suite.planned import PlannedCase
from suite.worker.serve import caught
from tests.peers.bench import WARM
from tests.peers.gemms import TWENTY
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number, percent

AGREES = 0.01
RUNS = 2


def run(session: Session) -> None:
    """The whole list, twice; then one row a case and how many agree."""
    absent = why_absent(session)
    if absent:
        session.record.add(PART.without("do_bench", absent, Verdict.ABSENT))
        return
    cases = [session.bench.gemm(gemm.scaled(session.tiny), WARM) for gemm in TWENTY]
    timed = [[once(session, planned) for planned in cases] for _ in range(RUNS)]
    changes = []
    for gemm, *times in zip(TWENTY, *timed, strict=True):
        row = row_of(gemm.scaled(session.tiny).title, times)
        session.record.add(row)
        changes += [row.figures["change"]] if "change" in row.figures else []
    session.record.add(conclusion(changes))


def why_absent(session: Session) -> str:
    """Why do_bench cannot be asked here; empty when it can."""
    if session.bench.backend.name != "cuda":
        return f"do_bench times CUDA devices, not backend {session.bench.backend.name}"
    return "" if find_spec("triton") else "Triton is not installed"


def once(session: Session, planned: PlannedCase, bench: Callable[..., Any] | None = None) -> float | str:
    """Seconds of one launch by do_bench as it comes, its median; or why there is no time."""
    backend, case = session.bench.backend, planned.case
    reason = "no time was left" if not session.deadline.left_s() else backend.supports(case)
    if reason is not None:
        return reason
    found: list[float] = []

    def time() -> None:
        if bench is None:
            from triton.testing import do_bench
        else:
            do_bench = bench
        kernel = backend.prepare(case, 1, 0)
        try:
            found.append(do_bench(lambda: kernel.enqueue(0), return_mode="median") / 1e3)
        finally:
            kernel.close()

    failure = caught(time, backend.classify)
    return failure.reason if failure else found[0]


def row_of(name: str, times: Sequence[float | str]) -> Row:
    """Two times and their change; absent where one is missing."""
    first, second = times
    if isinstance(first, str) or isinstance(second, str):
        return PART.without(name, str(first if isinstance(first, str) else second), Verdict.ABSENT)
    change = second / first - 1
    cells = (f"{number(first, 1e6)} us", f"{number(second, 1e6)} us", percent(change))
    return Row(name, cells, Verdict.INFO, {"first_s": first, "second_s": second, "change": change})


def conclusion(changes: Sequence[float]) -> Row:
    """The 95th percentile of the changes, and the share within 1 %."""
    sizes = [abs(change) for change in changes]
    worst = quantile(sizes, 0.95) if sizes else None
    agree = sum(size <= AGREES for size in sizes)
    cells = (NOTHING, f"{agree} of {len(sizes)} within 1 %", percent(worst))
    return Row("95th percentile", cells, Verdict.INFO, {"p95": worst, "within": agree, "cases": len(sizes)})


PART = Part(
    name="repeatability",
    shows="triton.testing.do_bench twice over the same 20 cases",
    headings=("first", "second", "change"),
    run=run,
)

if __name__ == "__main__":
    run_as_script(PART)
