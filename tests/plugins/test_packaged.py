"""The example as its build backend packs it: what a wheel holds is what a checkout does."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.plugins.installed import EXAMPLE, roofbench


@pytest.mark.skipif(find_spec("hatchling") is None or find_spec("pip") is None, reason="needs pip and hatchling")
def test_an_installed_wheel_offers_the_job_the_backend_and_their_files(tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", str(site), str(EXAMPLE)], check=True, capture_output=True)
    said = roofbench(tmp_path, site, "plan", "experiment=matvec")
    assert said.status == 0, said.err
    assert "matvec 8192x4096 fp64 einsum cold/sustained/device" in said.out
    assert "on numpy" in said.out
