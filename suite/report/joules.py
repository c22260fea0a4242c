"""Why a run that was asked for energy has no joules: the reason is stored with each case, and no table has room for it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from suite.errors import StoreUnusable
from suite.measurement import Measurement
from suite.report.headlines import SUSTAINED
from suite.report.printable import clipped, printable
from suite.rows import ResultRow, RunInfo

CHANNEL = "energy"
MOST_READ = 3  # cases of a device whose reasons are looked at: they are of the device


class Source(Protocol):
    """A store's measurements."""

    def measurement(self, result_id: int) -> Measurement: ...


def lacks_joules(info: RunInfo, rows: Sequence[ResultRow]) -> bool:
    """Whether energy was asked for and none of the timed results, all of one device, has any."""
    measure = info.config.get("measure")
    is_asked = isinstance(measure, Mapping) and measure.get("energy") is True
    timed = [row for row in rows if row.p50_s is not None]
    return is_asked and bool(timed) and all(row.energy_j is None for row in timed)


def no_joules(why: str) -> str:
    """One line of it."""
    return f"no joules: measure.energy=true is set, and no energy was read: {why}"


def why_no_joules(source: Source, info: RunInfo, rows: Sequence[ResultRow]) -> str:
    """The reason that the cases of one device were stored with; empty where nothing is lacking."""
    if not lacks_joules(info, rows):
        return ""
    sustained = [row for row in rows if row.p50_s is not None and row.load == SUSTAINED]
    if not sustained:
        return "it is of sustained windows, and no sustained load was timed"
    found = next(_reasons(source, sustained[:MOST_READ]), "the cases were stored with no reason")
    return clipped(printable(found))


def without_joules(source: Source, info: RunInfo, rows: Sequence[ResultRow]) -> dict[int, str]:
    """The same of every device of a run, by its slot."""
    slots = sorted({row.device_slot for row in rows})
    found = {slot: why_no_joules(source, info, [row for row in rows if row.device_slot == slot]) for slot in slots}
    return {slot: why for slot, why in found.items() if why}


def _reasons(source: Source, rows: Sequence[ResultRow]) -> Iterator[str]:
    for row in rows:
        try:
            channel = source.measurement(row.result_id).telemetry.get(CHANNEL)
        except StoreUnusable:
            continue
        if channel is not None and channel.unavailable:
            yield channel.unavailable
