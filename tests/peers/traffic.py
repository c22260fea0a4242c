"""What attention and decoding move to and from memory, as Nsight Compute counts it, beside the bytes of the work model.

    python -m tests.peers.traffic --out DIR

A row is one way to compute one case.  The model has every operand read and every result written once; of an implementation
that says it moves more (``naive``, whose scores pass through memory) it has that.  A row is judged where the bytes of a case
are over ten times the last-level cache: of fewer, some are still there from the launch before.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from suite.case import Case
from suite.jobs.emulation import TRAFFIC_BYTES
from suite.jobs.registry import JOBS
from suite.plan import data_seed
from suite.worker.serve import caught, describe
from tests.backends.attention_cases import attention_case
from tests.backends.decode_cases import decode_case
from tests.peers import ncu
from tests.peers.child import PeerFailed
from tests.peers.child import run as run_child
from tests.peers.judge import within
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number

READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
SCALES = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
LIMIT = 0.15
CACHES = 10  # a case of more bytes than so many last-level caches is judged
CALLS = 3  # the first is dropped
NCU_LIMIT_S = 90.0


class Model(NamedTuple):
    """Bytes of one launch by the work model.

    ``unique`` are those of operands, results and scores that pass through memory; ``read`` is ``None`` where only the sum of
    both ways is known.
    """

    unique: int
    read: int | None
    moved: int


class Moved(NamedTuple):
    """Bytes that one launch moved, by ncu."""

    read: float
    written: float


def cases(tiny: bool) -> Iterator[Case]:
    """Operands of many times any cache, a head's keys and values of 8 MB and of 2 MB; and some that are not judged."""
    length, kv_len = (256, 512) if tiny else (16384, 32768)
    for name in ("library_flash", "triton", "gluon"):
        yield attention_case(name, "bf16", "16x128", 4, length, "full", backend="cuda")
        yield attention_case(name, "bf16", "16x128", 16, length // 4, "full", backend="cuda")
    yield attention_case("naive", "bf16", "16x128", 4, length // 4, "full", backend="cuda")
    for name, format_name in (("library_cudnn", "bf16"), ("triton", "bf16"), ("triton", "fp8_e4m3"), ("triton", "int8")):
        scaling = "token" if format_name == "int8" else None
        yield decode_case(name, format_name, "32/8x128", 32, kv_len, backend="cuda", scaling=scaling)
    yield decode_case("naive", "bf16", "32/8x128", 32, kv_len // 8, backend="cuda")
    yield decode_case("triton", "bf16", "32/8x128", 32, kv_len // 8, backend="cuda")


def run(session: Session) -> None:
    """Each case in a process of its own under ncu: one that fails costs its own row."""
    if session.bench.backend.name != "cuda":
        session.record.add(PART.without("all", "bytes are counted by ncu, which is NVIDIA's", Verdict.ABSENT))
        return
    for case in cases(session.tiny):
        session.record.add(_row_of(session, case))


def _row_of(session: Session, case: Case) -> Row:
    title = f"{case.title.split(' cold/')[0]}"
    unsupported = session.bench.backend.supports(case)
    if unsupported:
        return PART.without(title, unsupported, Verdict.ABSENT)
    found: list[Row] = []

    def make() -> None:
        model = model_of(session, case)
        moved = counted(session, case)
        found.append(row(title, model, moved, session.bench.info.llc_bytes or 0))

    failure = caught(make, describe)
    return found[0] if found else PART.without(title, failure.reason if failure else "nothing was counted")


def model_of(session: Session, case: Case) -> Model:
    """What one launch should move; the kernel is asked whether it moves more."""
    job = JOBS[case.workload.job]
    work, footprint = job.work(case.workload), job.footprint(case.workload)
    kernel = session.bench.backend.prepare(case, 1, data_seed(0, case.workload.key))
    described = kernel.describe()
    more, scores_bytes = described.get(TRAFFIC_BYTES), int(described.get("scores_bytes", 0))
    kernel.close()
    if more is not None:
        return Model(work.compulsory_bytes + scores_bytes, None, int(more))
    return Model(work.compulsory_bytes, work.compulsory_bytes - footprint.output_bytes, work.compulsory_bytes)


def counted(session: Session, case: Case) -> Moved:
    """One launch after another, with whatever the one before left in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        asked, log = Path(folder) / "cases.json", Path(folder) / "ncu.csv"
        asked.write_text(json.dumps([case.to_json()]))
        limit_s = min(NCU_LIMIT_S, session.deadline.left_s())
        run_child("ncu", command(session.ncu, log, asked, session.target), limit_s)
        text = log.read_text() if log.exists() else ""
    session.record.keep(f"ncu {case.title}", text)
    return parse(text, CALLS)


def command(program: str, log: Path, asked: Path, target: str) -> list[str]:
    """Clocks and caches are left alone."""
    return [
        *(program, "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled"),
        *("--metrics", f"{READ},{WRITTEN}", "--clock-control", "none", "--cache-control", "none"),
        *("--target-processes", "application-only", "--profile-from-start", "off", "--log-file", str(log)),
        *(sys.executable, "-m", "tests.peers.ncu_target", "--backend", target, "--cases", str(asked), "--calls", str(CALLS)),
    ]


def parse(text: str, calls: int) -> Moved:
    """The median over calls but the first, each the sum of its kernels.  Raises ``PeerFailed`` where that cannot be read."""
    units, *launches = ncu.table(text)
    try:
        moved = [_moved(launch, units) for launch in launches[1:]]  # the first is the marker
    except (KeyError, ValueError) as error:
        raise PeerFailed(f"ncu: its table cannot be read: {type(error).__name__} {error}") from error
    if not moved or len(moved) % calls:
        raise PeerFailed(f"ncu saw {len(moved)} kernels for {calls} calls")
    size = len(moved) // calls
    each = [moved[first : first + size] for first in range(0, len(moved), size)][1:]
    return Moved(
        median(sum(one.read for one in call) for call in each), median(sum(one.written for one in call) for call in each)
    )


def _moved(launch: Mapping[str, str], units: Mapping[str, str]) -> Moved:
    return Moved(*(float(launch[name].replace(",", "")) * SCALES[units[name]] for name in (READ, WRITTEN)))


def row(title: str, model: Model, moved: Moved, llc_bytes: int) -> Row:
    """Reads against what should be read; everything moved, where the model knows the sum alone."""
    ratio = moved.read / model.read if model.read else (moved.read + moved.written) / model.moved
    is_judged = model.unique > CACHES * llc_bytes
    cells = (
        number(model.unique, 1e-9),
        number(model.read, 1e-9) if model.read else NOTHING,
        number(moved.read, 1e-9),
        number(model.moved, 1e-9),
        number(moved.read + moved.written, 1e-9),
        f"{ratio:.3f}",
    )
    figures: dict[str, Any] = {"model": model._asdict(), "ncu": moved._asdict(), "ratio": ratio, "llc_bytes": llc_bytes}
    note = "" if is_judged else f"not judged: {model.unique / 1e6:.0f} MB are under {CACHES} caches of {llc_bytes / 1e6:.0f} MB"
    return Row(title, cells, within(ratio - 1, LIMIT) if is_judged else Verdict.INFO, figures, note)


PART = Part(
    "traffic",
    "bytes to and from memory by the work model and by Nsight Compute, GB",
    ("unique", "to read", "read", "to move", "moved", "ratio"),
    run,
)

if __name__ == "__main__":
    run_as_script(PART)
