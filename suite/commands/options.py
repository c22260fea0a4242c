"""Options that several commands share, so that they read and behave alike."""

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from suite.errors import StoreUnusable, UsageError
from suite.paths import for_shell, is_text

DEFAULT_STORE = "roofbench.db"
AS_OPTION = {"store.url=": "--store "}
AS_SOURCE = {"with store.url=PATH": "as SOURCE", "store.url=": "SOURCE "}
PLAIN = re.compile(r"[\w./+-]+", re.ASCII)  # what Hydra reads as text without quotes
QUOTE = re.compile(r"(\\*)('|$)")  # in quotes Hydra takes backslashes as they are, but for those before a quote


def examples(text: str) -> str:
    """The last part of a help text: one example a line."""
    return "examples:\n" + "\n".join(f"  {line}" for line in text.strip().splitlines())


def add_json(parser: argparse.ArgumentParser) -> None:
    """``--json``: for programs instead of people."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_config_dir(parser: argparse.ArgumentParser) -> None:
    """``--config-dir``: where the user's own YAMLs are."""
    parser.add_argument(
        "--config-dir",
        "-cd",
        type=_folder,
        metavar="DIR",
        help="a folder with your own YAMLs, such as DIR/experiment/mine.yaml",
    )


def _folder(text: str) -> Path:
    if not text.strip():  # a variable that is not set; as a path it would be this folder
        raise UsageError("--config-dir is empty; name a folder that holds groups such as experiment/mine.yaml, or leave it out")
    return Path(text)


def add_store(parser: argparse.ArgumentParser) -> None:
    """``--store``: which store to read."""
    parser.add_argument("--store", default=DEFAULT_STORE, metavar="PATH", help="the store (default: ./roofbench.db)")


def store_option(path: Path) -> str:
    """`` --store PATH`` for a reading command that is to be typed here; empty for the store it reads anyway."""
    return "" if _is_default(path) else f" --store {for_shell(str(path))}"


def store_override(path: Path) -> str:
    """`` store.url=PATH`` for a command that takes settings, quoted for Hydra and the shell; empty for the default store."""
    if _is_default(path):
        return ""
    return " " + for_shell(f"store.url={_for_hydra(_readable(path))}")


@contextmanager
def naming_store(words: Mapping[str, str]) -> Iterator[None]:
    """Inside, what an unusable store says of ``store.url``, a run's setting, is said of what the command takes instead."""
    try:
        yield
    except StoreUnusable as error:
        text = str(error)
        for said, meant in words.items():
            text = text.replace(said, meant)
        raise StoreUnusable(text) from error


def _readable(path: Path) -> str:
    """A path that a setting may hold, which is text: where a folder's name is none, the way from here, if that is."""
    text = str(path)
    return text if is_text(text) else next(filter(is_text, [os.path.relpath(path)]), text)


def _for_hydra(text: str) -> str:
    if PLAIN.fullmatch(text):
        return text
    inside = QUOTE.sub(lambda found: 2 * found[1] + (f"\\{found[2]}" if found[2] else ""), text)
    return f"'{inside}'"


def _is_default(path: Path) -> bool:
    return path == Path(DEFAULT_STORE).resolve()
