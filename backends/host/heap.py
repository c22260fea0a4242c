"""Memory that a process has freed and its C library keeps."""

import ctypes


def give_back() -> None:
    """Let the host have it: glibc keeps freed blocks for the next ones; nothing where a C library has no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
