"""Plugins installed into a folder of a test's own, which a child finds through ``PYTHONPATH``.

What ``pip install --target`` leaves is a copy of the package and its metadata; so does this, without a process and a network.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.cli.command import TIME_LIMIT_S, Said
from tests.cli.ready import Server

EXAMPLE = Path(__file__).parent / "example_package"
# The backend on a machine whose last-level cache is said to be small, so that little is calibrated over and rotated.
SMALL_CACHE = """
from dataclasses import replace

from roofbench_example.backend import NumpyBackend


class SmallCacheNumpy(NumpyBackend):
    def devices(self):
        return [replace(device, llc_bytes=1 << 20) for device in super().devices()]
"""


OUTSIDE_DEVICES = """
import json, sys
from suite.commands.devices import _json_rows, _of_plugins
json.dump([row for found in _of_plugins([], None) for row in _json_rows(found)], sys.stdout)
"""


def install_example(site: Path, version: str = "") -> Path:
    """Put the example package into ``site``, with a small cache, as of another ``version`` where one is given."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    package = site / "roofbench_example"
    shutil.copytree(EXAMPLE / package.name, package, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    (package / "small_cache.py").write_text(SMALL_CACHE)
    groups = project["entry-points"] | {"roofbench.backends": {"numpy": "roofbench_example.small_cache:SmallCacheNumpy"}}
    return write_metadata(site, project["name"], version or project["version"], groups)


def write_metadata(site: Path, name: str, version: str, groups: Mapping[str, Mapping[str, str]]) -> Path:
    """The folder beside a package that says what it is and what it offers."""
    for old in site.glob(f"{name.replace('-', '_')}-*.dist-info"):
        shutil.rmtree(old)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [line for group, names in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in names.items()))]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
    return site


def write_plugin(site: Path, name: str, modules: Mapping[str, str], **groups: Mapping[str, str]) -> Path:
    """A plugin ``name`` 0.1 of a few lines: ``modules`` by file, entry points as ``jobs={...}`` and ``backends={...}``."""
    package = site / name.replace("-", "_")
    for file, text in {"__init__.py": "", **modules}.items():
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(text)
    return write_metadata(site, name, "0.1", {f"roofbench.{group}": names for group, names in groups.items()})


def roofbench(folder: Path, site: Path, *arguments: str) -> Said:
    """Run ``roofbench`` in ``folder`` with what is installed in ``site`` beside it, forked from one that has read ``site``."""
    return Said(*_server(site).call(folder, arguments, {**os.environ, "PYTHONPATH": _path(site)}, TIME_LIMIT_S))


@cache
def _server(site: Path) -> Server:
    return Server(_path(site))


def _path(site: Path) -> str:
    return os.pathsep.join([str(site), os.environ["PYTHONPATH"]])


def outside_devices(site: Path) -> tuple[list[dict[str, Any]], str]:
    """What ``roofbench devices --json`` says of plugins, without asking our own backends; and what it complains of."""
    said = run(site, site, "-c", OUTSIDE_DEVICES)
    assert said.status == 0, said.err
    return json.loads(said.out), said.err


def run(folder: Path, site: Path, *arguments: str) -> Said:
    """Run Python in ``folder``, likewise."""
    child = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": _path(site)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    return Said(child.returncode, child.stdout, child.stderr)
