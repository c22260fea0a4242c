"""Standard output and error that are closed, full, or in an encoding that has no word for what is printed."""

import codecs
import io
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

PLAIN = "roofbench-plain"  # how an encoding error of the output is handled
_IN_ASCII = {"µ": "u", "±": "+/-", "°": "deg ", "–": "-", "×": "x", "…": "..."}


class Heedless:
    """A stream beside the output: what it cannot take (a full disk, a terminal that was closed) is nobody's failure."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what can be written."""
        try:
            return self._stream.write(text)
        except OSError:
            _drop(self._stream)
            return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write what can be written."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is held and can be written."""
        try:
            self._stream.flush()
        except OSError:
            _drop(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _written_plainly(error: UnicodeError) -> tuple[str, int]:
    """The characters that units and intervals need, in ASCII; ``?`` for any other."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_IN_ASCII.get(character, "?") for character in error.object[error.start : error.end]), error.end


codecs.register_error(PLAIN, _written_plainly)


def prepare() -> None:
    """Have both streams take any text: what is closed goes nowhere, what an encoding does not have is written without it.

    What standard error cannot take goes nowhere too.
    """
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        _occupy()
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=PLAIN)
    if not isinstance(sys.stderr, Heedless):
        sys.stderr = cast(TextIO, Heedless(sys.stderr))


def _occupy() -> None:
    """Put the null device where the three standard streams are closed, so that no store is opened in their place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def takes_nothing() -> bool:
    """Whether standard output refuses even one more line (a full disk); then what it holds is dropped."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        drop_output()
        return True
    return False


def drop_output() -> None:
    """What Python would still write at exit goes nowhere instead of raising again."""
    _drop(sys.stdout)


def _drop(stream: TextIO) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
