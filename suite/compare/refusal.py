"""Why two results are not compared, or why one has nothing to be compared with: a few words for a list."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from suite.compare.side import Entry
from suite.jobs.calibration import CalibrationJob
from suite.outcome import Evidence, Outcome
from suite.report.words import counted

# Kinds of evidence that rest on samples of one clock; the others are a peer's figures or no times at all.
COMPARED = (Evidence.MEASURED, Evidence.SIMULATED)


def refusal(a: Entry, b: Entry) -> str:
    """Why two results with the same key say nothing of each other; empty where they are compared."""
    return next(_refusals(a, b), "")


def _refusals(a: Entry, b: Entry) -> Iterator[str]:
    if a.method_version != b.method_version:
        yield f"method version {a.method_version} against {b.method_version}: what is computed or timed has changed"
    ends = [entry.row.outcome.replace("_", " ") for entry in (a, b)]
    if Outcome.OK not in (a.row.outcome, b.row.outcome):
        yield f"both {ends[0]}" if ends[0] == ends[1] else f"A {ends[0]}, B {ends[1]}"
    for name, entry, end in (("A", a, ends[0]), ("B", b, ends[1])):
        if entry.row.outcome != Outcome.OK:
            yield f"{name} {end}"
    if a.row.evidence != b.row.evidence:
        yield f"A is {a.row.evidence}, B {b.row.evidence}"
    if a.row.evidence not in COMPARED:
        yield f"both are {a.row.evidence}: only what was timed here is compared"
    for name, entry in (("A", a), ("B", b)):
        if not entry.row.p50_s:
            yield f"{name} has no time"


class Strangers:
    """Says why results have no partner in the run called ``other``: ``left`` are its own without one, ``every`` all of it."""

    def __init__(self, other: str, left: Iterable[Entry], every: Iterable[Entry]) -> None:
        self._other = other
        self._left: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._regimes: dict[str, dict[str, None]] = defaultdict(dict)
        for entry in left:
            self._left[entry.regime_key].append(entry)
        self._calibrates = False
        for entry in every:
            self._calibrates |= entry.row.job == CalibrationJob.name
            self._regimes[entry.row.workload_key][entry.row.regime] = None

    def why(self, entry: Entry) -> str:
        """Where the run has the same computation, it is said what differs."""
        near = self._left.get(entry.regime_key, [])
        if len(near) == 1:
            return f"{self._other} has it {_what_differs(entry, near[0])}"
        if near:
            names = ", ".join(dict.fromkeys(each.row.implementation for each in near))
            return f"{self._other} has {counted(len(near), 'result')} of it left ({names}), and which is its like is not clear"
        if entry.row.job == CalibrationJob.name and not self._calibrates:
            return f"{self._other} measured no calibration of its own"
        regimes = self._regimes.get(entry.row.workload_key, {})
        if not regimes:
            return f"not in {self._other}"
        if entry.row.regime in regimes:
            return f"what {self._other} has of it is compared with another"
        return f"{self._other} has it in other regimes only: {', '.join(regimes)}"


def _what_differs(one: Entry, other: Entry) -> str:
    if one.method_version != other.method_version:
        return f"by method version {other.method_version} instead of {one.method_version}: never compared"
    names = ("backend", "implementation", "switches", "device_slot")
    differing = [name for name in names if getattr(one.row, name) != getattr(other.row, name)]
    words = ", ".join(f"{name.replace('_', ' ')} {_shown(getattr(other.row, name))}" for name in differing)
    return f"with {words}: --by workload compares them" if words else "as another case: --by workload compares them"


def _shown(value: object) -> str:
    return ", ".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, dict) else str(value)
