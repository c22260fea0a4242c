"""Text from a store inside Streamlit's Markdown: it stays text."""

import re

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_SPACE = re.compile(r"\s+")


def plain(text: str) -> str:
    """Escape everything Markdown or Streamlit (colours, icons, formulas) would read as markup, on one line."""
    return _PUNCTUATION.sub(r"\\\1", _SPACE.sub(" ", text))
