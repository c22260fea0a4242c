"""What selftests say of the devices that are compared: how far their runs differ where nothing changed, or why none tells."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from suite.compare.spread import Chip, Repeats
from suite.selftest.record import Selftest
from suite.selftest.usable import Standing, standing

Refused = Mapping[Chip, Standing]  # of the devices whose latest selftest is not used


class SelftestSource(Protocol):
    """A store's selftests of a device."""

    def selftests(self, device_uid: str | None = None) -> Sequence[Selftest]: ...


class Known(NamedTuple):
    """The devices' repeatabilities, whichever store has them, and the devices whose latest selftest tells none."""

    repeats: Repeats
    refused: Refused


def known_repeats(sources: Iterable[SelftestSource], chips: Iterable[Chip]) -> Known:
    """Ask every source, each once, about devices under their backends."""
    wanted = set(chips)
    found: dict[Chip, list[Selftest]] = defaultdict(list)
    for source in {id(source): source for source in sources}.values():
        for uid in {uid for uid, _ in wanted}:
            for each in source.selftests(uid):
                found[each.device_uid, each.backend].append(each)
    standings = {chip: standing(_newest_first(found[chip])) for chip in wanted & found.keys()}
    return Known(
        {chip: each.used.repeatability for chip, each in standings.items() if each.used and each.used.repeatability},
        {chip: each for chip, each in standings.items() if each.refused},
    )


def _newest_first(selftests: Iterable[Selftest]) -> list[Selftest]:
    return sorted(selftests, key=lambda each: each.finished_at, reverse=True)
