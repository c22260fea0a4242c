"""The first thing a report says: how close each format came to its roof, all of them under one load."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from suite.outcome import Bound, Evidence
from suite.report.roofs import drawable
from suite.report.sources import NO_SOURCES, Sources, sources_of
from suite.report.trust import TRUSTED, trust_rank
from suite.report.words import case_detail, marks, percent, rate_unit, si
from suite.rows import ResultRow

BURST, SUSTAINED = "burst", "sustained"
NO_RESULT = f"no {SUSTAINED} result"
PASSED_OVER = "contended or not resolved"


class Headline(NamedTuple):
    """The best result of one format (its label) under ``load``, among ``of`` verified ones of that load.

    ``best`` is ``None`` where the format was measured in bursts alone and others were sustained.  ``burst`` is the best burst
    beside a sustained load, where there is one.  ``passed_over`` of the ``of`` were contended or not resolved.  ``sources`` are
    those of all headlines: where they differ, whose a number is has to be said.
    """

    format: str
    load: str
    best: ResultRow | None
    burst: ResultRow | None
    of: int
    passed_over: int
    sources: Sources = NO_SOURCES

    @property
    def source(self) -> str:
        """``xla, emulated``, of that what is not the same of all headlines; else empty."""
        return self.sources.of(self.best) if self.best is not None and self.sources.several else ""

    @property
    def chosen_as(self) -> str:
        """``best of 6 sustained, 1 passed over: contended or not resolved``, or ``best of 4 sustained, every one of them
        contended or not resolved``.
        """
        if self.best is None:
            return ""
        if not _trusted(self.best):
            doubt = f"every one of them {PASSED_OVER}" if self.of > 1 else PASSED_OVER
            return f"best of {self.of} {self.load}, {doubt}"
        return f"best of {self.of} {self.load}" + (
            f", {self.passed_over} passed over: {PASSED_OVER}" if self.passed_over else ""
        )

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


Counts = Mapping[tuple[str, str, bool], int]  # of results by format label, load, and whether they are trusted


def headlines(rows: Sequence[ResultRow], counts: Counts | None = None) -> tuple[Headline, ...]:
    """One headline a format with its scaling, what is trusted most first, then by the fraction of spec.

    Only measured results count, all under one load: sustained where any was, for a burst is over before the clock comes down
    and no rival of what lasts.  Results bound by compute come before others, which tell of memory or launches.  Marks pass
    nobody over, a device at its power limit included, but for two: other work on the device, and a median that is not
    resolved; those are a headline only where nothing else is, one that is not resolved only where all are.

    ``counts`` are of all the results that ``rows`` are the best of; ``None`` where ``rows`` are all of them.
    """
    measured = [row for row in rows if drawable(row) and row.evidence == Evidence.MEASURED]
    load = SUSTAINED if any(row.load == SUSTAINED for row in measured) else BURST
    labels = sorted({row.format_label for row in measured})
    known = counts if counts is not None else Counter((row.format_label, row.load, _trusted(row)) for row in measured)
    found = [_headline(label, load, [row for row in measured if row.format_label == label], known) for label in labels]
    sources = sources_of(row for each in found for row in (each.best, each.burst) if row is not None)
    return tuple(each._replace(sources=sources) for each in sorted(found, key=_place, reverse=True))


def about(found: Sequence[Headline], several_runs: bool = False) -> str:
    """How the headlines of one device were chosen, of one run or ``several_runs``."""
    load = "sustained load" if any(each.load == SUSTAINED for each in found) else "bursts: nothing was sustained"
    of = ", of all the runs shown" if several_runs else ""
    return (
        f"Best verified result of each format under {load}{of}, of those bound by compute where there are any. Contended "
        "results and those whose interval is wider than twice their median are passed over; where a format has nothing else, "
        "the card shows the best of them and says so."
    )


def rate(row: ResultRow) -> str:
    """Useful operations per second."""
    return si(row.flop_s, rate_unit(row.format))


def _headline(name: str, load: str, rows: Sequence[ResultRow], counts: Counts) -> Headline:
    own = [row for row in rows if row.load == load]
    bursts = [row for row in rows if row.load == BURST] if load != BURST else []
    best = _best(own)
    passed_over = counts.get((name, load, False), 0) if best and _trusted(best) else 0
    of = sum(counts.get((name, load, is_trusted), 0) for is_trusted in (False, True))
    return Headline(name, load, best, _best(bursts), of, passed_over)


def _best(rows: Sequence[ResultRow]) -> ResultRow | None:
    if not rows:
        return None
    most = max(map(trust_rank, rows))
    trusted = [row for row in rows if trust_rank(row) == most]
    computing = [row for row in trusted if row.bound == Bound.COMPUTE]
    best = max(computing or trusted, key=_order)
    # The share of what passed a peak that is only derived is not told: it is the best nonetheless.
    fastest = max(computing, key=lambda row: row.flop_s or 0.0, default=best)
    return fastest if fastest.fractions.spec is None else best


def _which(row: ResultRow) -> tuple[str, str]:
    """What of a case two loads may share: its workload with data and switches, and who computes it."""
    return case_detail(row), row.implementation


def _trusted(row: ResultRow) -> bool:
    return trust_rank(row) == TRUSTED


def _place(headline: Headline) -> tuple[int, float, float]:
    row = headline.best
    return (trust_rank(row) if row else -1, *_order(row))


def _order(row: ResultRow | None) -> tuple[float, float]:
    """By the share of spec, then by the rate; what has neither comes last."""
    if row is None:
        return -2.0, 0.0
    spec = row.fractions.spec
    return (-1.0 if spec is None else spec), row.flop_s or 0.0
