"""How large a flush of the cache must be for a launch after it to be cold."""

from suite.errors import UsageError
from suite.measure.regimes import MOST_FLUSH_FACTOR

# A flush the size of the cache leaves some of what was there: caches are no perfect queues, and some hold other lines back.
LEAST_FLUSH_FACTOR = 2.0


def flush_factor(backend: str, factor: float) -> float:
    """The factor as given, in last-level caches; ``UsageError`` for one that would call warm launches cold."""
    if factor < LEAST_FLUSH_FACTOR:
        raise UsageError(
            f"backends.{backend}.options.flush_factor={factor:g} would leave data in the cache that a cold case must not find; "
            f"it is at least {LEAST_FLUSH_FACTOR:g}"
        )
    if factor > MOST_FLUSH_FACTOR:
        raise UsageError(
            f"backends.{backend}.options.flush_factor={factor:g} last-level caches before every launch are more than "
            f"{MOST_FLUSH_FACTOR:g}; {LEAST_FLUSH_FACTOR:g} are enough for a cold one"
        )
    return factor
