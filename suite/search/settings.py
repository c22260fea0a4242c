"""Whether a search has something to search in."""

from suite.errors import UsageError
from suite.settings import RunConfig

SEARCHED = "gemm"  # the job whose shapes are sought


def check_search(config: RunConfig) -> None:
    """Raise ``UsageError`` for sizes and times that find nothing, and for jobs whose shapes are not searched for."""
    assert config.search is not None, "a run without a search has nothing to check"
    config.search.check()
    others = [name for name in config.jobs if name != SEARCHED]
    if others or not config.jobs:
        raise UsageError(
            f"search looks for shapes of the job {SEARCHED} alone, not of {', '.join(others) or 'none'}; write job={SEARCHED}"
        )
