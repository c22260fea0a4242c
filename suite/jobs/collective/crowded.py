"""Which worlds have more ranks than cores, said before the first case: they are measured, and their results marked."""

from collections.abc import Iterator, Sequence
from typing import Any

from suite.collectives.cores import SHARED_CORES, Host, shared_cores
from suite.hardware.makers import is_cpu
from suite.planned import DeviceSlot
from suite.ranks.places import Places


def lines(settings: Any, slots: Sequence[DeviceSlot]) -> Iterator[str]:
    """A line for people, without an end, for each device whose ranks are of the host; none where every rank has a core.

    Of ranks that a launcher starts it is known where they are once they have come: a plan does not wait for them.
    """
    hosts = [slot.info for slot in slots if slot.info is not None and is_cpu(slot.info)]
    for info in hosts:
        found = {ranks: _words(ranks, settings.joined, info.visible_units or 0) for ranks in sorted(set(settings.world_sizes))}
        crowded = [words for words in found.values() if words]
        if crowded:
            on = f" of {info.backend} {info.name}" if len(hosts) > 1 else ""
            yield (
                f"{SHARED_CORES}: {', '.join(crowded)}{on}; they take turns, so that a time is also of waiting for a core and "
                "no figure of the link: these results are marked"
            )


def _words(ranks: int, joined: int, cores: int) -> str:
    if not joined:
        return shared_cores([Host(ranks, cores)])
    places = Places.told()
    return shared_cores(places.hosts_of(ranks)) if places is not None else ""
