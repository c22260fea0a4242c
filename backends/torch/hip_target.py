"""What an AMD device computes, and how.

Sources.  Instructions: CDNA 3 and CDNA 4 instruction set architectures (MFMA; xf32 is in the former only), HIP documentation,
"Low precision floating point types".  Libraries, as torch calls them: ATen ``ScaledBlasDeviceUtils.cpp`` (which devices have
scaled products), ``Context.cpp`` (which library torch prefers); pytorch/pytorch pull requests 188168 and 193345 (tf32 of gfx942
goes through hipBLASLt, elsewhere the same switch finds nothing there).
"""

import torch

from backends.torch.quantise.consumable import MATRIX_CORES, encoding_for
from backends.torch.target import Target
from suite.jobs.emulation import EMULATIONS

HIPBLASLT = "hipBLASLt"
WITH_XF32 = ("gfx940", "gfx941", "gfx942")
# The library that torch prefers, by its name for it.
BLAS_NAMES = {"Cublas": "rocBLAS", "Cublaslt": HIPBLASLT, "Ck": "CK"}


def hip_target(index: int, architecture: str, blas: str) -> Target:
    """How a device of this target (``gfx942``) executes each format, where torch prefers the library ``blas``."""
    emulated, missing = {}, {}
    if architecture not in MATRIX_CORES:
        emulated["bf16"] = f"computed without matrix cores: {architecture} has none that are known here"
        emulated["fp16"] = emulated["bf16"]
        missing["int8"] = f"int8 products need matrix cores ({', '.join(MATRIX_CORES)}), not {architecture}"
    if why := _no_tf32(architecture, blas):
        missing["tf32"] = why
    for name, each in EMULATIONS.items():
        missing[f"{each.format} by {name}"] = (
            f"{each.format} by {name} is a mode of NVIDIA's cuBLAS, which {architecture} has not"
        )
    return Target(torch.device("cuda", index), "cuda", emulated, missing, architecture, encoding_for(architecture))


def preferred_blas() -> str:
    """The library that torch prefers on this process's devices; others serve what it lacks."""
    name = str(torch.backends.cuda.preferred_blas_library()).rpartition(".")[2]
    return BLAS_NAMES.get(name, name)


def _no_tf32(architecture: str, blas: str) -> str | None:
    """torch takes its switch for tf32 without asking the device, and computes in fp32 where a library has nothing for it."""
    if architecture not in WITH_XF32:
        return f"tf32 needs the xf32 instructions of gfx940 to gfx942; {architecture} has none"
    if blas != HIPBLASLT:
        remedy = "set backends.rocm.options.blas=hipblaslt"
        return f"tf32 on {architecture} goes through {HIPBLASLT}, and torch prefers {blas} here; {remedy}"
    return None
