"""A rank's own file: a line of JSON for each collective that it took part in, with its own times."""

import json
import os
import sys
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np

from suite.jobs.collective import Task

KEPT = 4096  # iterations, the latest
NS = 1e-9


class RankRecord:
    """Ranks that a launcher started may be on hosts that share no file system: each has its file where it is."""

    def __init__(self, path: Path, rank: int) -> None:
        self._path, self._rank = path, rank
        self._has_told = False
        self._open: dict[int, tuple[Task, deque[int], list[int]]] = {}

    def begin(self, ticket: int, task: Task) -> None:
        self._open[ticket] = task, deque(maxlen=KEPT), [0]

    def sampled(self, ticket: int, durations_ns: list[int]) -> None:
        _, latest, count = self._open[ticket]
        latest.extend(durations_ns)
        count[0] += len(durations_ns)

    def end(self, ticket: int) -> None:
        """Write the line; a collective that was never timed has none."""
        found = self._open.pop(ticket, None)
        if found is None or not found[1]:
            return
        try:
            append_line(self._path, json.dumps(self._line(*found)).encode())
        except OSError as error:  # of a disk that is full, say: the times of all ranks are with the result as well
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        if not self._has_told:
            told = f"{self._path} cannot be written ({error.strerror}): rank {self._rank} measures on without a file of its own"
            sys.stderr.write(f"{told}; free its disk, or put the store elsewhere with store.url\n")
            sys.stderr.flush()
        self._has_told = True

    def _line(self, task: Task, latest: deque[int], count: list[int]) -> dict[str, Any]:
        times_ns = np.array(latest, dtype=np.int64)
        return {
            "finished_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "rank": self._rank,
            "world_size": task.ranks,
            "op": task.op.value,
            "message_bytes": task.message.message_bytes,
            "format": task.message.format,
            "implementation": task.implementation,
            "asked": task.choice.label,
            "in_place": task.in_place,
            "transport": task.transport.value,
            "iterations": count[0],
            "kept": f"the latest {KEPT}",
            "p50_s": float(np.quantile(times_ns, 0.5)) * NS,
            "max_s": float(times_ns.max()) * NS,
            "times_ns": times_ns.tolist(),
        }


def append_line(path: Path, line: bytes) -> None:
    """Append a whole line or nothing; raises ``OSError``.  A line that another process left unfinished is ended first."""
    with path.open("a+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            left = memoryview((b"\n" if _is_unfinished(file, size) else b"") + line + b"\n")
            while left:
                left = left[file.write(left) :]
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise


def _is_unfinished(file: IO[bytes], size: int) -> bool:
    if not size:
        return False
    file.seek(size - 1)
    return file.read(1) != b"\n"
