"""What a worker prints: kept whole while short, else its beginning and its end."""

import os
import threading
from collections import deque

HEAD_BYTES = 64 * 2**10
TAIL_BYTES = 256 * 2**10


class Output:
    """Takes a worker's stdout and stderr off a pipe, so that no amount of printing blocks it or fills a disk."""

    def __init__(self) -> None:
        self._read_fd, self.write_fd = os.pipe()
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._left_out_bytes = 0
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._drain, name="roofbench worker output", daemon=True)

    def started(self) -> None:
        """Call once the child holds the writing end."""
        os.close(self.write_fd)
        self._thread.start()

    def ended(self, patience_s: float = 1.0) -> None:
        """Wait for what is still in the pipe, as long as nobody holds it open on purpose."""
        self._thread.join(patience_s)

    def text(self) -> str:
        """Everything kept so far; bytes that are not UTF-8 are replaced."""
        with self._changing:
            left_out = f"\n[... {self._left_out_bytes} bytes left out ...]\n".encode() if self._left_out_bytes else b""
            return (bytes(self._head) + left_out + b"".join(self._tail)).decode(errors="replace")

    def _drain(self) -> None:
        while data := os.read(self._read_fd, 2**16):
            with self._changing:
                self._keep(data)
        os.close(self._read_fd)

    def _keep(self, data: bytes) -> None:
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        if len(data) <= room:
            return
        self._tail.append(data[room:])
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) >= TAIL_BYTES:
            dropped = len(self._tail.popleft())
            self._tail_bytes -= dropped
            self._left_out_bytes += dropped


def last_words(text: str) -> str:
    """The last line a worker printed before Python's own account of a fatal signal; empty when it printed nothing."""
    spoken, _, _ = text.partition("Fatal Python error:")
    lines = [line.strip() for line in spoken.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
