"""The text of a reason: one short line that no terminal and no page reads as anything but text."""

import re
from traceback import TracebackException

REASON_CHARACTERS = 300
_SHORTEST_BROKEN = 50  # characters: nobody breaks a sentence into shorter lines
_SENTENCE_ENDS = tuple(".:;!?)]}>")
_ABSL_ERROR = re.compile(r"[EF]\d{4} [\d:.]+ +\d+ \S+\] (.+)")
_LOOKED_AT = 8 * REASON_CHARACTERS  # a message of megabytes is not worth escaping


def one_line(text: str) -> str:
    """Return at most ``REASON_CHARACTERS`` on one line, with control, bidirectional and invisible characters escaped.

    A text that is such a line already comes back as it is.
    """
    words = " ".join(text.strip()[:_LOOKED_AT].split())
    line = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in words)
    return shortened(line, REASON_CHARACTERS)


def shortened(text: str, characters: int) -> str:
    """At most so many characters, the last of them ``…`` where something is left out."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def logged_error(line: str) -> str:
    """What an error says in a log of absl's, which XLA and libtpu write, less level, time, process and place; else nothing."""
    found = _ABSL_ERROR.fullmatch(line.strip())
    return found[1] if found else ""


def said(error: BaseException) -> str:
    """Return the first line of what an exception says, to the end of its sentence; empty where it says nothing.

    A sentence that was broken into lines goes on where a long line ends without a mark and the next begins with a small letter.
    Its ``str`` is code of a framework or a kernel and may raise anything: that is left to the standard library, which
    says ``<exception str() failed>`` then.
    """
    text = str(TracebackException(type(error), error, None, limit=0, lookup_lines=False, compact=True))
    sentence, *others = [line.strip() for line in text.strip().splitlines()] or [""]
    last = sentence
    for line in others:
        if len(last) < _SHORTEST_BROKEN or last.endswith(_SENTENCE_ENDS) or not line[:1].islower():
            break
        sentence, last = f"{sentence} {line}", line
    return sentence


def named(error: BaseException) -> str:
    """Return an exception's type and the first line of what it says, as a reason."""
    name, line = type(error).__name__, said(error)
    return one_line(f"{name}: {line}" if line else name)
