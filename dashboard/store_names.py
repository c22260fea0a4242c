"""What stores are called beside one another: by their file, and where several files have one name by a folder that differs."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath

from suite.report.printable import printable

NAME_CHARACTERS = 32
_BETWEEN = "…"


@lru_cache(maxsize=64)
def store_names(paths: tuple[str, ...]) -> tuple[str, ...]:
    """A name for each of these absolute paths, all different: ``roofbench.db``, or ``mine/roofbench.db`` beside another one."""
    ends = [_end(path, paths) for path in paths]
    short = [f"{end[0]}/{_BETWEEN}/{end[-1]}" if len(end) > 2 else _joined(end) for end in ends]
    counts = Counter(short)
    names = [each if counts[each] == 1 else _joined(end) for each, end in zip(short, ends, strict=True)]
    shown = [_cut(printable(name)) for name in names]
    counts = Counter(shown)
    return tuple(name if counts[name] == 1 else f"{name} {number}" for number, name in enumerate(shown, 1))


def _end(path: str, paths: Sequence[str]) -> tuple[str, ...]:
    """The shortest end of a path that no other one has."""
    parts = PurePath(path).parts
    others = [PurePath(other).parts for other in paths if other != path]
    lengths = range(1, len(parts) + 1)
    length = next((each for each in lengths if all(parts[-each:] != other[-each:] for other in others)), len(parts))
    return parts[-length:]


def _cut(name: str) -> str:
    """The folder that differs and the end of the file's name."""
    if len(name) <= NAME_CHARACTERS:
        return name
    first = NAME_CHARACTERS // 2
    return f"{name[:first]}{_BETWEEN}{name[len(name) - (NAME_CHARACTERS - first - 1) :]}"


def _joined(parts: Sequence[str]) -> str:
    return str(PurePath(*parts))
