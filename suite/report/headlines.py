"""The first thing a report says: how close each format came to its roof, all of them under one load."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from suite.outcome import Bound, Evidence
from suite.report.roofs import drawable
from suite.report.sources import NO_SOURCES, Sources, sources_of
from suite.report.trust import TRUSTED, trust_rank
from suite.report.words import CONTENDED, NOT_RESOLVED, bytes_rate, case_detail, marks, percent, rate_unit, si
from suite.rows import ResultRow

BURST, SUSTAINED = "burst", "sustained"
NO_RESULT = f"no {SUSTAINED} result"
PASSED_OVER = "contended or not resolved"
_TIERS: Mapping[str, int] = {Bound.COMPUTE: 2, Bound.MEMORY: 1}


class Headline(NamedTuple):
    """The best result of one format (its label) under ``load``, among the ``of`` verified ones of that load that qualify.

    ``best`` is ``None`` where the format was measured in bursts alone and others were sustained.  ``burst`` is the best burst
    beside a sustained load, where there is one.  Not among the ``of``, and so perhaps faster: ``passed_over``, which are less
    to be trusted than the best, and ``other_bound``, which come behind it for what bounds them.  ``sources`` are those of all
    headlines: where they differ, whose a number is has to be said.
    """

    format: str
    load: str
    best: ResultRow | None
    burst: ResultRow | None
    of: int
    passed_over: int
    other_bound: int = 0
    sources: Sources = NO_SOURCES

    @property
    def source(self) -> str:
        """``xla, emulated``, of that what is not the same of all headlines; else empty."""
        return self.sources.of(self.best) if self.best is not None and self.sources.several else ""

    @property
    def chosen_as(self) -> str:
        """``best of 5 sustained; passed over: 1 contended or not resolved, 2 not bound by compute``, or ``best of 3 sustained,
        all contended; passed over: 1 not resolved``.
        """
        if self.best is None:
            return ""
        rank = trust_rank(self.best)
        doubt = (NOT_RESOLVED, CONTENDED, "")[rank]
        kind = f", {'all ' if self.of > 1 else ''}{doubt}" if doubt else ""
        why = PASSED_OVER if rank == TRUSTED else NOT_RESOLVED
        passed = [f"{self.passed_over} {why}"] if self.passed_over else []
        passed += [f"{self.other_bound} not bound by {self.best.bound}"] if self.other_bound else []
        return f"best of {self.of} {self.load}{kind}" + (f"; passed over: {', '.join(passed)}" if passed else "")

    @property
    def second(self) -> str:
        """The burst in one line, with its case where that is another and its marks; empty where there is none."""
        row = self.burst
        if row is None:
            return ""
        share = [percent(row.fractions.spec)] if row.fractions.spec is not None else []
        same = self.best is not None and _which(row) == _which(self.best)
        case = [] if same else [case_detail(row), f"{row.bound or 'unknown'} bound", f"by {row.implementation}"]
        source = [self.sources.of(row)] if self.sources.several else []
        return f"in a burst: {', '.join([*share, rate(row), *case, *source, row.regime, *marks(row)])}"


class Kind(NamedTuple):
    """What decides which results a headline is the best of: ``trust`` as of ``trust_rank``, ``tier`` as of ``bound_tier``."""

    label: str
    load: str
    trust: int
    tier: int


Counts = Mapping[Kind, int]  # of results


def headlines(rows: Sequence[ResultRow], counts: Counts | None = None) -> tuple[Headline, ...]:
    """One headline a format with its scaling, what is trusted most first, then by the fraction of spec.

    Only measured results count, all under one load: sustained where any was, for a burst is over before the clock comes down
    and no rival of what lasts.  Results bound by compute come before those bound by memory, and these before others, which tell
    of caches or launches.  Those bound by memory are ranked by bytes per second, as by operations the slowest use of memory is
    first that does the most with a byte; the others by share and operations.  Marks pass nobody over, a device at its power
    limit included, but for two: other work on the device, and a median that is not resolved; those are a headline only where
    nothing else is, one that is not resolved only where all are.

    ``counts`` are of all the results that ``rows`` are the best of; ``None`` where ``rows`` are all of them.
    """
    measured = [row for row in rows if drawable(row) and row.evidence == Evidence.MEASURED]
    load = SUSTAINED if any(row.load == SUSTAINED for row in measured) else BURST
    labels = sorted({row.format_label for row in measured})
    known = counts if counts is not None else Counter(map(_kind, measured))
    found = [_headline(label, load, [row for row in measured if row.format_label == label], known) for label in labels]
    sources = sources_of(row for each in found for row in (each.best, each.burst) if row is not None)
    return tuple(each._replace(sources=sources) for each in sorted(found, key=_place, reverse=True))


def about(found: Sequence[Headline], several_runs: bool = False) -> str:
    """How the headlines of one device were chosen, of one run or ``several_runs``."""
    load = "sustained load" if any(each.load == SUSTAINED for each in found) else "bursts: nothing was sustained"
    of = ", of all the runs shown" if several_runs else ""
    return (
        f"Best verified result of each format under {load}{of}, of those bound by compute where there are any; else of those "
        "bound by memory the one of most bytes per second, which is then the rate that is told. Contended "
        "results and those whose interval is wider than twice their median are passed over; where a format has nothing else, "
        "the card shows the best of them and says so. What was passed over is counted apart, and may be faster."
    )


def rate(row: ResultRow) -> str:
    """What a result is ranked by: compulsory bytes per second where memory bounds it, else useful operations per second."""
    return bytes_rate(row) if row.bound == Bound.MEMORY else si(row.flop_s, rate_unit(row.multiplied))


def bound_tier(bound: str | None) -> int:
    """What arithmetic bounds before what memory does, and both before what tells of caches, links or launches."""
    return _TIERS.get(bound or "", 0)


def _headline(name: str, load: str, rows: Sequence[ResultRow], counts: Counts) -> Headline:
    own = [row for row in rows if row.load == load]
    bursts = [row for row in rows if row.load == BURST] if load != BURST else []
    best = _best(own)
    if best is None:
        return Headline(name, load, None, _best(bursts), 0, 0)
    chosen = _kind(best)
    alike = {kind: count for kind, count in counts.items() if (kind.label, kind.load) == (name, load)}
    passed_over = sum(count for kind, count in alike.items() if kind.trust < chosen.trust)
    other_bound = sum(count for kind, count in alike.items() if kind.trust == chosen.trust and kind.tier < chosen.tier)
    return Headline(name, load, best, _best(bursts), alike.get(chosen, 0), passed_over, other_bound)


def _kind(row: ResultRow) -> Kind:
    return Kind(row.format_label, row.load, trust_rank(row), bound_tier(row.bound))


def _best(rows: Sequence[ResultRow]) -> ResultRow | None:
    if not rows:
        return None
    first = max((trust_rank(row), bound_tier(row.bound)) for row in rows)
    rivals = [row for row in rows if (trust_rank(row), bound_tier(row.bound)) == first]
    if rivals[0].bound == Bound.MEMORY:
        return max(rivals, key=lambda row: row.bytes_s or 0.0)
    best = max(rivals, key=_order)
    if rivals[0].bound != Bound.COMPUTE:
        return best
    # The share of what passed a peak that is only derived is not told: it is the best nonetheless.
    fastest = max(rivals, key=lambda row: row.flop_s or 0.0)
    return fastest if fastest.fractions.spec is None else best


def _which(row: ResultRow) -> tuple[str, str]:
    """What of a case two loads may share: its workload with data and switches, and who computes it."""
    return case_detail(row), row.implementation


def _place(headline: Headline) -> tuple[int, float, bool, float]:
    """By trust and the share of spec; without a share rates of operations before those of bytes, each by its own."""
    row = headline.best
    if row is None:
        return -1, -2.0, False, 0.0
    share, _ = _order(row)
    is_moving = row.bound == Bound.MEMORY
    return trust_rank(row), share, not is_moving, (row.bytes_s if is_moving else row.flop_s) or 0.0


def _order(row: ResultRow) -> tuple[float, float]:
    """By the share of spec, then by operations per second; what has neither comes last."""
    spec = row.fractions.spec
    return (-1.0 if spec is None else spec), row.flop_s or 0.0
