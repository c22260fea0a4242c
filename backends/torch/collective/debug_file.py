"""The file that NCCL writes its log to, read as it grows."""

import os
import tempfile
from pathlib import Path

OPEN_FILES = Path("/proc/self/fd")


class DebugFile:
    """Made before NCCL is first asked for anything: it opens the file that ``NCCL_DEBUG_FILE`` names once in a process.

    A rank may be killed at any time and must leave no file behind: it has no name but that of this process's descriptor.  Where
    a system opens no file by that, it has a name until the library has written its first line.
    """

    def __init__(self) -> None:
        self._path: Path | None
        self._cut = b""
        descriptor, self._path = _made()
        path = OPEN_FILES / str(descriptor)
        self._hide()
        if not _opens(path):
            os.close(descriptor)
            descriptor, path = _made()
            self._path = path
        self._file = os.fdopen(descriptor, "rb")
        os.environ["NCCL_DEBUG_FILE"] = str(path)

    def new_text(self) -> str:
        """The whole lines written since the last call."""
        text = self._cut + self._file.read()
        lines, newline, self._cut = text.rpartition(b"\n")
        if newline:
            self._hide()
        return (lines + newline).decode(errors="replace")

    def close(self) -> None:
        """Read no more."""
        self._hide()
        self._file.close()

    def _hide(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None


def _made() -> tuple[int, Path]:
    descriptor, name = tempfile.mkstemp(prefix="roofbench-nccl-", suffix=".log")
    return descriptor, Path(name)


def _opens(path: Path) -> bool:
    """Whether the library can open it for writing; else it would write to the standard output."""
    try:
        path.open("wb").close()
    except OSError:
        return False
    return True
