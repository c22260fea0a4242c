"""Agreement with Nsight Compute and nvbench: cycles and times of kernels through cuBLAS, a copy, a sustained rate."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from backends.torch.graph_names import NAME_CHARACTERS
from suite.case import Regime
from suite.planned import PlannedCase
from suite.settings import MeasureSettings
from tests.peers import ncu, nvbench
from tests.peers.bench import COLD, WARM, Bench, Measured, batches_s
from tests.peers.child import PeerFailed
from tests.peers.gemms import square
from tests.peers.judge import Judged, absolute, relative
from tests.peers.order import turns
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row
from tests.peers.table import NOTHING, number, percent

CYCLES_LIMIT = TIME_LIMIT = BATCH_LIMIT = 0.02
SHORT_LIMIT_S = 2e-6
LONG_SIDES, SHORT_SIDES = (4096, 8192), (512, 2048)
COPY_BYTES, TINY_COPY_BYTES = 2**30, 2**20
NCU_LIMIT_S = 100.0
PAIRS = 5
BATCH_S = 0.5  # what nvbench's batch lasts by default
SETTLE_S = 1.0
# Its cold measurement comes first and cannot be left out: as short as it gets, and nothing thrown away or waited for.
BATCH_OPTIONS = ("--stopping-criterion", "sample-count", "--target-samples", "10", "--throttle-threshold", "0")


class Compared(NamedTuple):
    """One case that ncu profiles too: ``kind`` is ``cycles``, ``time`` (both within a share) or ``short`` (within 2 us)."""

    name: str
    kind: str
    planned: PlannedCase


def run(session: Session) -> None:
    """Ours first, ncu once for each cache regime, then one row each; last the alternation with nvbench."""
    compared = comparisons(session.bench)
    ours = [session.measure(each.planned, bursts(session.bench)) for each in compared]
    alone = isolated(session, compared)
    theirs = profiled(session, [each.planned for each in compared])
    for each, measured, reading, alone_s in zip(compared, ours, theirs, alone, strict=True):
        session.record.add(row(each, measured, reading, alone_s))
    session.record.add(sustained(session))


def comparisons(bench: Bench) -> list[Compared]:
    """Every case in the order of the table."""
    cases = []
    for kind, sides in (("cycles", LONG_SIDES), ("short", SHORT_SIDES)):
        for side in sides:
            gemm = square("bf16", side).scaled(bench.tiny)
            for regime in (WARM, COLD):
                load = "burst" if kind == "short" else regime.load
                planned = bench.gemm(gemm, regime._replace(load=load))
                cases.append(Compared(_name(gemm.title, regime), kind, planned))
    copy = bench.copy(TINY_COPY_BYTES if bench.tiny else COPY_BYTES)
    return [*cases, Compared("copy 1 GiB cold" if not bench.tiny else "copy 1 MiB cold", "time", copy)]


def isolated(session: Session, compared: Sequence[Compared]) -> list[float | None]:
    """Seconds of one launch of each short case with nothing beside it, less what an empty pair of events reads.

    What is missing to this in a graph's share of one launch is overlap: the next kernel starts while the last one ends.
    """
    if session.bench.backend.name != "cuda":
        return [None] * len(compared)
    bench = Bench(session.target, session.tiny, {"sampler": "spin"})
    spin = session._replace(bench=bench)
    return [
        isolated_s(spin.measure(each.planned, bursts(bench), label="alone")) if each.kind == "short" else None
        for each in compared
    ]


def bursts(bench: Bench) -> MeasureSettings:
    """For the times of short kernels: ncu launches each of them on a device that has been idle, at the clock of such a one."""
    return bench.settings(burst_first_idle_s=1.0, burst_idle_s=0.5)


def isolated_s(measured: Measured) -> float | None:
    samples = measured.measurement.samples if measured.measurement else None
    if samples is None or measured.summary is None or "empty_pair_s" not in samples.details:
        return None
    return measured.summary.p50_s - float(samples.details["empty_pair_s"])


def profiled(session: Session, cases: Sequence[PlannedCase]) -> list[ncu.Reading | PeerFailed]:
    """What ncu reads of each case, in the cache regime of the case; or why it reads nothing."""
    if session.bench.backend.name != "cuda":
        return [PeerFailed(f"ncu profiles CUDA devices, not backend {session.bench.backend.name}") for _ in cases]
    found: dict[int, ncu.Reading | PeerFailed] = {}
    for cache in ("warm", "cold"):
        wanted = [position for position, planned in enumerate(cases) if planned.case.regime.cache == cache]
        found.update(zip(wanted, _profile(session, cache, [cases[position] for position in wanted]), strict=True))
    return [found[position] for position in range(len(cases))]


def _profile(session: Session, cache: str, cases: Sequence[PlannedCase]) -> Sequence[ncu.Reading | PeerFailed]:
    limit_s = min(NCU_LIMIT_S, session.deadline.left_s())
    try:
        readings, text = ncu.profile(session.ncu, cache, [planned.case for planned in cases], session.target, limit_s)
    except PeerFailed as reason:
        return [reason] * len(cases)
    session.record.keep(f"ncu {cache}", text)
    return readings


def row(compared: Compared, ours: Measured, theirs: ncu.Reading | PeerFailed, alone_s: float | None) -> Row:
    """One case on both sides; absent where ncu has nothing, failed where roofbench has nothing."""
    if ours.summary is None:
        return PART.lost(compared.name, ours)
    reading = theirs if isinstance(theirs, ncu.Reading) else None
    judged = compare(compared.kind, ours, reading)
    is_short, in_cycles = compared.kind == "short", compared.kind == "cycles"
    cells = (
        "cycles" if in_cycles else "time",
        f"{number(judged.difference, 1e6, 3)} us" if is_short and judged.difference is not None else percent(judged.difference),
        "2 us" if is_short else "2 %",
        number(ours.cycles, digits=7),
        number(reading.cycles if reading else None, digits=7),
        number(ours.summary.p50_s, 1e6),
        number(reading.duration_s if reading else None, 1e6),
        number(alone_s, 1e6),
        number(ours.summary.clock_hz, 1e-6),
    )
    note = str(theirs) if isinstance(theirs, PeerFailed) else _note(compared.kind, ours, theirs, alone_s)
    figures = {"ours": ours.figures(), "ours_cycles": ours.cycles, "ncu": reading._asdict() if reading else None}
    return Row(compared.name, cells, judged.verdict, {**figures, "alone_s": alone_s, "difference": judged.difference}, note)


def compare(kind: str, ours: Measured, theirs: ncu.Reading | None) -> Judged:
    """Cycles for compute-bound kernels, which the clock does not move; times for a copy and for short kernels."""
    p50_s = ours.summary.p50_s if ours.summary else None
    if kind == "cycles":
        return relative(ours.cycles, theirs.cycles if theirs else None, CYCLES_LIMIT)
    if kind == "short":
        return absolute(p50_s, theirs.duration_s if theirs else None, SHORT_LIMIT_S)
    return relative(p50_s, theirs.duration_s if theirs else None, TIME_LIMIT)


def _note(kind: str, ours: Measured, theirs: ncu.Reading, alone_s: float | None) -> str:
    """Which part of a short kernel's difference is overlap and which is ncu's own; and kernels that are not the same."""
    parts = []
    if kind == "short" and alone_s is not None and ours.summary is not None:
        overlap_s, rest_s = alone_s - ours.summary.p50_s, theirs.duration_s - alone_s
        parts.append(
            f"overlap of back-to-back launches {overlap_s * 1e6:.2f} us, ncu above an isolated launch {rest_s * 1e6:+.2f} us"
        )
    samples = ours.measurement.samples if ours.measurement else None
    kernels = tuple(samples.details.get("kernels", ())) if samples else ()
    cut_names = tuple(name[:NAME_CHARACTERS] for name in theirs.kernels)
    if kernels and kernels != cut_names:
        parts.append(f"another kernel: {' '.join(kernels)} here, {' '.join(cut_names)} under ncu")
    return "; ".join(parts)


def sustained(session: Session) -> Row:
    """8192^3 as a batch, roofbench and nvbench in turns on a device that both keep hot; medians of the pairs."""
    bench = session.bench
    gemm = square("bf16", 8192).scaled(bench.tiny)
    name = f"{gemm.title} sustained"
    planned = bench.gemm(gemm, WARM)
    absent = nvbench.why_absent(bench.backend.name)
    peer = Alternation(session, planned)
    measured = peer.without_nvbench() if absent else peer.with_nvbench()
    if measured.summary is None or measured.measurement is None or measured.measurement.samples is None:
        return PART.lost(name, measured)
    ours_s = [median(batch) for batch in batches_s(measured.measurement.samples)]
    theirs_s = [state.batch_mean_s for state in peer.states if state.batch_mean_s is not None]
    judged = relative(median(ours_s), median(theirs_s) if len(theirs_s) == PAIRS else None, BATCH_LIMIT)
    cells = (
        *("time", percent(judged.difference), "2 %", NOTHING, NOTHING),
        number(median(ours_s), 1e6),
        number(median(theirs_s) if theirs_s else None, 1e6),
        *(NOTHING, number(measured.summary.clock_hz, 1e-6)),
    )
    reasons = [absent, peer.reason, *(state.skipped for state in peer.states)]
    figures = {"ours": measured.figures(), "ours_s": ours_s, "nvbench": [state._asdict() for state in peer.states]}
    note = next((reason for reason in reasons if reason), f"nvbench's batch, {PAIRS} pairs in turns")
    return Row(name, cells, judged.verdict, {**figures, "difference": judged.difference}, note)


class Alternation:
    """Roofbench's rounds with nvbench's turns between them; a peer that fails leaves ours to go on alone."""

    def __init__(self, session: Session, planned: PlannedCase) -> None:
        self._session, self._planned = session, planned
        self.states: list[nvbench.State] = []
        self.reason = ""
        self._peer: nvbench.Nvbench | None = None

    def without_nvbench(self) -> Measured:
        bench = self._session.bench
        trial = bench.trial(self._planned, bench.settings(min_time_s=BATCH_S), rounds=PAIRS)
        return bench.carry_out(self._planned, trial, self._rounds())

    def with_nvbench(self) -> Measured:
        session = self._session
        settle_s = 0.0 if session.tiny else SETTLE_S
        with nvbench.started([self._planned.case] * PAIRS, session.target, settle_s, BATCH_OPTIONS) as self._peer:
            self._ask(self._peer.get_ready, nvbench.START_LIMIT_S)  # its start would disturb our first round
            measured = self.without_nvbench()
            try:
                self.states, content = self._peer.results(min(nvbench.END_LIMIT_S, session.deadline.left_s()))
                session.record.keep("nvbench batch", content)
            except PeerFailed as error:
                self.reason = self.reason or str(error)
        return measured

    def _rounds(self) -> Iterator[int]:
        for pair, side in turns(PAIRS):
            if side == 0:
                yield pair
            elif self._peer is not None:
                self._ask(self._peer.take_turn, nvbench.TURN_LIMIT_S)

    def _ask(self, what: Callable[[float], None], limit_s: float) -> None:
        """Ask nvbench for something, unless it has failed before."""
        if self.reason:
            return
        try:
            what(min(limit_s, self._session.deadline.left_s()))
        except PeerFailed as error:
            self.reason = str(error)


def _name(title: str, regime: Regime) -> str:
    return f"{title} {regime.cache}"


PART = Part(
    name="agreement",
    shows="the same kernels by roofbench and by Nsight Compute (single launches) and nvbench (a batch)",
    headings=("compared", "difference", "limit", "cycles", "peer's", "us", "peer's", "alone", "MHz"),
    run=run,
    foot=(
        "Cycles are p50_s x clock_hz against sm__cycles_elapsed.max; times are p50_s against gpu__time_duration.",
        "A graph's launches follow each other without a gap and overlap at their ends; ncu runs each by itself and counts",
        "its start and end. 'alone' is one launch between events behind a spin kernel, less an empty pair of events.",
    ),
)

if __name__ == "__main__":
    run_as_script(PART)
