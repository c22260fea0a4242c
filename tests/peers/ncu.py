"""Nsight Compute as a peer: what it counts and times of single launches, picked by their place in the order of launches.

The target (``tests.peers.ncu_target``) launches for each case, while profiling is on, a marker (a kernel of one thread) and
then the case a fixed number of times.  A case's kernels are those between its marker and the next, whatever they are
called; every call is as many of them as all calls divide into.
"""

import csv
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from suite.case import Case
from tests.peers.child import PeerFailed, run

CYCLES = "sm__cycles_elapsed.max"
DURATION = "gpu__time_duration.sum"
CACHE_CONTROL = {"warm": "none", "cold": "all"}
CALLS = 6  # the first of them is dropped: it finds what the case before left in the cache

SCALES = {
    "": 1.0,
    "cycle": 1.0,
    "Kcycle": 1e3,
    "Mcycle": 1e6,
    "ns": 1e-9,
    "nsecond": 1e-9,
    "us": 1e-6,
    "usecond": 1e-6,
    "ms": 1e-3,
    "msecond": 1e-3,
    "s": 1.0,
    "second": 1.0,
}


class Launch(NamedTuple):
    """One kernel as it was profiled: cycles of the longest-running multiprocessor, seconds from start to end."""

    name: str
    cycles: float
    duration_s: float
    is_marker: bool


class Reading(NamedTuple):
    """One case: medians over its calls, and the names of the kernels of one call."""

    cycles: float
    duration_s: float
    kernels: tuple[str, ...]
    calls: int


def profile(ncu: str, cache: str, cases: Sequence[Case], target: str, limit_s: float) -> tuple[list[Reading], str]:
    """Profile every case in one process; return its readings in order and the table that ncu wrote.

    Raises ``PeerFailed`` where ncu is not there, fails, takes too long, or wrote something else.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, log = Path(folder) / "cases.json", Path(folder) / "ncu.csv"
        asked.write_text(json.dumps([case.to_json() for case in cases]))
        run("ncu", command(ncu, cache, log, asked, target), limit_s)
        text = log.read_text() if log.exists() else ""
    return readings(parse(text), len(cases), CALLS), text


def command(ncu: str, cache: str, log: Path, cases: Path, target: str) -> list[str]:
    """Clocks are left alone: locked ones would be another device's."""
    return [
        *(ncu, "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled"),
        *("--metrics", f"{CYCLES},{DURATION}", "--clock-control", "none", "--cache-control", CACHE_CONTROL[cache]),
        *("--target-processes", "application-only", "--profile-from-start", "off", "--log-file", str(log)),
        *(sys.executable, "-m", "tests.peers.ncu_target", "--backend", target, "--cases", str(cases), "--calls", str(CALLS)),
    ]


def parse(text: str) -> list[Launch]:
    """Read the table in the order of launches, whether metrics are columns (``--page raw``) or lines of their own."""
    rows = table(text)
    wide = rows if rows and CYCLES in rows[0] else _widened(rows)
    units = {name: wide[0].get(name, "") for name in (CYCLES, DURATION)} if wide else {}
    launches = [_launch(row, units) for row in wide if row["ID"]]
    if not launches:
        raise PeerFailed("ncu profiled no launch")
    return launches


def table(text: str) -> list[dict[str, str]]:
    """Its lines by the names of columns, units first where metrics are columns.  ``PeerFailed`` where there is none."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        said = " ".join(line for line in lines if line.startswith(("==ERROR==", "==WARNING=="))) or "no table in its output"
        raise PeerFailed(f"ncu: {said}")
    return list(csv.DictReader(line for line in lines[start:] if line.startswith('"')))


def readings(launches: Sequence[Launch], cases: int, calls: int) -> list[Reading]:
    """One reading a case, from the launches between its marker and the next."""
    groups: list[list[Launch]] = []
    for launch in launches:
        if launch.is_marker:
            groups.append([])
        elif groups:
            groups[-1].append(launch)
    if len(groups) != cases:
        raise PeerFailed(f"ncu saw {len(groups)} markers for {cases} cases")
    return [_reading(group, calls) for group in groups]


def _reading(group: Sequence[Launch], calls: int) -> Reading:
    if not group or len(group) % calls:
        raise PeerFailed(f"ncu saw {len(group)} kernels for {calls} calls of one case")
    size = len(group) // calls
    each = [group[first : first + size] for first in range(0, len(group), size)][1:]
    return Reading(
        cycles=median(sum(launch.cycles for launch in call) for call in each),
        duration_s=median(sum(launch.duration_s for launch in call) for call in each),
        kernels=tuple(launch.name for launch in each[0]),
        calls=len(each),
    )


def _widened(rows: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Lines of one launch and one metric each, as lines of one launch; the first holds the units."""
    launches: dict[str, dict[str, str]] = {}
    units: dict[str, str] = {"ID": ""}
    for row in rows:
        if row.get("Metric Name") in (CYCLES, DURATION):
            launches.setdefault(row["ID"], dict(row))[row["Metric Name"]] = row["Metric Value"]
            units[row["Metric Name"]] = row["Metric Unit"]
    return [units, *launches.values()] if launches else []


def _launch(row: Mapping[str, str], units: Mapping[str, str]) -> Launch:
    try:
        cycles, duration = (float(row[name].replace(",", "")) * SCALES[units[name]] for name in (CYCLES, DURATION))
        alone = row["Grid Size"] == row["Block Size"] == "(1, 1, 1)"
    except (KeyError, ValueError) as error:
        raise PeerFailed(f"ncu: launch {row['ID']} cannot be read: {type(error).__name__} {error}") from error
    return Launch(row["Kernel Name"], cycles, duration, alone)
