"""What a page is about: the devices and groups that pass the choices in the sidebar, and the rows behind them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from dashboard.shelf import Device, Pair, Shelf
from dashboard.stores import Stores
from suite.case import format_label
from suite.outcome import Evidence, Outcome
from suite.report.headlines import Kind, bound_tier
from suite.report.palette import Theme, device_colours
from suite.report.printable import clipped, printable
from suite.report.roofs import drawable
from suite.report.standings import group_trust, is_clean, label_of, preferred
from suite.report.words import counted
from suite.rows import ResultRow
from suite.store.columns import load_json
from suite.store.scopes import Group, Scope

MOST_RESULTS = 5_000  # of one device that a figure looks through: its newest runs up to so many
MOST_POINTS = 1_000  # of one figure: more cannot be told apart, and a browser takes seconds to draw them
MOST_DEVICES = 8  # in one figure, by the colours that everybody can tell apart
NAME_CHARACTERS = 40


class Asked(NamedTuple):
    """A workload of one store that has results of a device, as choices are made among them."""

    store: int
    workload_id: int
    format: str
    params: Mapping[str, Any]


class Picked(NamedTuple):
    """Rows for a figure: of each case what ``one_of_each`` shows.

    ``of`` cases were found, ``older`` results lie in runs not looked through; ``replaced`` rows stand for newer ones in doubt.
    """

    rows: tuple[ResultRow, ...]
    of: int
    older: int
    replaced: int = 0

    @property
    def note(self) -> str:
        """What was left out, in one line; empty where nothing was."""
        parts = []
        if self.of > len(self.rows):
            parts.append(f"{len(self.rows):,} of {self.of:,} cases are drawn, evenly chosen: narrow the choice to see all")
        if self.replaced:
            parts.append(
                f"{counted(self.replaced, 'point')} of older runs: newer results of these cases are in doubt or failed"
            )
        if self.older:
            parts.append(f"{self.older:,} results of older runs are left out: choose these runs to see them")
        return "; ".join(parts)


@dataclass(frozen=True)
class Selection:
    """``groups`` pass every filter; ``runs``, ``formats`` and the like are what was chosen, empty for all."""

    stores: Stores
    job: str
    groups: tuple[Pair, ...]
    devices: tuple[Device, ...]
    names: Mapping[Device, str]
    known: tuple[Device, ...]
    runs: tuple[str, ...]
    regimes: tuple[tuple[str, str, str], ...]
    formats: tuple[str, ...]
    implementations: tuple[str, ...]
    evidence: tuple[str, ...]
    missing: int
    problems: tuple[str, ...]
    theme: Theme

    @cached_property
    def results(self) -> int:
        """How many results pass."""
        return sum(group.results for _, group in self.groups)

    @cached_property
    def jobs(self) -> tuple[str, ...]:
        return tuple(sorted({group.job for _, group in self.groups}))

    @cached_property
    def latest(self) -> tuple[Device, ...]:
        """The devices, the one that was measured last first."""
        newest = {run.entry.run: -place for place, run in enumerate(self.stores.runs)}
        last: dict[Device, int] = {}
        for device, group in self.groups:
            last[device] = max(last.get(device, -len(newest)), newest.get(group.run, -len(newest)))
        return tuple(sorted(self.devices, key=lambda device: -last.get(device, 0)))

    @cached_property
    def shown(self) -> tuple[Device, ...]:
        """The devices that one figure can show: the ``MOST_DEVICES`` that were measured last."""
        return tuple(device for device in self.devices if device in self.latest[:MOST_DEVICES])

    @cached_property
    def colours(self) -> Mapping[Device, str]:
        """One colour for each of ``shown``, the same on every page."""
        return device_colours(self.known, self.shown)

    @cached_property
    def _store_of(self) -> Mapping[str, int]:
        return {run.entry.run: run.store for run in reversed(self.stores.runs)}

    def whose(self, row: ResultRow) -> str:
        """What the device of a result is called here: with what tells it from others of its name."""
        device = Device(self._store_of.get(row.run, 0), row.device_uid)
        return self.names.get(device, row.device)

    def of(self, device: Device) -> list[Group]:
        """The groups of one device."""
        return [group for each, group in self.groups if each == device]

    def scope(self, device: Device | None = None, store: int = 0) -> Scope:
        """What was chosen, as the store is asked for it: of one device, or of every device of one store."""
        place = device.store if device is not None else store
        own = [group for each, group in self.groups if each.store == place and (device is None or each == device)]
        formats = {(group.format, group.semantics) for group in own} if self.formats else ()
        uids = {each.uid for each in self.devices if each.store == place} if device is None else {device.uid}
        return Scope(
            runs=self.runs,
            devices=tuple(sorted(uids)),
            jobs=(self.job,) if self.job else self.jobs,
            formats=tuple(sorted(formats)),
            regimes=self.regimes,
            implementations=self.implementations,
            evidence=self.evidence,
        )

    def asked(self, device: Device) -> list[Asked]:
        """The workloads that a device has results of, in its newest runs up to ``MOST_RESULTS`` results."""
        scope = self.scope(device)
        runs, _ = self._recent(device, scope.jobs)
        found = self.stores.shelves[device.store].workloads(scope._replace(runs=runs))
        return [
            Asked(device.store, each.workload_id, format_label(each.format, _object(each.semantics)), _object(each.params))
            for each in found
        ]

    def pick(self, device: Device, workloads: Collection[int] | None = None, alone: bool = False) -> Picked:
        """One result of each case of a device, from its newest runs up to ``MOST_RESULTS`` results: the newest that is clean.

        One in doubt is shown only where the case has no other (``preferred``).  At most its share of ``MOST_POINTS``, and all
        of them where it is ``alone`` in its figure.
        """
        scope = self.scope(device)
        runs, older = self._recent(device, scope.jobs)
        shelf = self.stores.shelves[device.store]
        ids = shelf.newest(scope._replace(runs=runs), workloads)
        newest = shelf.rows(thinned(ids, MOST_POINTS // (1 if alone else len(self.shown))))
        rows = tuple(_preferred(shelf, device.uid, runs, newest))
        replaced = sum(row is not before for row, before in zip(rows, newest, strict=True))
        return Picked(rows, len(ids), older, replaced)

    def of_every_run(self, device: Device, rows: Sequence[ResultRow]) -> list[ResultRow]:
        """Every result of the cases of ``rows`` in the runs that ``pick`` looks through, those of the newest run first.

        What compares results of one run takes these: with one of each case it would lose a case to a later run of it.
        """
        runs, _ = self._recent(device, self.scope(device).jobs)
        found = self.stores.shelves[device.store].results_of(runs, device.uid, {row.case_key for row in rows})
        kinds = {row.evidence for row in rows}
        return sorted((row for row in found if row.evidence in kinds), key=lambda row: runs.index(row.run))

    def best_of(self, device: Device) -> list[ResultRow]:
        """The best of each group of measured results of a device, of all the runs shown: see ``Group``."""
        groups = [group for group in self.of(device) if group.outcome == Outcome.OK and group.evidence == Evidence.MEASURED]
        return self.stores.shelves[device.store].rows([group.best for group in groups])

    def count_of(self, device: Device) -> Counter[Kind]:
        """How many results that are points it has, by what decides which of them a headline is the best of."""
        best = {row.result_id for row in self.best_of(device) if drawable(row)}
        found: Counter[Kind] = Counter()
        for group in self.of(device):
            if group.best in best:
                found[Kind(label_of(group), group.load, group_trust(group), bound_tier(group.bound))] += group.results
        return found

    def _recent(self, device: Device, jobs: Sequence[str]) -> tuple[tuple[str, ...], int]:
        """The newest runs of a device up to ``MOST_RESULTS`` results, at least one; and how many results the others have."""
        counts: dict[str, int] = {}
        for group in self.of(device):
            if group.job in jobs:
                counts[group.run] = counts.get(group.run, 0) + group.results
        order = [run.entry.run for run in self.stores.runs if run.store == device.store and run.entry.run in counts]
        taken: list[str] = []
        for run in order:
            if taken and sum(counts[each] for each in (*taken, run)) > MOST_RESULTS:
                break
            taken.append(run)
        return tuple(taken), sum(counts.values()) - sum(counts[run] for run in taken)


def _preferred(shelf: Shelf, uid: str, runs: Sequence[str], newest: Sequence[ResultRow]) -> list[ResultRow]:
    """Of each case a result that is clean, where the ``newest`` is in doubt and any of these runs has one."""
    doubted = {row.case_key for row in newest if not is_clean(row)}
    if not doubted or len(runs) < 2:
        return list(newest)
    others: dict[tuple[str, str], list[ResultRow]] = {}
    for row in shelf.results_of(runs, uid, doubted):
        others.setdefault((row.case_key, row.evidence), []).append(row)
    return [row if is_clean(row) else preferred([row, *others.get((row.case_key, row.evidence), ())]) for row in newest]


def _object(text: str) -> dict[str, Any]:
    """A JSON object; a file may hold anything where one should be."""
    try:
        found = load_json(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def thinned(ids: Sequence[int], most: int) -> list[int]:
    """At most ``most`` of them, evenly chosen."""
    step = -(-len(ids) // most) if ids else 1
    return list(ids[::step])


def device_names(stores: Stores) -> dict[Device, str]:
    """What each device is called: its name, with as much beside it as tells it from the others; in the order of names."""
    known = _runtime_names(stores)
    found: dict[Device, str] = {}
    for device, name in sorted(known.items(), key=lambda each: (each[1], each[0].uid, each[0].store)):
        same = [other for other, its in known.items() if its == name]
        elsewhere = any(other.store != device.store for other in same)
        found[device] = _beside(name, [*_uid_of(device, same), *([stores.names[device.store]] if elsewhere else [])])
    return found


def chip_names(stores: Stores) -> dict[str, str]:
    """The same of each chip by its uid, for what is about a chip whichever stores it is in."""
    known = _runtime_names(stores)
    found: dict[str, str] = {}
    for device, name in known.items():
        same = [other for other, its in known.items() if its == name]
        found.setdefault(device.uid, _beside(name, _uid_of(device, same)))
    return found


def _runtime_names(stores: Stores) -> dict[Device, str]:
    return {
        Device(number, uid): clipped(printable(name), NAME_CHARACTERS)
        for number, shelf in enumerate(stores.shelves)
        for uid, name in shelf.device_names().items()
    }


def _uid_of(device: Device, same: Sequence[Device]) -> list[str]:
    """Its uid where another chip has its name."""
    told = any(other.uid != device.uid for other in same)
    return [clipped(printable(device.uid), 8 if len(device.uid) > 8 else 12)] if told else []


def _beside(name: str, words: Sequence[str]) -> str:
    return f"{name} ({', '.join(words)})" if words else name


def regime_of(group: Group) -> str:
    """``cold/sustained/device``."""
    return f"{group.cache}/{group.load}/{group.dispatch}"
