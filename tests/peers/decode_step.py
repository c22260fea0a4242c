"""A decode step of Llama-3-8B by torch, launch by launch and in a graph, beside roofbench's own kernels in a graph, in turns.

    python -m tests.peers.decode_step --out DIR --seconds 500

A row is one way to compute a step at one batch size, with 4k tokens of context: its time, tokens of all sequences a second,
the bytes that it has to move (weights, K and V, what is beside them) and their rate, and that rate over what a plain kernel
reads of 4 GiB in the same turns.  Everything is measured as a run measures it: every stage of every layer is checked against
float64 before and after.  The most important batch sizes come first; the streaming of weights alone follows.  ``--tiny`` tries
the chain on any machine, with a decoder of two layers.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from suite.case import Regime
from suite.jobs.decode_step import DecodeStepJob, DecodeStepSettings
from suite.plan import plan
from suite.planned import PlannedCase
from suite.roofline import Summary
from suite.settings import MeasureSettings, RunConfig
from tests.peers.bench import NO_TIME, Bench, Measured
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import number
from tests.peers.together import together

# One input set: at 300 times the last-level cache nothing of it is there when a launch begins again.
GRAPH, CALL = (Regime("warm", "sustained", dispatch) for dispatch in ("device", "call"))
READ = "read of 4 GiB"
LEAST_OF_READ = 0.80  # of roofbench's own step at batch 1, in a graph
ROUNDS = 3
TINY: dict[str, Any] = {
    "layers": 2,
    "hidden_sizes": 64,
    "heads": "4/2x16",
    "intermediate_sizes": 96,
    "vocabularies": 300,
    "kv_lens": [37],
}


class Way(NamedTuple):
    """How a part of the job is computed; ``name`` is that of its row."""

    name: str
    implementation: str
    regime: Regime
    part: str = "step"


class Group(NamedTuple):
    """Ways at one batch size that take turns with each other."""

    batch: int
    ways: tuple[Way, ...]


EAGER, LIBRARY, OWN = (
    Way("torch, eager", "library", CALL),
    Way("torch, graph", "library", GRAPH),
    Way("roofbench, graph", "triton_tuned", GRAPH),
)
ALONE = (Way("weights, torch", "library", GRAPH, "weights"), Way("weights, roofbench", "triton_tuned", GRAPH, "weights"))


def groups() -> Iterator[Group]:
    """What a limit is given for first; caches of 64 sequences leave no room for a third copy of everything."""
    for batch in (1, 8):
        yield Group(batch, (EAGER, LIBRARY, OWN))
    yield Group(1, ALONE)
    for batch in (16, 4, 2, 32, 64):
        yield Group(batch, (LIBRARY, OWN))
    yield Group(16, ALONE)


def run(session: Session) -> None:
    for group in groups():
        if not session.deadline.left_s():
            session.record.add(PART.without(f"batch {group.batch}", NO_TIME, Verdict.ABSENT))
            continue
        for row in measured(session, group):
            session.record.add(row)
            print(
                "  ".join([f"{row.name:<32}", *(f"{cell:>9}" for cell in row.cells), row.verdict.value, row.note]), flush=True
            )


def measured(session: Session, group: Group) -> list[Row]:
    """The read and every way of a group, in turns."""
    bench = session.bench
    cases = [read_of(bench), *(planned(bench, group.batch, way) for way in group.ways)]
    read, *found = together(bench, cases, settings_of(bench), ROUNDS)
    for each in (read, *found):
        session.record.keep(f"batch {group.batch}: {each.planned.case.title}", each.figures())
    read_s = read.summary.bytes_s if read.summary else None
    rows = [row_of(session, group.batch, way, each, read_s) for way, each in zip(group.ways, found, strict=True)]
    return [read_row(group.batch, read, read_s), *rows]


def settings_of(bench: Bench) -> MeasureSettings:
    return bench.settings(min_time_s=0.2, max_time_s=2.0, verify_tiles=2)


def planned(bench: Bench, batch: int, way: Way) -> PlannedCase:
    """As ``roofbench run`` would plan it."""
    sizes = TINY if bench.tiny else {}
    job = DecodeStepSettings(parts=[way.part], batches=[batch], implementations=[way.implementation], **sizes)
    config = RunConfig(jobs={job.name: job}, measure=MeasureSettings(regimes=[way.regime.label]), oversize="record")
    (found,) = plan(config, [bench.slot], calibrated={0})
    return found


def read_of(bench: Bench) -> PlannedCase:
    """The reading of a device's calibration."""
    config = RunConfig(jobs={"decode_step": DecodeStepSettings()}, oversize="record")
    return next(each for each in plan(config, [bench.slot]) if dict(each.case.workload.params).get("op") == "read")


def read_row(batch: int, read: Measured, read_s: float | None) -> Row:
    if read.summary is None or read_s is None:
        return PART.lost(f"batch {batch}: {READ}", read)
    cells = (number(read.summary.p50_s, 1e3), "-", number(read.planned.work.compulsory_bytes, 1e-9), number(read_s, 1e-9), "1")
    return Row(f"batch {batch}: {READ}", cells, Verdict.INFO, read.figures())


def row_of(session: Session, batch: int, way: Way, each: Measured, read_s: float | None) -> Row:
    name = f"batch {batch}: {way.name}"
    if each.planned.reason:
        return PART.without(name, each.planned.reason, Verdict.ABSENT)
    if each.summary is None:
        return PART.lost(name, each)
    figures = figures_of(each.planned, each.summary, read_s)
    cells = (
        number(figures["time_s"], 1e3),
        number(figures["tokens_s"]),
        number(figures["bytes"], 1e-9),
        number(figures["bytes_s"], 1e-9),
        number(figures["of_read"], digits=3),
    )
    verdict, note = judged(batch, way, figures["of_read"])
    described = each.measurement.description if each.measurement else {}
    told = {key: described[key] for key in ("order", "order_tried", "launches", "products", "attention") if key in described}
    return Row(name, cells, verdict, {**each.figures(), **figures, "described": told}, note)


def figures_of(case: PlannedCase, summary: Summary, read_s: float | None) -> dict[str, Any]:
    """Of one launch; tokens are those of a step."""
    batch = case.case.workload.param("batch")
    is_step = case.case.workload.param("part") == "step"
    return {
        "time_s": summary.p50_s,
        "tokens_s": batch / summary.p50_s if is_step else None,
        "bytes": case.work.compulsory_bytes,
        "bytes_s": summary.bytes_s,
        "of_read": summary.bytes_s / read_s if read_s else None,
        "least_s": case.work.compulsory_bytes / read_s if read_s else None,
    }


def judged(batch: int, way: Way, of_read: float | None) -> tuple[Verdict, str]:
    """Only roofbench's own step of one sequence has a limit."""
    if (batch, way) != (1, OWN):
        return Verdict.INFO, ""
    passed = of_read is not None and of_read >= LEAST_OF_READ
    return Verdict.PASS if passed else Verdict.FAIL, f"the limit is {LEAST_OF_READ} of the read"


def largest_sets() -> Sequence[int]:
    """Bytes that the ways of each group hold together, by the plan's own count."""
    job, found = DecodeStepJob(), []
    for group in groups():
        total = 0
        for way in group.ways:
            (workload,) = job.workloads(DecodeStepSettings(parts=[way.part], batches=[group.batch]))
            total += job.footprint(workload).total_bytes(1, implementation=way.implementation)
        found.append(total)
    return found


PART = Part(
    name="decode_step",
    shows="a decode step of Llama-3-8B with 4k tokens of context by torch and by roofbench's own kernels, in turns",
    headings=("ms", "tokens/s", "GB", "GB/s", "of read"),
    run=run,
    foot=("GB are bytes that a launch has to move; the last column is their rate over that of the read in the same turns.",),
)

if __name__ == "__main__":
    run_as_script(PART)
