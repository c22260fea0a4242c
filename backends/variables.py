"""Environment variables that change what a compiler makes of the same program.

They are told by what their names begin with, as new ones come with every release of Triton, JAX and libtpu.  Those of a TPU's
runtime are not: most of them say which host of which slice this is.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from suite.environment import LEFT_OUT, is_secret, without_identity
from suite.targets.names import TRITON, XLA

FLAGS = "XLA_FLAGS"
_READ = {
    TRITON: re.compile(
        r"(TRITON|AMDGCN|NVPTX|PTXAS|LLVM|MLIR)_\w+|DISABLE_(LLVM_OPT|PTXAS_OPT|MMA_V\d)|ALLOW_LHS_TMEM_LAYOUT_CONVERSION|USE_IR_LOC"
    ),
    XLA: re.compile(r"(XLA|LIBTPU|JAX|PJRT|TF_XLA)_\w+|TPU_(LIBRARY_PATH|MEGACORE)|NPROC"),
}
# Where files are kept, who else there is, how much memory is taken and from what device, and what is printed of a compilation
# beside it; 64-bit types are always on here.
_WITHOUT_EFFECT = re.compile(
    r"TRITON_(CACHE|HOME|REDIS|REMOTE_CACHE|PRINT|DUMP|KERNEL_DUMP|REPRODUCER|ENABLE_LLVM_DEBUG)\w*|XLA_(PYTHON_)?CLIENT_\w+|"
    r"\w+_ENABLE_(DUMP|TIMING|DIAGNOSTICS)|"
    r"JAX_(PLATFORM|COMPILATION_CACHE|PERSISTENT_CACHE|ENABLE_COMPILATION_CACHE|COORDINATOR|ENABLE_X64)\w*|"
    r"JAX_(PROCESS_ID|NUM_PROCESSES|LOCAL_DEVICE_IDS|TRACEBACK|DUMP|LOG|LOGGING)\w*"
)


def variables(kind: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those that are set of what ``TRITON`` or ``XLA`` reads, by name; of flags that stand in a file, what is in it too.

    Home directories, addresses and secrets are taken out: what is told here is stored and published.
    """
    return {
        name: LEFT_OUT if is_secret(whole := _whole(name, value)) else without_identity(whole)
        for name, value in sorted(environment.items())
        if value and _READ[kind].fullmatch(name) and not _WITHOUT_EFFECT.fullmatch(name)
    }


def with_flag(given: str, flag: str) -> str:
    """A value of ``XLA_FLAGS`` with one flag more; of one that names a file, what stands in it.

    A file that cannot be read stays what it is, for XLA to say so.
    """
    flags = _in_file(given) if _names_a_file(given) else given
    return given if flags is None else f"{flags} {flag}".strip()


def _whole(name: str, value: str) -> str:
    found = _in_file(value) if name == FLAGS else None
    return value if found is None else f"{value}: {found}"


def _in_file(value: str) -> str | None:
    """The flags in the file that ``XLA_FLAGS`` names; ``None`` where it names none, or one that cannot be read."""
    if not _names_a_file(value):
        return None
    try:
        return " ".join(Path(value).read_text(errors="replace").split())
    except OSError:
        return None


def _names_a_file(value: str) -> bool:
    """XLA takes a value that begins with no dash for the name of a file."""
    return bool(value.strip()) and not value.lstrip().startswith("-")
