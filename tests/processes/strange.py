"""A backend that writes to the launcher's socket behind the worker's back."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from tests.fake.backend import FakeBackend


class Garbling(FakeBackend):
    """Sends a length that no message has."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        os.write(int(sys.argv[sys.argv.index("--fd") + 1]), b"\xff" * 8)
