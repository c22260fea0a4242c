"""What the output can show: how wide it is, and whether colours and block characters are welcome."""

import os
import shutil
from typing import NamedTuple, TextIO

CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Screen(NamedTuple):
    """``width`` is ``None`` where lines may be as long as they like: no terminal, so that nothing is cut for ``grep``."""

    width: int | None = None
    color: bool = False
    blocks: bool = True

    def paint(self, text: str, *styles: str) -> str:
        """Wrap text in the escape codes of ``styles``; unchanged without colours."""
        if not self.color or not text:
            return text
        return f"\033[{';'.join(CODES[style] for style in styles)}m{text}\033[0m"

    @property
    def columns(self) -> int:
        """Width for what must have one (a chart)."""
        return self.width or 100


def screen_of(stream: TextIO) -> Screen:
    """Ask the stream; ``NO_COLOR`` (no-color.org) and ``TERM=dumb`` turn colours off."""
    blocks = "utf" in (stream.encoding or "").lower()
    if not stream.isatty():
        return Screen(None, False, blocks)
    color = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Screen(shutil.get_terminal_size().columns, color, blocks)
