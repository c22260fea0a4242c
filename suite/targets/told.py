"""How far a matrix is, for people on standard error: a line that changes on a terminal, lines where there is none."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from suite.outcome import Outcome
from suite.paths import shown
from suite.targets.carry import Ended


class Teller:
    """Tells of each cell that was compiled; of those that were known only how many."""

    def __init__(self, stream: TextIO, total: int) -> None:
        self._stream, self._total, self._done = stream, total, 0
        self._is_terminal = stream.isatty()
        self._drawn = False

    def __call__(self, ended: Ended) -> None:
        self._done += 1
        if ended.is_cached:
            return
        compiled = ended.compiled
        done = f"[{self._done:>{len(str(self._total))}}/{self._total}]"
        line = f"{done} {compiled.program} for {compiled.target}: {words(ended)}"
        if self._is_terminal:
            self._draw(line)
        elif not _was_not_tried(ended):
            self._write(line + "\n")

    def interrupted(self, store: str) -> None:
        """What is left of a matrix that was stopped."""
        self.close()
        self._write(
            f"interrupted: {self._done} of {self._total} cells are known; what was compiled is in {shown(Path(store))}\n"
        )

    def close(self) -> None:
        """Leave nothing of a line that changes."""
        if self._drawn:
            self._write("\r\033[K")
            self._drawn = False

    def _draw(self, text: str) -> None:
        self._write(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}")
        self._drawn = True

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def words(ended: Ended) -> str:
    """How a cell ended: ``native, 1.2 s``, or its outcome and reason."""
    compiled = ended.compiled
    if compiled.outcome is not Outcome.OK:
        return f"{compiled.outcome.value}: {compiled.reason}"
    execution = str(compiled.facts.get("execution", "")) or "ok"
    return f"{'no matrix instructions' if execution == 'none' else execution}, {compiled.seconds:.1f} s"


def cached_words(ended: Sequence[Ended]) -> str:
    """When those were compiled that the store had."""
    times = sorted(each.compiled.compiled_at for each in ended if each.is_cached)
    if not times:
        return ""
    first, last = (f"{time:%Y-%m-%d %H:%M}" for time in (times[0], times[-1]))
    when = first if first == last else f"{first} to {last}"
    return f"; {len(times)} of them compiled before, {when} UTC"


def _was_not_tried(ended: Ended) -> bool:
    return ended.compiled.outcome is Outcome.UNSUPPORTED and "not installed" in ended.compiled.reason
