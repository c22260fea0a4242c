"""The file that NCCL writes its log to, read as it grows."""

import os
import tempfile
from pathlib import Path


class DebugFile:
    """Made before NCCL is first asked for anything: it opens the file that ``NCCL_DEBUG_FILE`` names once in a process."""

    def __init__(self) -> None:
        descriptor, path = tempfile.mkstemp(prefix="roofbench-nccl-", suffix=".log")
        self._file = os.fdopen(descriptor, "rb")
        self._path: Path | None = Path(path)
        self._cut = b""
        os.environ["NCCL_DEBUG_FILE"] = path

    def new_text(self) -> str:
        """The whole lines written since the last call."""
        text = self._cut + self._file.read()
        lines, newline, self._cut = text.rpartition(b"\n")
        if newline:  # the library has it open: without a name, a killed rank leaves no file behind
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
