"""Comparing two runs of one store or of two: the only questions that a comparison asks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from suite.backend import Fact
from suite.compare.comparison import Comparison, Raw, compare
from suite.compare.noise import noise_of, noise_of_cycles
from suite.compare.pairing import By, pair
from suite.compare.repeats import SelftestSource, known_repeats
from suite.compare.side import Entry, Looked, Side
from suite.compare.verdict import MIN_EFFECT, refuse_effect
from suite.errors import UsageError
from suite.measurement import SampleSet
from suite.rows import DeviceRow, ResultRow, RunInfo

AT_ONCE = 200  # results whose samples are held at a time


class Sampled(NamedTuple):
    """The samples of one result, and what its kernel says of itself."""

    result_id: int
    samples: SampleSet
    description: Mapping[str, object]


class Source(SelftestSource, Protocol):
    """The questions; ``suite.store.comparing.ComparisonReader`` answers them."""

    def resolve(self, run: str | None = None) -> RunInfo: ...

    def results(self, run: str) -> Sequence[ResultRow]: ...

    def devices(self, run: str) -> Sequence[DeviceRow]: ...

    def environments(self, run: str) -> Sequence[Mapping[str, Mapping[str, Fact]]]: ...

    def method_versions(self, run: str) -> Mapping[int, int]: ...

    def sampled(self, result_ids: Sequence[int]) -> Sequence[Sampled]: ...


class Place(NamedTuple):
    """A run by its id, the beginning of one or ``latest``, in a store."""

    source: Source
    run: str


def compare_runs(a: Place, b: Place, by: By | None = None, min_effect: float = MIN_EFFECT) -> Comparison:
    """Compare run B with run A.

    ``by`` says what two results must have in common, or ``None`` to choose; ``min_effect`` is the least difference that
    matters, 0 to below 1.  Raises ``UsageError`` for a run compared with itself and for a ``min_effect`` that is none, and
    what ``resolve`` raises.  That nothing could be compared is for the caller to see: then there are no ``cases``.
    """
    refuse_effect(min_effect)
    infos = a.source.resolve(a.run), b.source.resolve(b.run)
    _refuse_itself(*infos)
    one, other = side_of(a.source, infos[0]), side_of(b.source, infos[1])
    pairing = pair(one, other, by)
    known = known_repeats((a.source, b.source), one.chips | other.chips)
    raw = (
        looked(a.source, [each.a.row.result_id for each in pairing.pairs]),
        looked(b.source, [each.b.row.result_id for each in pairing.pairs]),
    )
    return compare(one, other, pairing, raw, known, min_effect)


def side_of(source: Source, info: RunInfo) -> Side:
    """One side of a comparison, without raw samples."""
    rows = source.results(info.run)
    versions = source.method_versions(info.run)  # of a run that goes on there may be more than rows by now, never fewer
    entries = [Entry(row, versions[row.result_id]) for row in rows]
    return Side(info, source.devices(info.run), source.environments(info.run), entries)


def looked(source: Source, result_ids: Iterable[int]) -> Raw:
    """What the raw measurements of results say, by their ids; the samples are looked at and let go of."""
    wanted = list(dict.fromkeys(result_ids))
    parts = (wanted[start : start + AT_ONCE] for start in range(0, len(wanted), AT_ONCE))
    return {
        each.result_id: Looked(noise_of(each.samples), each.description, noise_of_cycles(each.samples))
        for part in parts
        for each in source.sampled(part)
    }


def _refuse_itself(a: RunInfo, b: RunInfo) -> None:
    """A run that was merged into another store is the same run there."""
    if (a.run, a.started_at) == (b.run, b.started_at):
        raise UsageError(
            f"run {a.run} is both A and B: nothing would differ; name two runs, `roofbench show --runs` lists them"
        )
