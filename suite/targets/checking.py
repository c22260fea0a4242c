"""Variables that XLA or a TPU's compiler does not take, found out by a child before anything is compiled.

Both end their process over a flag that they do not know: every cell would end so.
"""

import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping

from suite.errors import UsageError
from suite.reason import logged_error, one_line, shortened
from suite.targets.names import BY_NAME, TPU, XLA
from suite.targets.pool import MODULE, START_LIMIT_S, said_last
from suite.targets.record import Place
from suite.targets.variables import variables_of

OF_TPU = ("LIBTPU_", "TPU_")
READ_STRICTLY = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "JAX_")  # what is not read at all can be wrong in nothing
MOST_SHOWN = 160  # characters of a variable's value


def refuse_wrong_variables(places: Iterable[Place]) -> None:
    """``UsageError`` where a compiler does not take the variables that cells depend on; nobody is asked where none is set.

    One that does not come to its end without them either has something else against it, which its cells will say.
    ``places`` are those of the cells that are to be compiled.
    """
    asked: dict[str, Mapping[str, str]] = {}
    for place in places:
        for kind in BY_NAME[place.target].needs:
            if kind in (XLA, TPU):
                asked.setdefault(kind, _of_kind(kind, variables_of(place.versions)))
    for kind, variables in asked.items():
        if variables and (said := _what_is_said(kind)) and not _what_is_said(kind, without=variables):
            given = " and ".join(f"{name}={shortened(value, MOST_SHOWN)}" for name, value in variables.items())
            raise UsageError(
                f"nothing can be compiled with {given}: {one_line(logged_error(said) or said)}; correct it, or unset "
                f"{' and '.join(variables)}"
            )


def _of_kind(kind: str, variables: Mapping[str, str]) -> dict[str, str]:
    strict = {name: value for name, value in variables.items() if name.startswith(READ_STRICTLY)}
    return {name: value for name, value in strict.items() if name.startswith(OF_TPU) == (kind == TPU)}


def _what_is_said(kind: str, without: Collection[str] = ()) -> str:
    """The last words of a child that does not come to its end; empty where it does.  It lacks the variables ``without``."""
    command = [sys.executable, "-m", MODULE, "check", "--kind", kind, "--parent", str(os.getpid())]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=START_LIMIT_S,
            stdin=subprocess.DEVNULL,
            check=False,
            env={name: value for name, value in os.environ.items() if name not in without} | {"PYTHONSAFEPATH": "1"},
        )
    except subprocess.TimeoutExpired:
        return f"the compiler did not read them within {START_LIMIT_S:g} s"
    return (said_last(done.stderr) or f"the compiler ended with status {done.returncode}") if done.returncode else ""
