"""Economy: the time that sampling takes for the same 0.5 % target, over the fixed list of 20 matrix products.

Both sides leave their warm-up out: roofbench's time is that of the calls that took samples, nvbench's that of its cold
measurement and its batch, as it reports them.
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from suite.measure.timeline import sampling_s
from suite.planned import PlannedCase
from tests.peers import nvbench
from tests.peers.bench import COLD, NO_TIME, Measured
from tests.peers.child import PeerFailed
from tests.peers.gemms import TWENTY
from tests.peers.judge import at_most
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number

LIMIT = 0.5
GROUP = 10  # cases to one process of nvbench: it writes its results at its end, so one that is lost takes them along
PAIR_S = 25.0  # what a case may take on both sides, the worst by either's own limits left aside


class Pair(NamedTuple):
    """One case on both sides; ``theirs`` is why there is nothing, where there is nothing."""

    name: str
    ours: Measured
    theirs: nvbench.State | str

    @property
    def sampling_s(self) -> float | None:
        """What our samples took."""
        samples = self.ours.measurement.samples if self.ours.measurement else None
        return sampling_s(samples) if samples else None

    @property
    def half_width(self) -> float | None:
        """Of our interval, relative to the median."""
        interval = self.ours.measurement.interval_s if self.ours.measurement else None
        return (interval[1] - interval[0]) / 2 / self.ours.summary.p50_s if interval and self.ours.summary else None

    @property
    def ratio(self) -> float | None:
        """Our sampling time over nvbench's; ``None`` where a side has none."""
        theirs_s = self.theirs.sampling_s if isinstance(self.theirs, nvbench.State) else None
        return self.sampling_s / theirs_s if self.sampling_s is not None and theirs_s else None


def run(session: Session) -> None:
    """Case by case, ours and then nvbench's, a group of cases to one process of nvbench; then the median of the ratios."""
    gemms = [gemm.scaled(session.tiny) for gemm in TWENTY]
    pairs: list[Pair] = []
    for first in range(0, len(gemms), GROUP):
        group = gemms[first : first + GROUP]
        cases = [session.bench.gemm(gemm, COLD) for gemm in group]
        both = zip(group, *sampled(session, cases), strict=True)
        pairs += [Pair(gemm.title, ours, theirs) for gemm, ours, theirs in both]
        for pair in pairs[first:]:
            session.record.add(row(pair))
    session.record.add(conclusion(pairs))


def sampled(session: Session, cases: Sequence[PlannedCase]) -> tuple[list[Measured], Sequence[nvbench.State | str]]:
    """Measure a group of cases on both sides; an nvbench that is absent or fails leaves ours to go on alone."""
    absent = nvbench.why_absent(session.bench.backend.name)
    if absent:
        return [session.measure(planned) for planned in cases], [absent] * len(cases)
    ours: list[Measured] = []
    theirs: Sequence[nvbench.State | str]
    try:
        with nvbench.started([planned.case for planned in cases], session.target) as peer:
            peer.get_ready(nvbench.START_LIMIT_S)
            for planned in cases:
                if session.deadline.left_s() < PAIR_S:
                    break
                ours.append(session.measure(planned))
                peer.take_turn(nvbench.TURN_LIMIT_S)
            theirs, content = peer.results(nvbench.END_LIMIT_S)
            session.record.keep(f"nvbench from {cases[0].case.title}", content)
    except PeerFailed as reason:
        theirs = [str(reason)] * len(cases)
        ours += [session.measure(planned) for planned in cases[len(ours) :]]
    ours += [Measured(planned, None, None, NO_TIME) for planned in cases[len(ours) :]]
    return ours, theirs


def row(pair: Pair) -> Row:
    """One case; only the median of all is judged."""
    if pair.ours.summary is None:
        return PART.lost(pair.name, pair.ours)
    theirs = pair.theirs if isinstance(pair.theirs, nvbench.State) else None
    cells = (
        f"{number(pair.sampling_s, digits=3)} s",
        NOTHING if pair.half_width is None else f"{pair.half_width:.2%}",
        number(theirs.cold_wall_s if theirs else None, digits=3),
        number(theirs.batch_wall_s if theirs else None, digits=3),
        number(pair.ratio, digits=3),
        number(pair.ours.summary.p50_s, 1e6),
        number(theirs.cold_median_s if theirs else None, 1e6),
    )
    figures = {"sampling_s": pair.sampling_s, "half_width": pair.half_width, "ratio": pair.ratio}
    peer = {"ours": pair.ours.figures(), "nvbench": theirs._asdict() if theirs else None}
    note = pair.theirs if isinstance(pair.theirs, str) else pair.theirs.skipped
    verdict = Verdict.INFO if pair.ratio is not None else Verdict.ABSENT
    return Row(pair.name, cells, verdict, {**figures, **peer}, note)


def conclusion(pairs: Sequence[Pair]) -> Row:
    """The median of the ratios against the limit."""
    ratios = [pair.ratio for pair in pairs if pair.ratio is not None]
    middle = median(ratios) if ratios else None
    cells = (*[NOTHING] * 4, number(middle, digits=3), "limit 0.5", NOTHING)
    note = f"{len(ratios)} of {len(pairs)} cases"
    return Row("median ratio", cells, at_most(middle, LIMIT), {"median_ratio": middle, "cases": len(ratios)}, note)


PART = Part(
    name="economy",
    shows="seconds of sampling for a 0.5 % target, warm-up excluded",
    headings=("roofbench", "half-width", "nvbench cold", "its batch", "ratio", "p50 us", "its median us"),
    run=run,
)

if __name__ == "__main__":
    run_as_script(PART)
