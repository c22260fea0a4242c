"""What a selftest leaves behind: one finding a question, and how well repeated measurements of the device agree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Self

REPEATABILITY, CONTENTION = "repeatability", "contention"  # the questions whose answers say whether a repeatability is one
UNKNOWN_LEFT_OUT = (
    "unknown_left_out"  # the figure of a repeatability that counts cases of unknown contention; older ones held them
)
PRUNED = "pruned_runs"  # the fact that names runs which were removed from the store since


class Status(StrEnum):
    """``warn`` is what a reader of results should know, ``fail`` what makes them untrustworthy."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNAVAILABLE = "unavailable"


class Finding(NamedTuple):
    """The answer to one question.

    ``name`` is the question's (``timer``, ``flush``, ``load``, ``repeatability``, ``clock``, ``contention``); ``says`` one
    sentence that a cluster engineer can act on; ``figures`` the numbers it rests on, in SI units, units in their names.
    """

    name: str
    status: Status
    says: str
    figures: Mapping[str, float | str | None] = {}


class Repeatability(NamedTuple):
    """How far two measurements of one case differ on this device: 95th percentile of abs(second / first - 1) over ``cases``,
    neither of whose measurements was beside other work, as far as is known of both.

    ``cycles_rel`` is over the compute-bound cases, in cycles of the device's own counter (in time where there is none, and
    ``in_cycles`` is then false); ``bytes_rel`` over the memory-bound ones.  ``None`` where there was no such case.
    """

    cycles_rel: float | None
    bytes_rel: float | None
    in_cycles: bool
    cases: int

    @property
    def worst_rel(self) -> float | None:
        """What a difference between two runs must exceed to mean anything."""
        return max((value for value in (self.cycles_rel, self.bytes_rel) if value is not None), default=None)


@dataclass(frozen=True, slots=True)
class Selftest:
    """One selftest of one device.  ``runs`` are the ids of the runs in the same store whose results it was judged from."""

    device_uid: str
    device: str
    backend: str
    runs: tuple[str, ...]
    finished_at: datetime
    findings: tuple[Finding, ...]
    repeatability: Repeatability | None = None
    facts: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The worst of the findings; unavailable only where nothing could be asked."""
        for status in (Status.FAIL, Status.WARN, Status.OK):
            if any(finding.status is status for finding in self.findings):
                return status
        return Status.UNAVAILABLE

    def to_json(self) -> dict[str, Any]:
        return {
            "device_uid": self.device_uid,
            "device": self.device,
            "backend": self.backend,
            "runs": list(self.runs),
            "finished_at": self.finished_at.isoformat(),
            "findings": [{**each._asdict(), "figures": dict(each.figures)} for each in self.findings],
            "repeatability": self.repeatability._asdict() if self.repeatability else None,
            "facts": dict(self.facts),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            device_uid=data["device_uid"],
            device=data["device"],
            backend=data["backend"],
            runs=tuple(data["runs"]),
            finished_at=datetime.fromisoformat(data["finished_at"]),
            findings=tuple(
                Finding(each["name"], Status(each["status"]), each["says"], each["figures"]) for each in data["findings"]
            ),
            repeatability=Repeatability(**data["repeatability"]) if data["repeatability"] else None,
            facts=data["facts"],
        )
