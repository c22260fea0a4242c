"""The files of ``configs/hardware`` and of folders that users add: which there are, and one of them as a spec."""

import difflib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from operator import eq
from pathlib import Path
from typing import Any

from suite.errors import UsageError, nearest
from suite.hardware.sheet import parse
from suite.hardware.spec import HardwareSpec
from suite.paths import shown

SUFFIX = ".yaml"
LISTED_AT_MOST = 8


def ids(extra: Sequence[Path] = ()) -> tuple[str, ...]:
    """Names of all sheets, sorted; ``extra`` folders come beside the built-in one."""
    return tuple(sorted(_files(extra)))


def load(name: str, extra: Sequence[Path] = ()) -> HardwareSpec:
    """One sheet by its id, by an exact device or product name, by a run of the id's words (``mi300x``, ``t4``), or by a part.

    A part of an id or a name counts from the beginning of a word (``h200-sxm``), else anywhere, where no word begins with it.

    An id reads that one file.  A file in ``extra`` replaces the built-in one of the same id.  ``UsageError`` when the name is
    unknown or fits several sheets, or when a file is broken.
    """
    files = _files(extra)
    if name in files:
        return _parse(files[name], name)
    found = _by_name(name, extra) or _by_words(name, files) or _by_part(name, extra)
    if len(found) == 1:
        return _parse(files[found[0]], found[0])
    if found:
        raise UsageError(f"hardware '{name}' could be any of {_listed(found)}")
    raise UsageError(f"unknown hardware '{name}'{_nearest(name, files)} `roofbench hardware` lists all {len(files)}")


def all_specs(extra: Sequence[Path] = ()) -> tuple[HardwareSpec, ...]:
    """Every sheet, sorted by id."""
    return tuple(_parse(file, name) for name, file in sorted(_files(extra).items()))


def builtin(folder: str) -> Path:
    """A folder of the installed ``configs``."""
    return Path(str(resources.files("configs"))) / folder


def read_yaml(file: Path) -> Any:
    """Load one YAML file; ``UsageError`` names the line that does not parse."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(file.read_text(encoding="utf-8"), loader)
    except yaml.YAMLError as error:
        raise UsageError(f"{named(file)}: not valid YAML: {' '.join(str(error).split())}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{named(file)}: cannot be read: {error}") from error


def named(file: Path) -> str:
    """A file as errors name it: with its folder, unless that is ours, for it is the user who has to find it."""
    return file.name if file.is_relative_to(builtin("")) else shown(file)


def yaml_files(folder: Path) -> dict[str, Path]:
    """The YAML files of a folder by name without suffix."""
    return {file.stem: file for file in folder.glob(f"*{SUFFIX}")}


def _files(extra: Sequence[Path]) -> dict[str, Path]:
    files = yaml_files(builtin("hardware"))
    for folder in extra:
        if not folder.is_dir():
            raise UsageError(f"hardware folder '{folder}' is not a directory; give one that holds NAME.yaml files")
        files |= yaml_files(folder)
    return files


@cache
def _parse(file: Path, name: str) -> HardwareSpec:
    spec = parse(read_yaml(file), named(file))
    if spec.id != name:
        raise UsageError(f"{named(file)}: id is '{spec.id}'; it has to be the file's name, '{name}'")
    return spec


def _by_words(name: str, files: Iterable[str]) -> list[str]:
    """Ids that hold the given words side by side: whole words only, so that ``b200`` is not in ``gb200``."""
    words = f"-{'-'.join(name.casefold().split())}-"
    return sorted(known for known in files if words in f"-{known}-")


def _by_name(name: str, extra: Sequence[Path]) -> list[str]:
    wanted = name.strip().casefold()
    return [
        spec.id
        for spec in all_specs(extra)
        if wanted in (spec.name.casefold(), *(string.casefold() for string in spec.device_names))
    ]


def _by_part(name: str, extra: Sequence[Path]) -> list[str]:
    """Ids of the sheets that have the given letters in their id or one of their names; blanks and hyphens are alike."""
    wanted = _spelt(name)
    if not wanted:
        return []
    names = {spec.id: {_spelt(each) for each in (spec.id, spec.name, *spec.device_names)} for spec in all_specs(extra)}
    begun = [known for known, spelt in names.items() if any(f"-{wanted}" in f"-{each}" for each in spelt)]
    return begun or [known for known, spelt in names.items() if any(wanted in each for each in spelt)]


def _spelt(name: str) -> str:
    return "-".join(name.casefold().replace("-", " ").split())


def _listed(found: Sequence[str]) -> str:
    if len(found) <= LISTED_AT_MOST:
        return f"{', '.join(found)}; name one of them"
    more = len(found) - LISTED_AT_MOST
    return f"{', '.join(found[:LISTED_AT_MOST])} and {more} more; name one of them, `roofbench hardware` lists all"


def _by_close_word(words: Sequence[str], files: Iterable[str]) -> list[str]:
    """Ids with a word that is close to one of the given ones: ``h201``, which no whole id is close to."""
    known = {part: None for file in files for part in file.split("-")}
    for word in words:
        close = difflib.get_close_matches(word, known, n=10, cutoff=0.7)
        if close:
            likest = max(close, key=lambda part: (sum(map(eq, part, word)), -abs(len(part) - len(word))))
            return [file for file in files if likest in file.split("-")]
    return []


def _nearest(name: str, files: Iterable[str]) -> str:
    """The id that holds every given word or a longer one (``sxm``, ``sxm5``), else the closest one by its letters.

    Never the list of all, which is too long for one line.
    """
    words = name.casefold().replace("-", " ").split()
    sharing = [known for known in files if all(f"-{word}" in f"-{known}" for word in words)] if words else []
    suggestion = nearest(name.casefold(), sharing or files)
    if not sharing and not suggestion.startswith("; did you mean"):
        sharing = _by_close_word(words, files)
    if sharing and not suggestion.startswith("; did you mean"):
        suggestion = f"; did you mean '{_closest(name, sharing)}'?"
    return suggestion if suggestion.startswith("; did you mean") else ";"


def _closest(name: str, known: Sequence[str]) -> str:
    return max(known, key=lambda each: difflib.SequenceMatcher(None, name.casefold(), each).ratio())
