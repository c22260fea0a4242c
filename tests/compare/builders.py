"""Entries and sides of comparisons, of rows that exist only here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from suite.backend import DeviceInfo, Fact
from suite.compare.noise import Noise
from suite.compare.side import Entry, Looked, Side
from suite.rows import DeviceRow, ResultRow
from tests.report.builders import device, result, run_info

CERTAIN = 1_000_000  # degrees of freedom: the normal distribution
QUIET = Noise(0.001, 0.001, CERTAIN)


def entry(*sizes: int, version: int = 1, **fields: Any) -> Entry:
    """A result; its case key follows from all that a case is."""
    row = result(*(sizes or (4096, 4096, 4096)), **fields)
    parts = (row.workload_key, row.implementation, row.backend, row.regime, sorted(row.switches.items()), version)
    return Entry(replace(row, case_key="-".join(map(str, parts))), version)


def side(*entries: Entry, devices: Sequence[DeviceRow] = (), run: str = "a", **info: Any) -> Side:
    """A run with these results."""
    environments: Sequence[Mapping[str, Mapping[str, Fact]]] = info.pop(
        "environments", ({"cpu": {"model": Fact.measured("X")}},)
    )
    return Side(run_info(run=run, **info), devices or (device(),), environments, entries)


def looked(side: Side, noise: Noise = QUIET, **description: Any) -> dict[int, Looked]:
    """What was measured of every result of a side."""
    return {each.row.result_id: Looked(noise, description) for each in side.entries}


def slower(row: ResultRow, by: float) -> ResultRow:
    """The same result with a median so much longer."""
    assert row.p50_s is not None
    return replace(row, p50_s=row.p50_s * (1 + by))


def chip(uid: str, **fields: Any) -> DeviceRow:
    """Another chip than the test machine's, or the same with something changed."""
    known = device()
    return replace(known, info=DeviceInfo.from_json({**known.info.to_json(), "uid": uid, **fields}))
