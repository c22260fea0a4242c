"""Implementations side by side: the same case computed in several ways on one device, by however many backends and runs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from suite.case import unusual_data
from suite.outcome import Outcome
from suite.report.speed import Speed, speed, times_words
from suite.report.trust import trust_rank
from suite.report.words import doubtful, marks, rate_unit, resolved, short_marks, si, timing, variation, workload_title
from suite.rows import ResultRow

TITLE = "Implementations side by side"
ABOUT = (
    "The same case computed in several ways on one device, the fastest verified way first, and last what is in doubt: not "
    "resolved, or contended. The speed is relative to the first, with its 95 % interval; what that does not tell apart, or "
    "less than 1 %, is called alike. Of several that lead, the interval of their lead is one that holds for each. Where one in "
    "doubt reads faster than the first, it is in doubt which is fastest: other work on the device makes nothing faster, and "
    "what is not resolved may be anything."
)
TELLING = 0.01  # two runs on a quiet device agree within this
_DOUBTS = ("not resolved", "no interval", "one sample", "contended")
_NOT_CONTESTED = ("calibration", "collective")  # base figures; collectives stand beside each other in curves of their own


class Way(NamedTuple):
    """One way to compute the case: its result, its name among the others, and how many times as fast it is as the first."""

    row: ResultRow
    name: str
    speed: Speed

    @property
    def rate(self) -> str:
        """What the case is judged by: operations per second, or bytes where it has no arithmetic."""
        if self.row.flop_s:
            return si(self.row.flop_s, rate_unit(self.row.multiplied))
        return si(self.row.bytes_s, "B/s")

    @property
    def time(self) -> str:
        return timing(self.row)

    @property
    def marks(self) -> str:
        return "; ".join(marks(self.row))


@dataclass(frozen=True, slots=True)
class Contest:
    """One case on one device; ``ways`` fastest first, those in doubt behind the others; ``alike`` of them lead together.

    ``untimed`` says of the others how they ended.
    """

    ways: tuple[Way, ...]
    alike: int
    untimed: tuple[str, ...]

    @property
    def first(self) -> ResultRow:
        return self.ways[0].row

    @property
    def device(self) -> str:
        return self.first.device

    @property
    def faster(self) -> tuple[Way, ...]:
        """Those in doubt that read faster than a first that is not, the fastest reading first."""
        return () if untold(self.first) else tuple(way for way in self.ways if untold(way.row) and way.speed.times > 1)

    @property
    def leaders(self) -> str:
        """Names of those that lead; where it is in doubt which is fastest, of those that read as fast or faster."""
        names = ", ".join(way.name for way in (*self.faster, *self.ways[: self.alike]))
        return f"in doubt: {names}" if self.faster or untold(self.first) else names

    @property
    def next(self) -> Way | None:
        """The fastest of those that the leaders are told apart from; one in doubt only where no other is."""
        return self.ways[self.alike] if self.alike < len(self.ways) else None

    @property
    def lead(self) -> Speed | None:
        """How many times as fast the first is as the next; ``None`` where there is no next.

        Where several lead, the interval is one that holds for each of them: those of all of them together.
        """
        if self.next is None:
            return None
        found = [_speed(way.row, self.next.row) for way in self.ways[: self.alike]]
        ends = [end for each in found for end in each.interval or ()]
        is_known = all(each.interval for each in found)
        return Speed(found[0].times, (min(ends), max(ends)) if is_known else None)

    def titled(self, several_devices: bool) -> str:
        """The title, with the device where there are several."""
        return f"{self.title}, {self.device}" if several_devices else self.title

    @property
    def title(self) -> str:
        parts = f"{workload_title(self.first)} {self.first.format_label}", self.first.regime
        return ", ".join([*parts, *unusual_data(self.first.distribution)])

    @property
    def verdict(self) -> str:
        """Who is fastest, in a sentence: ``triton (cuda) is fastest, 1.03 (1.02 to 1.04) times as fast as library (xla)``.

        Of several, ``triton (cuda) and library (cuda) are alike, each 1.02 to 1.04 times as fast as library (xla)``.
        Of those in doubt it says what they read, first of those that read faster: ``in doubt: library (cpu) reads 1.42 times as
        fast as naive (cpu), although contended; naive (cpu) is fastest of those not in doubt``.
        """
        behind = self.next
        said = self._leading
        if behind and self.lead and not untold(behind.row):
            times = self.lead.each_words if self.alike > 1 else self.lead.words
            said += f", {times} times as fast as {behind.name}"
        faster = [_reading(way, self.ways[0].name) for way in self.faster]
        slower = [_reading(way) for way in self.ways[1:] if untold(way.row) and way not in self.faster]
        return "; ".join([*([f"in doubt: {'; '.join(faster)}"] if faster else []), said, *slower])

    @property
    def _leading(self) -> str:
        leaders = [way.name for way in self.ways[: self.alike]]
        if untold(self.first):
            return f"{leaders[0]} reads fastest, and is in doubt: {_doubts(self.first)}"
        if len(leaders) > 1:
            return f"{', '.join(leaders[:-1])} and {leaders[-1]} are alike"
        is_known_of_all = not any(untold(way.row) for way in self.ways)
        return f"{leaders[0]} is fastest{'' if is_known_of_all else ' of those not in doubt'}"


def untold(row: ResultRow) -> bool:
    """Whether it cannot be told from a median how fast something is: it is not resolved, or others held the device.

    One that is not resolved may be faster or slower than it reads, one that is contended is as fast as it reads or faster.  One
    that did not converge, or whose load did not settle, has an interval that says how well it is known; throttled is what a
    sustained load is at its limit of power, and makes nothing faster either.
    """
    return not resolved(row) or row.contended is True


def _reading(way: Way, than: str = "") -> str:
    """What one in doubt reads.  A contended one may be faster than that, and never is slower."""
    compared = f" as {than}" if than else ""
    said = _doubts(way.row)
    is_faster_still = way.speed.times > 1 and resolved(way.row)
    return f"{way.name} reads {times_words(way.speed.times)} times as fast{compared}, {'although ' * is_faster_still}{said}"


def _doubts(row: ResultRow) -> str:
    return ", ".join(mark for mark in short_marks(row).split(", ") if mark.startswith(_DOUBTS))


def contests(rows: Iterable[ResultRow]) -> tuple[Contest, ...]:
    """Every case among ``rows`` that two ways or more have timed: the largest first, of as large ones in the order of rows.

    Of a way's several results the most trusted counts, of those the newest.
    """
    groups: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in rows:
        if row.job not in _NOT_CONTESTED:
            key = (row.device_uid, row.job, row.workload_key, row.distribution, row.evidence, row.regime)
            groups.setdefault(key, []).append(row)
    found = (_contest(group) for group in groups.values())
    return tuple(sorted((each for each in found if each), key=lambda each: (-each.first.flops, -each.first.compulsory_bytes)))


def _contest(rows: Sequence[ResultRow]) -> Contest | None:
    ways: dict[tuple[str, str, str], ResultRow] = {}
    for row in rows:
        key = (row.implementation, row.backend, json.dumps(row.switches, sort_keys=True, default=str))
        if row.p50_s and row.outcome == Outcome.OK and (key not in ways or _standing(row) >= _standing(ways[key])):
            ways[key] = row
    if len({key[:2] for key in ways}) < 2:
        return None
    ranked = sorted(ways.values(), key=lambda row: (untold(row), row.p50_s))
    names = dict(zip(map(id, ways.values()), _names(ways), strict=True))
    placed = tuple(Way(row, names[id(row)], _speed(row, ranked[0])) for row in ranked)
    return Contest(placed, _alike(placed), tuple(_untimed(rows, ways)))


def _speed(row: ResultRow, other: ResultRow) -> Speed:
    """Of two that take part, which only what was timed does."""
    found = speed(row, other)
    assert found is not None, "a way has a time"
    return found


def _standing(row: ResultRow) -> tuple[int, bool, str]:
    return trust_rank(row), not doubtful(row), row.finished_at


def _names(ways: Mapping[tuple[str, str, str], ResultRow]) -> Iterator[str]:
    """Implementation and backend, with switches where those two do not tell one way from another."""
    known = [key[:2] for key in ways]
    for key, row in ways.items():
        switches = variation(row) if known.count(key[:2]) > 1 else ""
        yield f"{row.implementation} ({row.backend}) {switches}".rstrip()


def _alike(ways: Sequence[Way]) -> int:
    """How many of the first cannot be told from the fastest; one in doubt is not told from anything, and leads nobody."""
    count = 1
    for way in ways[1:]:
        if untold(way.row) or way.speed.interval is None:
            break
        _low, high = way.speed.interval
        if high < 1 and way.speed.times < 1 - TELLING:
            break
        count += 1
    return count


def _untimed(rows: Sequence[ResultRow], ways: Mapping[tuple[str, str, str], ResultRow]) -> Iterator[str]:
    timed = {key[:2] for key in ways}
    endings: dict[tuple[str, str], str] = {}
    for row in rows:
        if (row.implementation, row.backend) not in timed:
            endings[row.implementation, row.backend] = row.outcome.replace("_", " ")
    for (implementation, backend), ended in endings.items():
        yield f"{implementation} ({backend}): {ended}"
