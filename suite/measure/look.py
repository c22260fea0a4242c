"""A look: a few unverified launches of a candidate on data of its own, to tell what is worth measuring.  It is no result."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

from suite.backend import Backend, Kernel, Sampler
from suite.case import Case

LEAST_SAMPLES = 2  # the first of a look runs in what the candidate before it left of caches and clock
MOST_SAMPLES = 100_000
LONG_S = 2e-3  # a launch, beside which it is little what the host takes to start it and to hear of its end
BRIEF_S = 0.04  # a shorter look, unless it is from idle, only tells who is worth a longer one
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

    What times launches on the device takes several of them to make.  Where one is long it is made for the first look that is
    not brief: until then the host times them one by one, of which what it adds itself is a small part.
    Raises ``Unsupported``, and whatever the backend's framework raises, as ``take`` does.
    """

    def __init__(self, backend: Backend, case: Case, seed: int, sample_s: float) -> None:
        reason = backend.supports(case)
        if reason is not None:
            raise Unsupported(reason)
        self._backend, self._case, self._sample_s = backend, case, sample_s
        self._kernel: Kernel | None = backend.prepare(case, 1, seed)
        self._sampler: Sampler | None = None
        self._is_timed_by_host = False
        self._known_ns: tuple[int, ...] = ()
        self._per_sample_s = sample_s
        try:
            self._time_by_host()
            if not self._is_timed_by_host:
                self._time_as_asked()
        except BaseException:
            self.close()
            raise

    def take(self, seconds: float, idle_s: float = 0.0) -> Glimpse:
        """Launch back to back for about ``seconds``, after ``idle_s`` without work."""
        assert self._sampler is not None, "it was closed"
        if self._is_timed_by_host and (seconds >= BRIEF_S or idle_s):
            self._time_as_asked()
        time.sleep(idle_s)
        count = max(round(seconds / max(self._per_sample_s, NS)), 1 if self._is_timed_by_host else LEAST_SAMPLES)
        durations_ns = self._known_ns if count == 1 else ()
        self._known_ns = ()
        if not durations_ns:
            durations_ns = tuple(self._sampler.sample(min(count, MOST_SAMPLES)))
        self._per_sample_s = sum(durations_ns) * NS / len(durations_ns)
        return Glimpse(durations_ns, self._sampler.launches)

    def _time_by_host(self) -> None:
        """Launch once and see whether that is long; the launch is the first look, if one is enough."""
        assert self._kernel is not None
        single = replace(self._case, regime=self._case.regime._replace(dispatch="call"))
        if self._case.regime.dispatch == "call" or self._backend.supports(single) is not None:
            return
        self._sampler = self._backend.sampler(self._kernel, single, self._sample_s)
        self._known_ns = tuple(self._sampler.sample(1))
        self._per_sample_s = sum(self._known_ns) * NS
        self._is_timed_by_host = self._per_sample_s >= LONG_S * self._sampler.launches

    def _time_as_asked(self) -> None:
        """Make the sampler of the case's own regime."""
        assert self._kernel is not None
        if self._sampler is not None:
            self._sampler.close()
        self._sampler, self._is_timed_by_host, self._known_ns = None, False, ()
        self._per_sample_s = self._sample_s
        self._sampler = self._backend.sampler(self._kernel, self._case, self._sample_s)

    def close(self) -> None:
        """Free what it holds."""
        for part in (self._sampler, self._kernel):
            if part is not None:
                part.close()
        self._sampler = self._kernel = None
