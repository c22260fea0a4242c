"""Standard output and error that are closed, full, or in an encoding that has no word for what is printed."""

import io
import os
import sys


def prepare() -> None:
    """Have both streams take any text: what is closed goes nowhere, what an encoding does not have becomes ``?``."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        _occupy()
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


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
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
