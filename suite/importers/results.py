"""Rows of another tool's log as results: cases that no backend of roofbench has, evidence ``imported``.

A case names the tool as its backend, so that it is never the same as a measured one.  Its time is the tool's mean over
iterations, one sample of so many launches; percentiles and intervals are not known.  What the tool did not check is
``unchecked``, and what it found wrong has no time.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from suite.case import Case, Regime, Workload, items
from suite.collectives.bandwidth import busbw_factor
from suite.collectives.choice import LIBRARY
from suite.collectives.transport import Transport
from suite.importers.rows import Checked, CollectiveLog, CollectiveRow
from suite.measurement import Measurement, SampleSet
from suite.outcome import Outcome
from suite.planned import PlannedCase
from suite.work import Work

JOB = "collective"
METHOD_VERSION = 1
UNKNOWN = "unknown"
# Launches queued one behind the other, of whose times the tool prints the mean.
REGIME = Regime("warm", "sustained", "device")
USUAL_REDOPS = (None, "sum", "none")
NS = 1e-9
RESOLUTION_S = 1e-8  # two decimals of a microsecond, as tables print them
LONGEST_S = 86_400.0  # of one iteration
MOST_BYTES = 2**50  # of one message: what a thousand of the largest devices hold is under a fifth of it


class Imported(NamedTuple):
    """One row as it is stored."""

    planned: PlannedCase
    measurement: Measurement


def results(log: CollectiveLog) -> Iterator[Imported]:
    """Every row that moves something; a row that is there again is a case of its own, numbered."""
    seen: Counter[str] = Counter()
    for row in log.rows:
        if _why_not(row):
            continue
        case = _case(log, row)
        seen[case.key] += 1
        if seen[case.key] > 1:
            case = _case(log, row, repeat=seen[case.key])
        yield Imported(PlannedCase(0, 0, case, _work(row), 0.0, 1, 0, 0.0), _measurement(log, row))


def left_out(log: CollectiveLog) -> Iterator[str]:
    """What of a log is no result, one sentence each."""
    for why, count in Counter(filter(None, map(_why_not, log.rows))).items():
        yield why.format(rows=f"{count} row{'s' * (count > 1)}")


def _why_not(row: CollectiveRow) -> str:
    """What to say of ``{rows}`` that are no results: a tool's text may have been damaged, and its JSON holds any number."""
    if row.size_bytes == 0:
        return "{rows} of size 0 left out: they move nothing"
    if not 0 < row.size_bytes <= MOST_BYTES:
        return "{rows} of a size that no message has left out"
    if row.time_s is None:
        return "{rows} without a time left out"
    if not RESOLUTION_S / 2 <= row.time_s <= LONGEST_S:  # not a number neither
        return "{rows} of a time that no iteration takes left out"
    return ""


def _case(log: CollectiveLog, row: CollectiveRow, repeat: int = 1) -> Case:
    """An operation or a world that the log does not name is not guessed: of the one it says so, the other it leaves out."""
    params: dict[str, str | int] = {"op": row.op or UNKNOWN, "message_bytes": row.size_bytes}
    params |= {"world_size": row.ranks} if row.ranks else {}
    semantics = {} if row.redop in USUAL_REDOPS else {"redop": str(row.redop)}
    workload = Workload(JOB, row.format, items(params), log.tool, items(semantics))
    switches: dict[str, str | bool | int] = {
        "algo": LIBRARY,
        "proto": LIBRARY,
        "in_place": row.in_place,
        "transport": Transport.DEVICE_LINK.value,
        **({"repeat": repeat} if repeat > 1 else {}),
    }
    return Case(workload, LIBRARY, log.tool, REGIME, items(switches), METHOD_VERSION)


def _work(row: CollectiveRow) -> Work:
    """Bytes that busbw counts, where operation and world say which; over one rank there are none."""
    if row.op is None or row.ranks is None or row.ranks < 2:
        return Work(flops=0, compulsory_bytes=0, pipe=None)
    over_link = round(row.size_bytes * busbw_factor(row.op, row.ranks))
    return Work(flops=0, compulsory_bytes=over_link, pipe=Transport.DEVICE_LINK.value)


def _measurement(log: CollectiveLog, row: CollectiveRow) -> Measurement:
    outcome, reason = _ending(log, row)
    return Measurement(outcome, reason, execution=UNKNOWN, samples=_samples(log, row), description=_described(log, row))


def _ending(log: CollectiveLog, row: CollectiveRow) -> tuple[Outcome, str]:
    single = "a single rank: nothing crossed a link" if row.ranks == 1 else ""
    match row.checked:
        case Checked.GOOD:
            return Outcome.OK, single
        case Checked.UNCHECKED:
            return Outcome.UNCHECKED, "; ".join(filter(None, (_why_unchecked(log), single)))
        case _:
            found = f"{row.wrong} wrong elements" if row.wrong is not None else f"a difference of {row.error_delta:g}"
            return Outcome.INCORRECT, f"{log.tool} found {found}"


def _why_unchecked(log: CollectiveLog) -> str:
    if log.out_of_bounds:
        return f"{log.tool} counts {log.out_of_bounds} values out of bounds, and not all rows say whether they are theirs"
    return f"{log.tool} did not look at the result"


def _samples(log: CollectiveLog, row: CollectiveRow) -> SampleSet:
    assert row.time_s is not None, "rows without a time are left out"
    iterations = log.parameters.get("iters")
    launches = iterations if isinstance(iterations, int) and iterations > 0 else 1
    told = f"{launches} iterations" if launches > 1 else "iterations whose number it does not say"
    taken_ns = round(row.time_s * launches / NS)
    return SampleSet(
        durations_ns=(taken_ns,),
        launches=launches,
        method=f"mean of {told}, {log.tool}",
        resolution_s=RESOLUTION_S,
        count=1,
        sum_ns=taken_ns,
        min_ns=taken_ns,
        details=_spread(row),
        median_ns=float(taken_ns),
    )


def _spread(row: CollectiveRow) -> dict[str, float]:
    if row.iterations is None:
        return {}
    single = row.iterations
    return {"iteration_min_s": single.min_s, "iteration_max_s": single.max_s, "iteration_p99_s": single.p99_s, "cv": single.cv}


def _described(log: CollectiveLog, row: CollectiveRow) -> dict[str, Any]:
    """What the tool printed, as it printed it; ``wrong`` is null where nothing was checked."""
    told = {
        "library": f"NCCL or RCCL {log.library_version}" if log.library_version else None,
        "printed_algbw_bytes_s": row.algbw_bytes_s,
        "printed_busbw_bytes_s": row.busbw_bytes_s,
        "printed_time_s": row.time_s,
        "count": row.count,
        "redop": row.redop,
        "root": row.root,
        "error_delta": row.error_delta,
    }
    return {**{name: value for name, value in told.items() if value is not None}, "wrong": row.wrong, **dict(row.extra)}
