"""What is alike wherever torch compiles: whether it can, code and files of a case's own, and nothing that falls back unseen.

What is compiled for a case is its own code with its own folder of files, taken away again: neither what other cases left nor
what is found on disk decides what is chosen, and nothing stays behind.  Guards are left out, for the sizes of a case do not
change: no launch can compile again.
"""

import os
import shutil
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

import torch

from backends.torch.precision import NotInForce
from backends.torch.target import Target

KEEPING_FROM_IT = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")  # when they are 1
FOLDERS = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
# No pool of processes that outlives a compilation; no headers compiled for later ones, which have a folder of their own.
LEAVING_NOTHING = {"compile_threads": 1, "cpp_cache_precompile_headers": False}
# Whose warnings are about code of torch's own: a class that it is to stop using, tf32 that one might turn on.
COMPILERS_OWN = r"torch\.(_dynamo|_functorch|_inductor)\b"

Function = Callable[..., Any]


def reason(target: Target) -> str | None:
    """Why torch compiles nothing for this device; ``None`` where it does."""
    off = next((name for name in KEEPING_FROM_IT if os.environ.get(name) == "1"), None)
    if off is not None:
        return f"{off}=1 keeps torch from compiling; unset it"
    if target.kind == "cuda":
        from backends.triton.works import why_not

        return why_not() or None
    return no_cpp_compiler()


def no_cpp_compiler() -> str | None:
    """Why torch can compile nothing for a CPU here: it writes C++, and a module of Python around it."""
    name = os.environ.get("CXX") or "g++"
    if shutil.which(name) is None:
        return f"torch.compile on a CPU needs a C++ compiler, and there is no {name} here; install one, or name it in CXX"
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return "torch.compile on a CPU needs Python.h, which is not here; install the headers of this Python"
    return None


def compiled(function: Function, mode: str) -> Function:
    """``function`` as torch will compile it at its first call, which belongs within ``compiling``.

    Its code is its own.  By the code torch finds what it has compiled, and without guards it would take the first that it
    finds; with them it compiles the same code for a few cases only, and from then on runs what it was to compile as it stands.
    """
    assert isinstance(function, FunctionType)
    own = FunctionType(
        function.__code__.replace(), function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made: Function = torch.compile(own, fullgraph=True, dynamic=False, options=_options(mode))
    return made


@contextmanager
def compiling() -> Iterator[Path]:
    """A folder for all that the compilers write while it is open, and no gradients.

    Raises ``NotInForce`` where nothing was written: what was launched is then what nobody compiled.
    """
    with _folder() as folder, torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=COMPILERS_OWN)
        yield folder
        if not any(folder.rglob("*.py")):
            names = " and ".join(KEEPING_FROM_IT)
            raise NotInForce(f"torch.compile compiled nothing; unset {names}, or take the library")


def _options(mode: str) -> Mapping[str, Any]:
    """Those of the mode, and what keeps compiling within this process and its folder."""
    from torch._inductor import list_mode_options, list_options  # loads the compiler

    known = {name: value for name, value in LEAVING_NOTHING.items() if name in list_options()}
    return {**list_mode_options(mode), **known, "guard_filter_fn": torch.compiler.skip_all_guards_unsafe}


@contextmanager
def _folder() -> Iterator[Path]:
    before = {name: os.environ.get(name) for name in FOLDERS}
    with TemporaryDirectory(prefix="roofbench-compiled-", ignore_cleanup_errors=True) as folder:
        os.environ.update(dict.fromkeys(FOLDERS, folder))
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
