"""Text from a store inside Streamlit's Markdown: it stays text."""

import re

from suite.report.printable import clipped, printable

MOST_CHARACTERS = 400  # of one line: a hostile file may have megabytes in a name
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_SPACE = re.compile(r"\s+")


def plain(text: str, most: int = MOST_CHARACTERS) -> str:
    """Escape everything Markdown or Streamlit (colours, icons, formulas) would read as markup, on one line, not endless."""
    return _PUNCTUATION.sub(r"\\\1", _SPACE.sub(" ", printable(clipped(text, most))))
