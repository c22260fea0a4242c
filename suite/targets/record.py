"""One cell of the matrix: what a program became on a target, or why it did not."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

from suite.outcome import Evidence, Outcome

OUTCOMES = (Outcome.OK, Outcome.UNSUPPORTED, Outcome.ERROR, Outcome.TIMEOUT, Outcome.CRASHED)
# A program that should compile and does not.
FAILED = (Outcome.ERROR, Outcome.TIMEOUT, Outcome.CRASHED)
LIMIT_S = "limit_s"  # the fact of a timeout that says how long was waited


class Place(NamedTuple):
    """A cell before it is compiled."""

    key: str
    kernel: str
    program: str
    target: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Compiled:
    """``key`` is the hash of what it depends on: the program's sources, the target, and ``versions``, which are those of the
    tools and the values of the environment variables that change what these make.

    ``facts`` are of the kernel, empty unless it is ``ok``; ``configuration`` is how the product cuts it there.
    """

    key: str
    kernel: str
    program: str
    target: str
    outcome: Outcome
    reason: str
    configuration: str
    seconds: float
    compiled_at: datetime
    facts: Mapping[str, Any]
    versions: Mapping[str, str]

    def __post_init__(self) -> None:
        assert self.outcome in OUTCOMES, self.outcome

    @property
    def failed(self) -> bool:
        """Whether it is a cell that should have compiled."""
        return self.outcome in FAILED

    def to_json(self) -> dict[str, Any]:
        """JSON values, with the kind of evidence."""
        values = {**asdict(self), "outcome": self.outcome.value, "compiled_at": self.compiled_at.isoformat()}
        return {**values, "evidence": Evidence.COMPILED.value}

    @classmethod
    def answered(cls, place: Place, answer: Mapping[str, Any], compiled_at: datetime) -> Self:
        """Of what a child answered, or of what became of the child."""
        names = ("reason", "configuration", "seconds", "facts")
        return cls(
            **place._asdict(),
            outcome=Outcome(answer["outcome"]),
            compiled_at=compiled_at,
            **{name: answer[name] for name in names},
        )


def key_of(digest: str, target: str, versions: Mapping[str, str]) -> str:
    """The content key of a cell."""
    content = json.dumps([digest, target, dict(sorted(versions.items()))])
    return hashlib.sha256(content.encode()).hexdigest()[:32]
