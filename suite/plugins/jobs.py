"""A plugin's job, imported when it is first asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from traceback import extract_tb
from typing import Any

from suite import loading
from suite.errors import RoofbenchError, UsageError
from suite.jobs.job import Job
from suite.plugins.contract import wrong_with_job
from suite.plugins.offers import Offer, find
from suite.plugins.slow import told_when_slow
from suite.reason import named

OURS = (__file__, loading.__file__)


def outside_job(name: str) -> Job | None:
    """The job that a package offers by this name, ``None`` where none does; ``UsageError`` where it cannot be had."""
    offer = find("job", name)
    return None if offer is None else _made(offer)


@cache
def _made(offer: Offer) -> Job:
    with _told(offer), told_when_slow(f"importing {offer.title} ({offer.entry})"):
        job: Any = loading.loaded(offer.target)()
        wrong = wrong_with_job(job, offer.name)
    if wrong:
        raise UsageError(f"{offer.title} {wrong} ({offer.entry})")
    made: Job = job
    return made


@contextmanager
def _told(offer: Offer) -> Iterator[None]:
    """Whatever a plugin raises, a ``sys.exit`` of its own included, ends the command in one line that says whose it is."""
    try:
        yield
    except (KeyboardInterrupt, RoofbenchError):
        raise
    except BaseException as error:
        raise UsageError(f"{offer.title} cannot be loaded: {named(error)}{_where(error)} ({offer.entry})") from error


def _where(error: BaseException) -> str:
    """The line of the file that raised, where one was reached; an import names its own place in its message."""
    frames = [
        frame for frame in extract_tb(error.__traceback__) if frame.filename not in OURS and "importlib" not in frame.filename
    ]
    return f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
