"""Modules that interpret or compile kernels, each run in a process of its own.

Triton decides as it is imported whether it interprets, and a compiler that gives up takes its process with it.  The processes
are forked from one that has torch, which every one of them would take seconds to import.
"""

import json
import os
import runpy
import sys
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch"])
LIMIT_S = 280.0


class Ended(NamedTuple):
    """What a process printed, and its status: none where it was ended at its limit."""

    printed: str
    errors: str
    status: int | None


def run(module: str, arguments: Sequence[str], variables: Mapping[str, str], limit_s: float = LIMIT_S) -> Ended:
    """``python -m module`` with these variables beside those of this process."""
    with TemporaryDirectory() as folder:
        printed, errors = Path(folder, "printed"), Path(folder, "errors")
        words = (module, tuple(arguments), {**os.environ, **variables}, str(printed), str(errors))
        process = _CONTEXT.Process(target=_become, args=words)
        process.start()
        process.join(limit_s)
        status = process.exitcode
        if status is None:
            process.kill()
            process.join()
        process.close()
        told = [path.read_text() if path.exists() else "" for path in (printed, errors)]
        return Ended(told[0], told[1], status)


def interpreted(module: str, names: Iterable[str] = ()) -> Any:
    """The JSON that a module prints of kernels under Triton's interpreter."""
    done = run(module, list(names), {"TRITON_INTERPRET": "1"})
    assert done.status == 0, done.errors[-2000:]
    return json.loads(done.printed)


def compiled(module: str, specs: Sequence[str], cache: Path) -> dict[str, dict[str, Any]]:
    """What each spec became, by its text, of a module that prints a JSON object a line."""
    done = run(module, specs, compiling(cache))
    found = lines_by_spec(done.printed)
    assert set(found) == set(specs), done.errors[-2000:]
    return found


def compiling(cache: Path | str) -> dict[str, str]:
    """The variables of a process that compiles."""
    return {"TRITON_CACHE_DIR": str(cache), "TRITON_INTERPRET": "0"}


def lines_by_spec(printed: str) -> dict[str, dict[str, Any]]:
    """Objects of a line each, by their ``spec``."""
    return {line.pop("spec"): line for line in map(json.loads, printed.splitlines())}


def _become(module: str, arguments: Sequence[str], environment: Mapping[str, str], printed: str, errors: str) -> None:
    for path, stream in ((printed, sys.stdout), (errors, sys.stderr)):
        with Path(path).open("w") as file:
            os.dup2(file.fileno(), stream.fileno())
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
