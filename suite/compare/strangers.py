"""Why a result has nothing to be compared with in another run: its own reason, and none of another's."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from suite.compare.refusal import can_be_compared, ending, is_of_one_kind, own_refusal
from suite.compare.side import Entry
from suite.jobs.calibration import CalibrationJob
from suite.outcome import Outcome
from suite.report.words import counted

Partners = Mapping[int, Entry]  # by the ``id`` of an entry


class Strangers:
    """Says why results of the run called ``own`` have no partner in the one called ``other``.

    ``every`` are all results of the other; ``left`` those that no join by workload has a partner for, and ``partners`` what
    such a join puts each result of either run with, where another was asked for.  ``compared`` are the ids of entries that are
    compared.
    """

    def __init__(
        self, own: str, other: str, every: Iterable[Entry], left: Iterable[Entry], partners: Partners, compared: Collection[int]
    ) -> None:
        self._own, self._other = own, other
        self._partners, self._compared = partners, compared
        self._left, self._same = _by_regime(left), _by_regime(every)
        self._regimes: dict[str, dict[str, None]] = defaultdict(dict)
        self._calibrates = False
        for entry in every:
            self._calibrates |= entry.row.job == CalibrationJob.name
            self._regimes[entry.row.workload_key][entry.row.regime] = None

    def why(self, entry: Entry) -> str:
        """What was not timed says how it ended; where the other run has the same computation, it is said what differs."""
        if own := own_refusal(entry, self._own):
            return own
        partner = self._partners.get(id(entry))
        if partner is not None and is_of_one_kind(entry, partner):
            return f"{self._other} has it {_differing(entry, partner)}: --by workload compares them"
        near = [*self._left.get(entry.regime_key, ()), *([] if partner is None else [partner])]
        if near := [each for each in near if can_be_compared(each)]:
            return self._why_not_near(entry, near)
        if entry.row.job == CalibrationJob.name and not self._calibrates:
            return f"{self._other} measured no calibration of its own"
        regimes = self._regimes.get(entry.row.workload_key, {})
        if not regimes:
            return f"not in {self._other}"
        if entry.row.regime in regimes:
            return self._where_others_are(entry, self._same[entry.regime_key])
        return f"{self._other} has it in other regimes only: {', '.join(regimes)}"

    def _why_not_near(self, entry: Entry, near: list[Entry]) -> str:
        alike = [each for each in near if is_of_one_kind(entry, each)]
        if not alike:
            return f"{self._other} has it {_kind(entry, near[0])}: never compared"
        names = ", ".join(_names(alike))
        return f"{self._other} has {counted(len(alike), 'result')} of it left ({names}), and which is its like is not clear"

    def _where_others_are(self, entry: Entry, same: list[Entry]) -> str:
        timed = [each for each in same if can_be_compared(each)]
        if not timed:
            return f"{self._other} has no time of it: {', '.join(_untimed(same))}"
        if not any(is_of_one_kind(entry, each) for each in timed):
            return f"{self._other} has it {_kind(entry, timed[0])}: never compared"
        if any(id(each) in self._compared for each in timed):
            return f"what {self._other} has of it is compared with another"
        if any(id(each) in self._partners and is_of_one_kind(each, self._partners[id(each)]) for each in timed):
            return f"what {self._other} has of it is compared with another --by workload"
        return f"what {self._other} has of it goes with another, which is not compared"


def _by_regime(entries: Iterable[Entry]) -> dict[tuple[str, str], list[Entry]]:
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        found[entry.regime_key].append(entry)
    return found


def _names(entries: Sequence[Entry]) -> list[str]:
    """Implementations, each once; with their backends where these are several."""
    several = len({entry.row.backend for entry in entries}) > 1
    return list(dict.fromkeys(_name(entry, several) for entry in entries))


def _untimed(entries: Sequence[Entry]) -> list[str]:
    """The same, each with how it ended or what kind of evidence it is."""
    several = len({entry.row.backend for entry in entries}) > 1
    return list(dict.fromkeys(f"{_name(entry, several)} {_end(entry)}" for entry in entries))


def _name(entry: Entry, with_backend: bool) -> str:
    return f"{entry.row.implementation} ({entry.row.backend})" if with_backend else entry.row.implementation


def _end(entry: Entry) -> str:
    return ending(entry) if entry.row.outcome != Outcome.OK else entry.row.evidence


def _kind(one: Entry, other: Entry) -> str:
    if one.method_version != other.method_version:
        return f"by method version {other.method_version} instead of {one.method_version}"
    return f"{other.row.evidence}, not {one.row.evidence}"


def _differing(one: Entry, other: Entry) -> str:
    names = ("backend", "implementation", "switches", "device_slot")
    differing = [name for name in names if getattr(one.row, name) != getattr(other.row, name)]
    words = ", ".join(f"{name.replace('_', ' ')} {_shown(getattr(other.row, name))}" for name in differing)
    return f"with {words}" if words else "as another case"


def _shown(value: object) -> str:
    return ", ".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, dict) else str(value)
