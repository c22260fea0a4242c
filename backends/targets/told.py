"""What can be compiled here: the programs with the digest of their sources, the tools with their versions and the variables
that change what they make, what is missing.
"""

import hashlib
import json
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from backends.host.cpuinfo import processors
from backends.targets.catalogue import Program, programs
from backends.targets.xla import SETTINGS
from backends.triton.version import triton_version
from backends.variables import variables
from suite.targets.names import TPU, TRITON, XLA

ROOT = Path(__file__).parents[2]
OWN = "backends/targets"
REMEDY = "pip install 'roofbench[targets]'"
TAKEN_AWAY = ("TRITON_INTERPRET",)  # before Triton is loaded to compile
NEEDED = {TRITON: ("torch", "triton"), XLA: ("jax",), TPU: ("libtpu",)}


def told() -> dict[str, Any]:
    """For each kind, ``missing`` is a reason, empty where nothing is."""
    return {
        "programs": [_of_program(program) for program in programs()],
        "versions": {
            TRITON: _versions("torch", "triton") | _variables(TRITON),
            XLA: _versions("jax", "jaxlib", "libtpu") | _variables(XLA),
        },
        "missing": {kind: _missing(kind) for kind in NEEDED},
        "host": processors().name,
    }


def _of_program(program: Program) -> dict[str, Any]:
    return {
        "name": program.name,
        "kernel": program.kernel,
        "kind": program.kind,
        "digest": _digest(json.dumps([program.make, program.given], sort_keys=True), (*program.sources, OWN)),
    }


def _digest(given: str, folders: tuple[str, ...]) -> str:
    whole = hashlib.sha256(given.encode())
    for folder in folders:
        whole.update(_digest_of(folder))
    return whole.hexdigest()[:32]


@cache
def _digest_of(folder: str) -> bytes:
    """Of the text of a room's files, wherever they lie; and of the files that stand beside rooms of kernels."""
    found = sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".yaml"))
    beside = sorted((ROOT / folder).parent.glob("*.py")) if folder.startswith("backends/triton/") else []
    whole = hashlib.sha256()
    for path in (*found, *beside):
        whole.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.digest()


def _variables(kind: str) -> dict[str, str]:
    """Those that the compiling child leaves as they are."""
    return {name: value for name, value in variables(kind).items() if name not in (*SETTINGS, *TAKEN_AWAY)}


def _versions(*packages: str) -> dict[str, str]:
    return {"python": sys.version.split()[0], **{name: found for name in packages if (found := _version(name))}}


def _version(package: str) -> str:
    try:
        return triton_version() if package == "triton" else version(package)
    except PackageNotFoundError:
        return ""


def _missing(kind: str) -> str:
    absent = [name for name in NEEDED[kind] if find_spec(name) is None]
    return f"{' and '.join(absent)} not installed; {REMEDY}" if absent else ""
