"""A look: a few unverified launches of a candidate on data of its own, to tell what is worth measuring.  It is no result."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from suite.backend import Backend, Kernel, Sampler
from suite.case import Case

LEAST_SAMPLES = 2  # the first of a look runs in what the candidate before it left of caches and clock
MOST_SAMPLES = 100_000
NS = 1e-9


class Glimpse(NamedTuple):
    """What one look took, in order: nanoseconds of samples of ``launches`` launches each."""

    durations_ns: tuple[int, ...]
    launches: int

    def to_json(self) -> dict[str, Any]:
        return {"durations_ns": list(self.durations_ns), "launches": self.launches}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """``ValueError`` for what no look can have taken."""
        durations_ns = tuple(int(each) for each in data["durations_ns"])
        if not durations_ns or min(durations_ns) < 1 or int(data["launches"]) < 1:
            raise ValueError("a look takes at least one launch and one nanosecond")
        return cls(durations_ns, int(data["launches"]))


class Unsupported(Exception):
    """The backend does not offer the candidate; the message is its reason."""


class Look:
    """One candidate made ready, on one input set.  A sample lasts about ``sample_s`` seconds, or one launch.

    Raises ``Unsupported``, and whatever the backend's framework raises.
    """

    def __init__(self, backend: Backend, case: Case, seed: int, sample_s: float) -> None:
        reason = backend.supports(case)
        if reason is not None:
            raise Unsupported(reason)
        self._kernel: Kernel | None = backend.prepare(case, 1, seed)
        self._sampler: Sampler | None = None
        self._per_sample_s = sample_s
        try:
            self._sampler = backend.sampler(self._kernel, case, sample_s)
        except BaseException:
            self.close()
            raise

    def take(self, seconds: float, idle_s: float = 0.0) -> Glimpse:
        """Launch back to back for about ``seconds``, after ``idle_s`` without work."""
        assert self._sampler is not None, "it was closed"
        time.sleep(idle_s)
        count = round(seconds / max(self._per_sample_s, NS))
        durations_ns = tuple(self._sampler.sample(min(max(count, LEAST_SAMPLES), MOST_SAMPLES)))
        self._per_sample_s = sum(durations_ns) * NS / len(durations_ns)
        return Glimpse(durations_ns, self._sampler.launches)

    def close(self) -> None:
        """Free what it holds."""
        for part in (self._sampler, self._kernel):
            if part is not None:
                part.close()
        self._sampler = self._kernel = None
