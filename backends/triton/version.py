"""Which Triton this is: torch's builds for ROCm bring one that is packaged under another name."""

from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("triton", "triton-rocm", "pytorch-triton-rocm")


def triton_version() -> str:
    """The version of the first of ``PACKAGES`` that is installed; raises ``PackageNotFoundError`` where none is."""
    for name in PACKAGES[:-1]:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return version(PACKAGES[-1])
