"""What every test stands on: children that find the sources, and no file of the user's read or written."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

# Read when numpy and torch are loaded, here and in every child.  Threads of a product this small wait for each other, and on
# cores that others use too they spin for ten times as long as the product takes.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# What a shell starts in the background, or nohup starts, ignores these, and so would every child whose end is tested here.  A
# handler of ours is not handed down: children have the system's, and a log-out does not end the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# A shared host takes seconds for what it mostly does in milliseconds: no clock decides whether a property holds.
settings.register_profile("shared host", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared host")


def pytest_collection_finish() -> None:
    """What was imported for all tests lives as long as they do: to look through it for garbage only costs them time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _apart_from_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers import ``suite`` and ``tests`` from this checkout; locks and caches are the session's own.

    They may keep its bytecode whatever the user has set: hundreds of children would each compile the same sources.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        patch.setenv("ROOFBENCH_LOCK_DIR", str(tmp_path_factory.mktemp("locks")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
