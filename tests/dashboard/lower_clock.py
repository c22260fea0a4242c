"""A copy of a store, of evidence ``simulated``, as if its chip had run at another clock:

    python -m tests.dashboard.lower_clock STORE COPY NODE CLOCK

What arithmetic bounds takes as many cycles as before, and ``1 / CLOCK`` times as long; everything else is as it was, an hour
later.  With ``CLOCK`` 1 it is the same node, simulated: what was measured is never compared with what was not.  A ``bound`` of
``memory`` plants a lower clock of the memory instead.
"""

import json
import sqlite3
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from suite.backend import Channel
from suite.commands.store import summarized
from suite.measure.samples import decode, encode
from suite.store.maintain import rebuild
from suite.store.telemetry import pack, unpack

CLOCKS = {"compute": ("sm_clock", "device_clock"), "memory": ("memory_clock",)}

_TIMES = ("started_at", "finished_at")


def lower_clock(source: Path, target: Path, node: str, clock: float, bound: str = "compute") -> Path:
    """Write the copy to ``target``, which must not be there; ``node`` stands in the names of its runs and as their note."""
    assert not target.exists(), f"{target} is there"
    with sqlite3.connect(f"file:{source}?mode=ro", uri=True) as there, sqlite3.connect(target) as copy:
        there.backup(copy)
        copy.row_factory = sqlite3.Row
        _rename(copy, node)
        _simulate(copy)
        for row in copy.execute("SELECT result_id FROM summary WHERE bound = ?", (bound,)).fetchall():
            _slow_down(copy, row["result_id"], clock, bound)
        copy.execute("DELETE FROM summary")
        copy.execute("DELETE FROM selftest")
    there.close()
    copy.close()
    rebuild(str(target), summarized, everything=True)
    return target


def _rename(copy: sqlite3.Connection, node: str) -> None:
    """Other runs of another chip: two files of one run would be the same run."""
    for run in copy.execute("SELECT id, uid, name FROM run").fetchall():
        uid = sha256(f"{run['uid']} {node}".encode()).hexdigest()[:32]
        copy.execute("UPDATE run SET uid = ?, name = ?, note = ? WHERE id = ?", (uid, f"{run['name']}-{node}", node, run["id"]))
    for device in copy.execute("SELECT id, uid, info FROM device").fetchall():
        uid = sha256(f"{device['uid']} {node}".encode()).hexdigest()[:16]
        info = json.dumps({**json.loads(device["info"]), "uid": uid})
        copy.execute("UPDATE device SET uid = ?, info = ? WHERE id = ?", (uid, info, device["id"]))


def _simulate(copy: sqlite3.Connection) -> None:
    copy.execute("UPDATE result SET evidence = 'simulated'")
    for table in ("run", "result"):
        later = ", ".join(f"{name} = strftime('%Y-%m-%d %H:%M:%f000', {name}, '+1 hours')" for name in _TIMES)
        copy.execute(f"UPDATE {table} SET {later}")


def _slow_down(copy: sqlite3.Connection, result: int, clock: float, bound: str) -> None:
    """Longer samples of as many cycles, with their intervals and what was read of the clock meanwhile."""
    samples = dict(copy.execute("SELECT * FROM sample_blob WHERE result_id = ?", (result,)).fetchone())
    slower_ns = [round(each / clock) for each in decode(samples["durations"])]
    is_whole = len(slower_ns) == samples["count"]  # then what is said of all samples is counted over these
    changed: dict[str, Any] = {"durations": encode(slower_ns)}
    changed["sum_ns"] = sum(slower_ns) if is_whole else round(samples["sum_ns"] / clock)
    changed["min_ns"] = min(slower_ns) if is_whole else round(samples["min_ns"] / clock)
    changed["median_ns"] = samples["median_ns"] and samples["median_ns"] / clock
    if bound == "memory":
        changed["median_cycles"] = samples["median_cycles"] and samples["median_cycles"] / clock
    elif samples["clocks"]:
        changed["clocks"] = encode([round(each * clock) for each in decode(samples["clocks"])])
    changed["spans"] = json.dumps([[n, began / clock, ended / clock] for n, began, ended in json.loads(samples["spans"])])
    _set(copy, "sample_blob", "result_id", result, changed)
    ends = [f"interval_{end}_{unit}" for unit in ("s", *(["cycles"] if bound == "memory" else [])) for end in ("low", "high")]
    row = copy.execute(f"SELECT {', '.join(ends)} FROM result WHERE id = ?", (result,)).fetchone()
    _set(copy, "result", "id", result, {name: row[name] and row[name] / clock for name in ends})
    telemetry = copy.execute("SELECT channels FROM telemetry_blob WHERE result_id = ?", (result,)).fetchone()
    if telemetry:
        slower = {
            name: _slower(channel, clock if name in CLOCKS[bound] else 1.0, clock)
            for name, channel in unpack(telemetry["channels"]).items()
        }
        _set(copy, "telemetry_blob", "result_id", result, {"channels": pack(slower)})


def _slower(channel: Channel, factor: float, clock: float) -> Channel:
    return channel._replace(
        times_s=tuple(each / clock for each in channel.times_s), values=tuple(each * factor for each in channel.values)
    )


def _set(copy: sqlite3.Connection, table: str, key: str, number: int, values: Mapping[str, Any]) -> None:
    names = ", ".join(f"{name} = ?" for name in values)
    copy.execute(f"UPDATE {table} SET {names} WHERE {key} = ?", (*values.values(), number))


if __name__ == "__main__":
    print(lower_clock(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], float(sys.argv[4])))
