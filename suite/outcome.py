"""How a case can end.  Every planned case ends in exactly one of these, with its reason: never absent, never a zero."""

from enum import StrEnum


class Outcome(StrEnum):
    """The end of one case."""

    OK = "ok"
    INCORRECT = "incorrect"  # the output differs from the reference by more than the job's tolerance
    IMPOSSIBLE = "impossible"  # faster than the physical limit allows
    UNSUPPORTED = "unsupported"  # the device or backend does not offer it; the reason says what is missing
    OUT_OF_MEMORY = "out_of_memory"  # predicted by plan, or met on the device
    TIMEOUT = "timeout"  # a phase of a case, or a compilation, passed its limit; or a rank was stopped by a signal: all killed
    CRASHED = "crashed"  # the worker died, or its device context is lost
    ERROR = "error"  # the implementation raised
    NOT_HONOURED = "not_honoured"  # a forced algorithm was not the one that ran
    UNCHECKED = "unchecked"  # imported only: timed by a tool that did not look at the result


class Evidence(StrEnum):
    """Where a number comes from; kinds are never mixed without a visible difference."""

    MEASURED = "measured"
    IMPORTED = "imported"
    DECLARED = "declared"
    MODELLED = "modelled"
    COMPILED = "compiled"
    SIMULATED = "simulated"


# Kinds that are compared among themselves; the others (a peer's log, a compiler's estimate) have no roofs.
WITH_ROOFS = (Evidence.MEASURED, Evidence.SIMULATED)


class Bound(StrEnum):
    """The largest of a case's floors: the first thing a reader sees."""

    COMPUTE = "compute"
    MEMORY = "memory"
    CACHE = "cache"  # memory would be the largest, but the data stays in the last-level cache
    LINK = "link"
    LAUNCH = "launch"
    UNKNOWN = "unknown"  # no peak and no bandwidth are known for this device
