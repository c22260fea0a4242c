"""Which results of a run are of ranks that shared cores, as they were stored with it."""

from collections.abc import Iterable
from typing import Protocol

from suite.collectives.cores import mark
from suite.collectives.series import JOB
from suite.collectives.transport import Transport
from suite.errors import StoreUnusable
from suite.measurement import Measurement
from suite.rows import ResultRow

MOST_READ = 3  # results of a world that are looked at, should the first not be readable


class Source(Protocol):
    """A store's measurements."""

    def measurement(self, result_id: int) -> Measurement: ...


def shared_cores_marks(source: Source, rows: Iterable[ResultRow]) -> dict[int, str]:
    """The mark of each such result, by its id.

    One result is read for each world of ranks: where they are is the same of all that a run measures over them.
    """
    worlds: dict[tuple[object, ...], list[ResultRow]] = {}
    for row in rows:
        if row.job == JOB and row.p50_s is not None and row.switches.get("transport") == Transport.HOST:
            place = (row.run, row.backend, row.device_uid, bool(row.switches.get("joined")), row.params.get("world_size"))
            worlds.setdefault(place, []).append(row)
    found: dict[int, str] = {}
    for of in worlds.values():
        if said := _mark(source, of):
            found |= {row.result_id: said for row in of}
    return found


def _mark(source: Source, rows: list[ResultRow]) -> str:
    for row in rows[:MOST_READ]:
        try:
            return mark(source.measurement(row.result_id).description)
        except StoreUnusable:
            continue
    return ""
