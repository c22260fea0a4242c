"""Which two runs are compared before anybody has chosen: a finished one, and one before it that has cases in common with it."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from dashboard.sidebar import LABELS_S
from dashboard.stores import Run, Stores, newest_of
from suite.jobs.calibration import CalibrationJob
from suite.outcome import Outcome
from suite.store.runs import SELFTEST
from suite.store.scopes import Scope

MOST_TRIED = 8  # runs whose cases are looked at
MOST_OPENED = 16  # runs that are tried as B, the newest first
MOST_LOOKED = 500  # cases of one run
RUNNING = "running"
NONE_SHARED = (
    "No finished run before B has a case in common with it, beside calibrations: A is the one most like it. "
    "Choose another run as A or B."
)
NONE_ANYWHERE = (
    f"Nor have any two of the newest {MOST_OPENED} finished runs. Measure one of them again, by the command under Run it again "
    "of its page Run: those two compare."
)
NONE_BEFORE = "No run before B is finished: A is another one. Choose another run as A or B."

Key = tuple[int, str]  # a run by its store and name
Case = tuple[str, str, str]  # a workload's key, a regime and a kind of evidence: what is compared has these in common


class Opposite(NamedTuple):
    """A run, and why it is no good choice; empty where it is one."""

    run: Run
    why_not: str


class Pair(NamedTuple):
    """B, and what it is held against."""

    b: Run
    opposite: Opposite


def opening_pair(stores: Stores) -> Pair:
    """The newest finished run with what it is held against, or of those that share a case the newest two; else the first."""
    newest = latest_finished(stores)
    found = Pair(newest, opposite_of(stores, newest))
    return (newest_sharing(stores) or found) if found.opposite.why_not else found


def newest_sharing(stores: Stores) -> Pair | None:
    """The newest finished run that shares a case with one before it, of a selftest only where there is no other."""
    finished = [run for run in stores.runs if run.entry.status != RUNNING][:MOST_OPENED]
    for run in sorted(finished, key=lambda run: run.entry.experiment == SELFTEST):
        found = opposite_of(stores, run)
        if not found.why_not:
            return Pair(run, found)
    return None


def latest_finished(stores: Stores) -> Run:
    """The newest run that is not in progress, of a selftest only where there is no other; of those in progress the newest."""
    finished = tuple(run for run in stores.runs if run.entry.status != RUNNING)
    return newest_of(stores._replace(runs=finished or stores.runs))


def opposite_of(stores: Stores, chosen: Run) -> Opposite:
    """Of the finished runs before this one that which has the most cases in common with it; there are others than this one.

    Of several the one of the same chip, kind of device and experiment, then the newest.  A pass of a selftest comes after other
    runs that have any.  Where none has, it is the one most like it: what was measured before what was simulated.
    """
    others = [run for run in stores.runs if run.entry.run != chosen.entry.run]  # another store may have this one as well
    finished = [run for run in others if run.entry.status != RUNNING]
    before = [run for run in finished if run.entry.started_at <= chosen.entry.started_at]
    alike = _alike(stores, chosen, before or finished or others)
    own = _cases(stores, chosen)
    likest = sorted(alike, key=lambda run: (_is_ours(run, chosen), alike[run].cases, alike[run]), reverse=True)[:MOST_TRIED]
    counts = {run: len(own & _cases(stores, run)) for run in likest}
    best = max(likest, key=lambda run: (counts[run] > 0, _is_ours(run, chosen), counts[run], alike[run]))
    if not before:
        return Opposite(best, NONE_BEFORE)
    return Opposite(best, "" if counts[best] else NONE_SHARED)


def _is_ours(run: Run, chosen: Run) -> bool:
    """Whether it is no pass of a selftest, or both are."""
    return (run.entry.experiment == SELFTEST) <= (chosen.entry.experiment == SELFTEST)


class Alike(NamedTuple):
    """What two runs have in common: kinds of evidence, chips, kinds of device, the experiment, and cases at most."""

    evidence: bool
    chips: bool
    devices: bool
    experiment: bool
    cases: int


def _alike(stores: Stores, chosen: Run, runs: list[Run]) -> dict[Run, Alike]:
    """By what is known of groups, in the order of ``runs``."""
    groups: dict[Key, Counter[tuple[str, ...]]] = {}
    evidence: dict[Key, set[str]] = {}
    chips: dict[Key, set[str]] = {}
    devices: dict[Key, set[str]] = {}
    for shelf in stores.shelves:
        names = shelf.device_names()
        for device, group in shelf.held(wait_s=LABELS_S).pairs:
            run = (device.store, group.run)
            chips.setdefault(run, set()).add(device.uid)
            devices.setdefault(run, set()).add(names.get(device.uid, device.uid))
            if group.job != CalibrationJob.name:
                evidence.setdefault(run, set()).add(group.evidence)
                what = (group.job, group.format, group.semantics, group.cache, group.load, group.dispatch, group.evidence)
                groups.setdefault(run, Counter())[what] += group.results * (group.outcome == Outcome.OK)
    own = _key(chosen)

    def in_common(known: Mapping[Key, set[str]], run: Run) -> bool:
        return bool(known.get(own, set()) & known.get(_key(run), set()))

    return {
        run: Alike(
            evidence=in_common(evidence, run),
            chips=in_common(chips, run),
            devices=in_common(devices, run),
            experiment=run.entry.experiment == chosen.entry.experiment,
            cases=(groups.get(own, Counter()) & groups.get(_key(run), Counter())).total(),
        )
        for run in runs
    }


def _key(run: Run) -> Key:
    return run.store, run.entry.run


def _cases(stores: Stores, run: Run) -> set[Case]:
    """The verified cases of a run, without the calibrations that nearly every run begins with."""
    shelf = stores.shelves[run.store]
    rows = shelf.rows(shelf.newest(Scope(runs=(run.entry.run,)))[:MOST_LOOKED])
    timed = (row for row in rows if row.outcome == Outcome.OK and row.job != CalibrationJob.name)
    return {(row.workload_key, row.regime, row.evidence) for row in timed}
