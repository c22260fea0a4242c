"""Text from a store inside Streamlit's Markdown: it stays text."""

import re

from suite.report.printable import clipped, printable

MOST_CHARACTERS = 400  # of one line: a hostile file may have megabytes in a name
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# What Streamlit's Markdown makes a link of without any markup: a file must not have people click where it likes.
_LINKED = re.compile(r"(?i)(?:https?|ftp)(?=:)|www(?=\.)|\S(?=@)")
_NO_LINK = "\u200b"  # a space without width
_COMMAND = re.compile(r"\\`(roofbench (?:[A-Za-z0-9 ]|\\-){1,80})\\`")  # as ``plain`` leaves it
_SPACE = re.compile(r"\s+")


def plain(text: str, most: int = MOST_CHARACTERS) -> str:
    """Escape everything Markdown or Streamlit (colours, icons, formulas) would read as markup, on one line, not endless."""
    unlinked = _LINKED.sub(rf"\g<0>{_NO_LINK}", _SPACE.sub(" ", printable(clipped(text, most))))
    return _PUNCTUATION.sub(r"\\\1", unlinked)


def sentence(text: str, most: int = MOST_CHARACTERS) -> str:
    """The same, but that a command of roofbench between backticks is set as code: backticks are no words."""
    return _COMMAND.sub(lambda found: f"`{found[1].replace(chr(92), '')}`", plain(text, most))
