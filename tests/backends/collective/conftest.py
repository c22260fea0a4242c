"""Ranks that several files ask: each is a process that has torch to load, which takes longer than most of what it is told."""

from collections.abc import Iterator

import pytest

from backends.torch.collective.crew import Crew
from tests.backends.collective.helpers import crew_of


@pytest.fixture(scope="session")
def pair() -> Iterator[Crew]:
    """Two ranks, for tests that leave them alive and close what they make on them."""
    with crew_of(2) as crew:
        yield crew
