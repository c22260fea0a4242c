"""Simulated devices in the process of the tests, put away again after each."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.host.amdgpu import DriverFiles
from backends.rocm import RocmBackend
from tests.rocm.devices import DEVICES
from tests.rocm.hip import Hip

Attach = Callable[[str], Hip]


@pytest.fixture
def attach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Attach:
    """Have torch and AMD SMI show a device of ``tests.rocm.devices``; files of the driver are below ``tmp_path``."""
    monkeypatch.setattr(DriverFiles.__init__, "__defaults__", (tmp_path,))

    def attached(name: str) -> Hip:
        simulated = DEVICES[name]()
        hip = Hip(simulated.properties)
        hip.install(monkeypatch.setattr)
        monkeypatch.setitem(sys.modules, "amdsmi", simulated.library())  # type: ignore[arg-type]
        return hip

    return attached


@pytest.fixture
def backend() -> RocmBackend:
    return RocmBackend({})
