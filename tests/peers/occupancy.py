"""Theoretical occupancy: what ``roofbench targets`` reckons from a binary beside what Nsight Compute says of the same one.

    python -m tests.peers.occupancy --out DIR

A row is one of our products: compiled for the device's architecture without it, then launched by the backend under ncu.  It is
the same binary where registers, warps and shared memory of the launch are those that were compiled.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from suite.case import Case
from tests.peers import ncu
from tests.peers.bench import COLD
from tests.peers.child import PeerFailed
from tests.peers.child import run as run_child
from tests.peers.gemms import Gemm, square
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import percent

# A product that fills a multiprocessor by one block, one without descriptors of which several fit, one in another format.
PROGRAMS: Mapping[str, Gemm] = {
    "gemm.bf16": square("bf16", 8192),
    "gemm.bf16.odd": square("bf16", 8191),
    "gemm.fp8_e4m3.fast": square("fp8_e4m3", 8192),
}
METRICS = {
    "registers": "launch__registers_per_thread",
    "threads": "launch__block_size",
    "static": "launch__shared_mem_per_block_static",
    "dynamic": "launch__shared_mem_per_block_dynamic",
    "percent": "sm__maximum_warps_per_active_cycle_pct",
}
TOLERANCE = 1e-3  # of the share: ncu prints percentages
COMPILE_LIMIT_S, NCU_LIMIT_S = 200.0, 120.0
BYTES = {"": 1.0, "byte": 1.0, "byte/block": 1.0, "Kbyte": 1e3, "Kbyte/block": 1e3}


class Binary(NamedTuple):
    """What a block of a kernel takes, and the share of a multiprocessor's warps that fit."""

    kernel: str
    warps: int
    registers: int
    shared_bytes: int
    share: float

    @property
    def takes(self) -> str:
        return f"{self.registers} registers, {self.warps} warps, {self.shared_bytes:,} bytes"

    def is_same(self, other: "Binary") -> bool:
        """Whether both take the same of a multiprocessor."""
        return (self.warps, self.registers, self.shared_bytes) == (other.warps, other.registers, other.shared_bytes)


def run(session: Session) -> None:
    """Compile, launch under ncu, and hold one against the other."""
    if session.bench.backend.name != "cuda":
        session.record.add(PART.without("all", "occupancy is held against ncu's, which is NVIDIA's", Verdict.ABSENT))
        return
    compiled = cells(session, str(session.bench.info.architecture))
    launched = profiled(session)
    for name in PROGRAMS:
        session.record.add(row(name, compiled.get(name), launched))


def cells(session: Session, target: str) -> dict[str, Binary]:
    """What ``roofbench targets`` says of each program, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "suite.cli", "targets", "--target", target, "--kernel", *PROGRAMS, "--json"]
        printed = run_child("roofbench targets", [*words, "--store", f"{folder}/targets.db"], COMPILE_LIMIT_S)
    session.record.keep("targets", json.loads(printed))
    return compiled_of(json.loads(printed))


def compiled_of(found: Sequence[Mapping[str, Any]]) -> dict[str, Binary]:
    """The binaries among what ``roofbench targets --json`` printed."""
    return {
        each["program"]: Binary(
            each["facts"]["kernel"],
            each["facts"]["warps"],
            each["facts"]["registers"],
            each["facts"]["shared_bytes"],
            each["occupancy"]["share"],
        )
        for each in found
        if each["outcome"] == "ok" and each["occupancy"]
    }


def profiled(session: Session) -> list[Binary]:
    """Every kernel that ncu saw while the products were launched."""
    cases = [asked(session, gemm) for gemm in PROGRAMS.values()]
    with tempfile.TemporaryDirectory() as folder:
        given, log = Path(folder) / "cases.json", Path(folder) / "ncu.csv"
        given.write_text(json.dumps([case.to_json() for case in cases]))
        run_child("ncu", command(session.ncu, log, given, session.target), NCU_LIMIT_S)
        text = log.read_text() if log.exists() else ""
    session.record.keep("ncu", text)
    return parse(text)


def asked(session: Session, gemm: Gemm) -> Case:
    """The product as our own kernel computes it."""
    return replace(session.bench.gemm(gemm.scaled(session.tiny), COLD).case, implementation="triton")


def command(program: str, log: Path, cases: Path, target: str) -> list[str]:
    """One pass reads all of them: they are facts of a launch, not counters."""
    return [
        *(program, "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled"),
        *("--metrics", ",".join(METRICS.values()), "--clock-control", "none"),
        *("--target-processes", "application-only", "--profile-from-start", "off", "--log-file", str(log)),
        *(sys.executable, "-m", "tests.peers.ncu_target", "--backend", target, "--cases", str(cases), "--calls", "1"),
    ]


def parse(text: str) -> list[Binary]:
    """Read ncu's table: names, a line of units, then a line a launch.  Raises ``PeerFailed`` for anything else."""
    units, *launches = ncu.table(text)
    try:
        return [_binary(launch, units) for launch in launches]
    except (KeyError, ValueError) as error:
        raise PeerFailed(f"ncu: its table cannot be read: {type(error).__name__} {error}") from error


def _binary(launch: Mapping[str, str], units: Mapping[str, str]) -> Binary:
    found = {name: float(launch[metric].replace(",", "")) for name, metric in METRICS.items()}
    shared = sum(found[kind] * BYTES[units[METRICS[kind]]] for kind in ("static", "dynamic"))
    warps = -(-int(found["threads"]) // 32)
    return Binary(launch["Kernel Name"], warps, int(found["registers"]), round(shared), found["percent"] / 100)


def row(name: str, compiled: Binary | None, launched: Sequence[Binary]) -> Row:
    """``pass`` where the shares are equal; ``absent`` where what was launched is another binary than was compiled."""
    if compiled is None:
        return PART.without(name, "it was not compiled here", Verdict.ABSENT)
    theirs = [each for each in launched if compiled.kernel in each.kernel]
    same = next((each for each in theirs if each.is_same(compiled)), None)
    if same is None:
        seen = "; ".join(dict.fromkeys(each.takes for each in theirs)) or "no such kernel"
        return PART.without(name, f"compiled {compiled.takes}; launched {seen}", Verdict.ABSENT)
    verdict = Verdict.PASS if abs(same.share - compiled.share) <= TOLERANCE else Verdict.FAIL
    cells_ = (compiled.takes, percent(compiled.share), percent(same.share))
    return Row(name, cells_, verdict, {"compiled": compiled._asdict(), "ncu": same._asdict()})


PART = Part(
    "occupancy",
    "theoretical occupancy as roofbench targets reckons it and as Nsight Compute says of the same binary",
    ("a block takes", "ours", "ncu"),
    run,
)

if __name__ == "__main__":
    run_as_script(PART)
