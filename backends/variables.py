"""Environment variables that change what a compiler makes of the same program.

They are told by what their names begin with, as new ones come with every release of Triton, JAX and libtpu.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from suite.targets.names import TRITON, XLA

FLAGS = "XLA_FLAGS"
_READ = {
    TRITON: re.compile(
        r"(TRITON|AMDGCN|NVPTX|PTXAS|LLVM|MLIR)_\w+|DISABLE_(LLVM_OPT|PTXAS_OPT|MMA_V\d)|ALLOW_LHS_TMEM_LAYOUT_CONVERSION|USE_IR_LOC"
    ),
    XLA: re.compile(r"(XLA|LIBTPU|TPU|JAX|PJRT|TF_XLA)_\w+|NPROC"),
}
# Where files are kept, who else there is, how much memory is taken and from what device; 64-bit types are always on here.
_WITHOUT_EFFECT = re.compile(
    r"TRITON_(CACHE|HOME|REDIS|REMOTE_CACHE|PRINT)\w*|XLA_(PYTHON_)?CLIENT_\w+|"
    r"JAX_(PLATFORM|COMPILATION_CACHE|PERSISTENT_CACHE|ENABLE_COMPILATION_CACHE|COORDINATOR|ENABLE_X64)\w*"
)


def variables(kind: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those that are set of what ``TRITON`` or ``XLA`` reads, by name; of flags that stand in a file, what is in it too."""
    return {
        name: _whole(name, value)
        for name, value in sorted(environment.items())
        if value and _READ[kind].fullmatch(name) and not _WITHOUT_EFFECT.fullmatch(name)
    }


def _whole(name: str, value: str) -> str:
    """XLA takes a value that begins with no dash for the name of a file."""
    if name != FLAGS or value.lstrip().startswith("-"):
        return value
    try:
        return f"{value}: {' '.join(Path(value).read_text(errors='replace').split())}"
    except OSError:
        return value
