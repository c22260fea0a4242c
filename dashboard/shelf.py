"""One open store as the dashboard sees it: what was asked before is kept until the store changes.

Rows are frozen and groups are tuples, so that sessions share them.
"""

import gc
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Condition, Thread
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from dashboard.tame import tamed, tamed_compiled, tamed_device
from suite.backend import Fact
from suite.errors import StoreUnusable
from suite.outcome import Evidence
from suite.report.printable import clipped
from suite.rows import CalibrationHistory, DeviceRow, ResultDetail, ResultRow, RunInfo
from suite.store.browsing import Browser
from suite.store.damage import Damaged, line
from suite.store.scopes import Entry, Found, Group, Scope
from suite.targets.record import Compiled

Answer = TypeVar("Answer")
MOST_ANSWERS, MOST_ROWS, MOST_HELD = 256, 20_000, 16
READ_AHEAD_S = 0.6  # how long a page waits for runs that nobody has looked at yet


class Device(NamedTuple):
    """A chip in one store: chips of two stores may have different empirical roofs."""

    store: int
    uid: str


Pair = tuple[Device, Group]


class Held(NamedTuple):
    """What is known of a store's runs so far: the groups of those that were read, how many were not, and what is wrong."""

    pairs: tuple[Pair, ...]
    missing: int
    problems: tuple[str, ...]


class Shelf:
    """A store's answers.  Runs are read one by one, the newest first, by a thread of its own: a page shows what is there."""

    def __init__(self, url: str, browser: Browser, number: int = 0) -> None:
        self.url, self.number = url, number
        self._browser = browser
        self._looked_at = _standing(browser.path)
        self._state = Condition()
        self._entries: tuple[Entry, ...] = ()
        self._groups: dict[Entry, tuple[Group, ...]] = {}
        self._problems: dict[Entry, str] = {}
        self._backends: dict[str, tuple[str, ...]] = {}
        self._held: dict[tuple[str, ...], Held] = {}
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()
        self._rows: OrderedDict[int, ResultRow] = OrderedDict()
        self._reader: Thread | None = None

    @property
    def path(self) -> str:
        """The file itself, whatever it was called when it was opened."""
        return str(self._browser.path.resolve())

    def look(self) -> tuple[Entry, ...]:
        """The runs, asked of the store itself; what was kept is forgotten where they have changed."""
        self._refuse_another()
        found = tuple(self._browser.entries())
        with self._state:
            if found != self._entries:
                self._entries = found
                self._answers.clear()
                self._rows.clear()
                known = set(found)
                self._groups = {entry: groups for entry, groups in self._groups.items() if entry in known}
                self._problems = {entry: problem for entry, problem in self._problems.items() if entry in known}
                self._held.clear()
        return found

    def _refuse_another(self) -> None:
        """Of a file that has changed, ask what was asked when it was opened: by now another one may lie in its place."""
        found = _standing(self._browser.path)
        if found != self._looked_at:
            Browser.open(self.url).close()
            self._looked_at = found

    def held(self, runs: Collection[str] = (), wait_s: float = READ_AHEAD_S) -> Held:
        """The groups of some runs, or of all, after waiting at most ``wait_s`` seconds for those that were not read yet."""
        deadline, asked = monotonic() + wait_s, tuple(runs)
        with self._state:
            wanted = [entry for entry in self._entries if not asked or entry.run in asked]
            while self._is_missing(wanted) and self._read_on() and (left_s := deadline - monotonic()) > 0:
                self._state.wait(left_s)
            if asked not in self._held:
                if len(self._held) >= MOST_HELD:
                    self._held.clear()
                self._held[asked] = self._hold(wanted)
            return self._held[asked]

    def _hold(self, wanted: Sequence[Entry]) -> Held:
        """Put together what was read; the state is held."""
        groups = [group for entry in wanted for group in self._groups.get(entry, ())]
        devices = {uid: Device(self.number, uid) for uid in {group.device_uid for group in groups}}
        missing = sum(entry not in self._groups and entry not in self._problems for entry in wanted)
        problems = tuple(self._problems[entry] for entry in wanted if entry in self._problems)
        return Held(tuple((devices[group.device_uid], group) for group in groups), missing, problems)

    def rows(self, ids: Sequence[int]) -> list[ResultRow]:
        """Rows by their ids, in that order."""
        with self._state:
            absent = [number for number in dict.fromkeys(ids) if number not in self._rows]
        found = {row.result_id: tamed(row) for row in self._browser.rows(absent)} if absent else {}
        with self._state:
            self._rows.update(found)
            answer = [row for number in ids if (row := found.get(number) or self._rows.get(number)) is not None]
            while len(self._rows) > MOST_ROWS:
                self._rows.popitem(last=False)
        return answer

    def newest(self, scope: Scope, workloads: Collection[int] | None = None) -> list[int]:
        """See ``Browser.newest``."""
        chosen = None if workloads is None else tuple(workloads)
        return self._kept(("newest", scope, chosen), lambda: self._browser.newest(scope, chosen))

    def results_of(self, runs: Collection[str], uid: str, cases: Collection[str]) -> list[ResultRow]:
        """Every result of some cases, by their keys, of one device in some runs."""
        question = ("results of", tuple(runs), uid, tuple(sorted(cases)))

        def ask() -> list[ResultRow]:
            return [tamed(row) for row in self._browser.results(list(runs), device_uid=uid, case_key=sorted(cases))]

        return self._kept(question, ask)

    def backends_of(self, run: str) -> tuple[str, ...]:
        """The backends of a run that was read; none before."""
        with self._state:
            return self._backends.get(run, ())

    def workloads(self, scope: Scope) -> list[Found]:
        """See ``Browser.workloads``."""
        return self._kept(("workloads", scope), lambda: self._browser.workloads(scope))

    def page(self, scope: Scope, limit: int, offset: int, order: str) -> list[ResultRow]:
        """See ``Browser.page``."""
        question = ("page", scope, limit, offset, order)
        return self._kept(question, lambda: [tamed(row) for row in self._browser.page(scope, limit, offset, order)])

    def device_names(self) -> Mapping[str, str]:
        """See ``Browser.device_names``."""
        return self._kept(("names",), self._browser.device_names)

    def device(self, uid: str) -> DeviceRow:
        """See ``Browser.device``."""
        return self._kept(("device", uid), lambda: tamed_device(self._browser.device(uid)))

    def devices(self, run: str) -> Sequence[DeviceRow]:
        """The devices of one run."""
        return self._kept(("devices", run), lambda: tuple(map(tamed_device, self._browser.devices(run))))

    def roofs_of(self, uid: str, evidence: Evidence) -> tuple[Mapping[tuple[str, str], float], float | None]:
        """See ``Browser.roofs_of``."""
        return self._kept(("roofs", uid, evidence), lambda: self._browser.roofs_of(uid, evidence))

    def calibrations_of(self, uid: str, backend: str, evidence: Evidence) -> CalibrationHistory:
        """See ``Browser.calibrations_of``."""
        question = ("calibrations", uid, backend, evidence)
        return self._kept(question, lambda: self._browser.calibrations_of(uid, backend, evidence))

    def detail(self, run: str, case: str) -> ResultDetail:
        """Everything of one result; not kept, as it has raw samples."""
        found = self._browser.detail((run, case))
        return replace(found, row=tamed(found.row))

    def info(self, run: str) -> RunInfo:
        """One run with its configuration."""
        return self._kept(("info", run), lambda: self._browser.resolve(run))

    def counts(self, run: str) -> Mapping[str, int]:
        """How many cases of a run ended how."""
        return self._kept(("counts", run), lambda: self._browser.counts(run))

    def compiled(self) -> list[Compiled]:
        """What programs became on targets, asked anew: it grows without any run."""
        return [tamed_compiled(each) for each in self._browser.compiled()]

    def environment(self, run: str) -> Mapping[str, Mapping[str, Fact]]:
        """The system that a run was last on."""
        return self._kept(("environment", run), lambda: self._browser.environment(run))

    def log_sizes(self, run: str) -> Mapping[str, int]:
        """The logs of a run with their lengths, asked anew: they grow without any result."""
        return self._browser.log_sizes(run)

    def log_end(self, run: str, name: str, most: int) -> str:
        """See ``Browser.log_end``."""
        return self._browser.log_end(run, name, most)

    def _kept(self, question: Hashable, ask: Callable[[], Answer]) -> Answer:
        with self._state:
            if question in self._answers:
                self._answers.move_to_end(question)
                answer: Answer = self._answers[question]
                return answer
            entries = self._entries
        found = ask()
        with self._state:
            if entries is self._entries:  # else it is of a store that has changed meanwhile
                self._answers[question] = found
                while len(self._answers) > MOST_ANSWERS:
                    self._answers.popitem(last=False)
        return found

    def _read_backends(self, run: str) -> tuple[str, ...]:
        """Those of its devices; a name of a run does without them where they are damaged."""
        try:
            return tuple(sorted({clipped(device.info.backend, 20) for device in self._browser.devices(run)}))
        except StoreUnusable:
            return ()

    def _read_lost(self, run: str) -> tuple[tuple[Group, ...], str]:
        """A run without groups once more: one that has results has just got its first, or they are of no device that is known.

        Without the word a page would say that nothing was measured.
        """
        has_results = any(self._browser.counts(run).values())
        groups = tuple(self._browser.groups(run))
        if groups or not has_results:
            return groups, ""
        return (), line(self._browser.path, Damaged("its results", f"those of run {clipped(run, 60)} are of no device"))

    def _is_missing(self, wanted: Sequence[Entry]) -> bool:
        return any(entry not in self._groups and entry not in self._problems for entry in wanted)

    def _read_on(self) -> bool:
        """Have somebody read; the state is held."""
        if self._reader is None or not self._reader.is_alive():
            self._reader = Thread(target=self._read, name=f"reading {self.number}", daemon=True)
            self._reader.start()
        return True

    def _read(self) -> None:
        """Read runs, the newest first, until none is missing."""
        while True:
            with self._state:
                entry = next((each for each in self._entries if self._is_missing([each])), None)
                if entry is None:
                    self._reader = None
                    break
            try:
                groups, problem = tuple(self._browser.groups(entry.run)), ""
                if not groups:
                    groups, problem = self._read_lost(entry.run)
            except StoreUnusable as error:
                groups, problem = (), str(error)
            backends = self._read_backends(entry.run)
            with self._state:
                self._backends[entry.run] = backends
                if problem:
                    self._problems[entry] = problem
                else:
                    self._groups[entry] = groups
                self._held.clear()
                self._state.notify_all()
        gc.collect()
        gc.freeze()  # hundreds of thousands of tuples without a cycle, which every collection would go through again


def _standing(path: Path) -> tuple[int, ...]:
    """What is another whenever a file was written or replaced; empty where there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
