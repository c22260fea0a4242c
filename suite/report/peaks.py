"""What the searches of a run found, by what is stored of it: the fastest of each format and load, and whether it is a roof."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from suite.case import USUAL_DATA, sizes_of
from suite.outcome import WITH_ROOFS, Evidence, Outcome
from suite.report.printable import clipped, printable
from suite.report.words import CONTENDED, counted, marks, rate_unit, resolved, si
from suite.rows import ResultRow, RunInfo
from suite.search.name import key_of, subject_words
from suite.search.settings import SEARCHED
from suite.search.standings import Standings

SAME_RATE = 1e-9  # relative: what a rate may lose on its way through a file


class Source(Protocol):
    """A store: its best verified operations per second by (device uid, pipe, load), and the files kept with a run."""

    def empirical_roofs(self, evidence: Evidence) -> Mapping[Any, float]: ...

    def artifacts(self, run: str | None = None) -> Mapping[str, bytes]: ...


class Peak(NamedTuple):
    """What one search found under one load.

    ``of`` are its results; ``best`` is the fastest of those that may be a roof, or where none may the fastest that was timed,
    ``None`` where none was.  ``verdict`` says whether it is a roof, and if not why.  ``looked_at`` shapes were looked at for
    ``looking_s`` seconds; ``None`` where that is not kept.
    """

    title: str
    load: str
    of: tuple[ResultRow, ...]
    best: ResultRow | None
    sets_roof: bool
    verdict: str
    looked_at: int | None
    looking_s: float | None

    @property
    def line(self) -> str:
        """``peak bf16 sustained 696 TFLOP/s by 8192x1024x16384 (of 63 shapes looked at in 10 s), sets the empirical roof``."""
        of = ""
        if self.looked_at and self.looking_s is not None:
            of = f" (of {counted(self.looked_at, 'shape')} looked at in {self.looking_s:.3g} s)"
        found = f" {si(self.best.flop_s, rate_unit(self.best.multiplied))} by {_shape(self.best)}" if self.best else ": none"
        return clipped(printable(f"peak {self.title} {self.load}{found}{of}, {self.verdict}"))

    def to_json(self, row: ResultRow) -> dict[str, Any]:
        """What this says of one of its results."""
        return {
            "is_best": self.best is row,
            "sets_roof": self.sets_roof,
            "verdict": self.verdict,
            "shapes_looked_at": self.looked_at,
            "looking_s": self.looking_s,
        }


def peaks(source: Source, run: RunInfo, rows: Sequence[ResultRow]) -> list[Peak]:
    """One for each search and load that has results, in their order; none of a run without a search."""
    if run.config.get("search") is None:
        return []
    groups: dict[tuple[int, tuple[str, ...], str], list[ResultRow]] = {}
    for row in rows:
        if row.job == SEARCHED:
            groups.setdefault((row.device_slot, _words(row), row.load), []).append(row)
    roofs = {each: source.empirical_roofs(each) for each in WITH_ROOFS if any(row.evidence == each for row in rows)}
    kept = source.artifacts(run.run)
    titles = _titles([(slot, words) for slot, words, _ in groups])
    return [
        _peak(titles[slot, words], load, of, roofs, _standings(kept.get(key_of(f"{SEARCHED} {' '.join(words)}", slot))))
        for (slot, words, load), of in groups.items()
    ]


def peak_lines(source: Source, run: RunInfo, rows: Sequence[ResultRow]) -> Iterator[str]:
    """What a person reads of the searches of a run, a line for each format and load; nothing of a run without."""
    yield from (each.line for each in peaks(source, run, rows))


def stalled_lines(source: Source, run: RunInfo) -> Iterator[str]:
    """Searches that came no further in the last part of a run: it ended before one look counted."""
    if run.config.get("search") is None:
        return
    for name, kept in source.artifacts(run.run).items():
        standings = _standings(kept)
        if standings is not None and standings.stalled:
            yield printable(
                f"{name} came no further: starting, making ready and warming up took all of max_time_s, of which it needs more"
            )


def _peak(
    title: str,
    load: str,
    of: Sequence[ResultRow],
    roofs: Mapping[Evidence, Mapping[Any, float]],
    standings: Standings | None,
) -> Peak:
    timed = [row for row in of if row.outcome == Outcome.OK and row.flop_s is not None]
    best = max(timed, key=lambda row: (not _no_roof(row), row.flop_s or 0.0), default=None)
    looked = None
    if standings is not None:
        looked = sum(not each.fallen or bool(each.standings) for each in standings.contenders)
    roof = None if best is None else roofs.get(Evidence(best.evidence), {}).get((best.device_uid, best.pipe, best.load))
    sets_roof, verdict = (False, f"sets no roof: {_endings(of)}") if best is None else _verdict(best, roof)
    return Peak(title, load, tuple(of), best, sets_roof, verdict, looked, standings.spent_s if standings else None)


def _verdict(best: ResultRow, roof: float | None) -> tuple[bool, str]:
    """Whether the best is the roof of its device, and in words; with the marks that say how far to trust it."""
    if why := _no_roof(best):
        return False, f"sets no roof: {why}"
    doubt = f" ({'; '.join(marks(best))})" if marks(best) else ""
    if roof is None or best.flop_s is None:
        return False, f"sets no roof: the store takes it for none{doubt}"
    if best.flop_s < roof * (1 - SAME_RATE):
        return False, f"under the empirical roof of {si(roof, rate_unit(best.multiplied))} that another result sets{doubt}"
    return True, f"sets the empirical roof{doubt}"


def _no_roof(row: ResultRow) -> str:
    """Why a result that was timed is not taken for what its device can do; empty where it may be."""
    whys = (
        (f"of {row.distribution} data", row.distribution != USUAL_DATA),
        ("not resolved", not resolved(row)),
        (CONTENDED, row.contended is True),
    )
    return ", ".join(why for why, holds in whys if holds)


def _endings(of: Sequence[ResultRow]) -> str:
    """How results ended of which none was timed: in words where all ended alike, else how many did how."""
    reasons = {(row.outcome, row.reason) for row in of}
    if len(reasons) == 1:
        ((outcome, reason),) = reasons
        return f"{outcome.replace('_', ' ')}{f': {reason}' if reason else ''}"
    ended = [row.outcome for row in of]
    return ", ".join(f"{ended.count(outcome)} {outcome.replace('_', ' ')}" for outcome in dict.fromkeys(ended))


def _titles(searches: Sequence[tuple[int, tuple[str, ...]]]) -> dict[tuple[int, tuple[str, ...]], str]:
    """The format of each, and what else tells those of one format apart."""
    found = {}
    for slot, words in searches:
        alike = [set(others) for _, others in searches if others[0] == words[0]]
        shared = set.intersection(*alike)
        apart = [word for word in words[1:] if word not in shared]
        on = [f"on device {slot}"] if len({each for each, _ in searches}) > 1 else []
        found[slot, words] = " ".join([words[0], *apart, *on])
    return found


def _words(row: ResultRow) -> tuple[str, ...]:
    return tuple(subject_words(row.format_label, row.implementation, row.params, row.distribution, row.switches))


def _shape(row: ResultRow) -> str:
    return sizes_of(row.params)[0]


def _standings(kept: bytes | None) -> Standings | None:
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        return None if kept is None else Standings.from_json(json.loads(kept))
    return None
