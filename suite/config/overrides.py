"""Reading command-line overrides before Hydra composes them."""

import re
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, QuotedString
from hydra.errors import HydraException

from suite.config.digits import HOLD_NUMBERS, refuse_unread_numbers
from suite.config.explain import BY_NAME, one_line
from suite.config.plugin_settings import plugin_sheet_ids
from suite.config.schema import GROUPS, OPTIONAL_GROUPS, RunSchema
from suite.config.sweeps import refuse_uncountable
from suite.errors import UsageError
from suite.hardware.catalogue import load

STRANGE = re.compile(r"token recognition error at: '(.)")
SURROGATES = frozenset(map(chr, range(0xDC80, 0xDD00)))  # what Python makes of a byte that it cannot decode
ALSO_SETTINGS = ("measure", "store")  # groups whose settings may be given at once: store={url: x.db}


@cache
def parse(text: str) -> Override:
    """Read one override, once: the grammar is interpreted and slow.  ``UsageError`` where it is none."""
    if not re.match(r"[~+]*[^=~+]+(=|$)", text) or ("=" not in text and not text.startswith("~")):
        raise UsageError(f"'{text}' is not an override; write key=value, such as experiment=standard or jobs.gemm.shapes=[512]")
    _refuse_unread(text)
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException as error:
        if found := STRANGE.search(str(error)):
            raise UsageError(f"cannot read the override {text}: {_quoting(text, found[1])}") from error
        hint = "write key=value, and quote what the shell or Hydra would split: 'key=\"a, b\"'"
        raise UsageError(f"cannot read the override {text}: {one_line(error)}; {hint}") from error
    except ValueError as error:  # Python reads no number of more digits than these, which Hydra does not look for
        most = sys.get_int_max_str_digits()
        raise UsageError(f"{text.partition('=')[0]} has a number of more than {most} digits; write fewer") from error


def _refuse_unread(text: str) -> None:
    """Bytes that the locale has no characters for stand in the text as surrogates, which nothing can print or store."""
    if text.isascii() or not any(character in SURROGATES for character in text):
        return
    content = text.encode("utf-8", "surrogateescape")
    try:
        shown, remedy = content.decode(), "set LC_ALL=C.UTF-8 or PYTHONUTF8=1"
    except UnicodeDecodeError:
        shown, remedy = content.decode(errors="replace"), "write it in UTF-8"
    key = shown.partition("=")[0]
    raise UsageError(f"the value of {key} has characters that cannot be read in the encoding {_encoding()}; {remedy}")


def _encoding() -> str:
    return sys.getfilesystemencoding()


def _quoting(text: str, strange: str) -> str:
    """What to write instead of a text with a character that Hydra reads only in quotes."""
    if strange == "×":
        return f"'×' is not the letter x; write {text.replace(strange, 'x')}"
    key, _, value = text.partition("=")
    whole = "'" not in value and value[:1] not in ("[", "{") and not set(value) & set('"$`!\\')
    written = f"\"{key}='{value}'\"" if whole else "each such text in quotes of its own, as in \"key=['a~b']\""
    return f"'{strange}' may stand only in quotes; write {written}"


def refuse_hydras_own(overrides: Sequence[str]) -> None:
    """A single run is composed here and not by Hydra's own program, so that of its settings only where to look counts."""
    for text in overrides:
        key = parse(text).key_or_group
        if key.startswith(("hydra.", "hydra/")) and key != "hydra.searchpath":
            raise UsageError(f"{text} has no effect here; only `roofbench run -m` goes through Hydra's launcher")


def refuse_sweeps(overrides: Sequence[str]) -> None:
    """A single run takes no ``a,b``: it is either several runs or one run over a list."""
    for text in overrides:
        override = parse(text)
        if override.is_sweep_override():
            refuse_uncountable([override])
            key, _, values = text.partition("=")
            takes_list = override.is_choice_sweep() and (key in BY_NAME or key not in GROUPS) and "[" not in values
            over_all = f", or write [{values}] for one run over all" if takes_list else ""
            raise UsageError(f"{text} gives several values; `roofbench run -m` makes one run for each{over_all}")


def tidy(overrides: Sequence[str], config_dir: Path | None = None) -> list[str]:
    """Read ``experiment=null`` and ``hardware=null`` as leaving that group out, and hardware by any name it has.

    Leaving out a group that every run needs is refused.
    """
    return [_tidy(text, parse(text), config_dir) for text in overrides]


def _tidy(text: str, override: Override, config_dir: Path | None) -> str:
    group = override.key_or_group
    _refuse_misplaced(text, group)
    if group.partition(".")[0] in HOLD_NUMBERS and not override.is_delete():
        refuse_unread_numbers(group, _given(override))
    if override.is_delete() and group not in GROUPS and not _may_be_deleted(group):
        raise UsageError(f"{text} removes a setting that every run has; write {group}=VALUE, or leave it out for the default")
    if group not in GROUPS or override.is_sweep_override():
        return text
    value = None if override.is_delete() else override.value()
    if value is None:
        if group not in OPTIONAL_GROUPS:
            raise UsageError(f"{text} leaves the run without a {group}; name one, or drop the override for the default")
        return f"~{group}"
    _refuse_unnamed(text, group, value)
    if group == "store" and isinstance(value, str) and re.search(r"[./]", value) and not _own(group, value, config_dir):
        raise UsageError(f"{text} names no file of store settings; write store.url={value} for the file of the store")
    return f"hardware={_sheet(str(value), config_dir)}" if group == "hardware" else text


def _given(override: Override) -> Any:
    """The value of an override, or those of a sweep over values."""
    value = override.value()
    if isinstance(value, ChoiceSweep):
        return [each.text if isinstance(each, QuotedString) else each for each in value.list]
    return value


def _refuse_misplaced(text: str, key: str) -> None:
    """The name of a group where its settings have another, and what a run decides by other means than Hydra."""
    if key == "hydra.mode":
        raise UsageError(f"{text} does not choose how many runs there are; write roofbench run -m for several")
    if key == "hydra.job.chdir":
        raise UsageError(f"{text} cannot be: runs stay in the current folder; give full paths, or change to another first")
    group, _, rest = key.partition(".")
    if not rest or group not in GROUPS:
        return
    if group in BY_NAME:
        raise UsageError(f"unknown key '{key}'; did you mean '{group}s.{rest}'?")
    if group not in ALSO_SETTINGS:
        raise UsageError(f"unknown key '{key}': {group}=NAME chooses a file, whose settings have keys without '{group}.'")


def _refuse_unnamed(text: str, group: str, value: object) -> None:
    """A group takes the name of one file, ``job`` and ``backend`` a list of them; an empty one would pass for a choice."""
    if isinstance(value, list) and group not in BY_NAME:
        one = next((name for name in value if isinstance(name, str)), "NAME")
        raise UsageError(
            f"{text} is a list, but a run has one {group}; write {group}={one}, or -m {group}=A,B for one run each"
        )
    if isinstance(value, dict) and group in ALSO_SETTINGS:
        return
    for name in value if isinstance(value, list) else [value]:
        if not isinstance(name, str) and not (isinstance(name, int) and group == "hardware"):  # hardware=4090
            raise UsageError(f"{text} is no name of a {group}; write {group}=NAME")


def _may_be_deleted(key: str) -> bool:
    """A whole job or backend, free options, and what is none of a run's settings (which Hydra then refuses)."""
    parts = key.split(".")
    entry = parts[0] in ("jobs", "backends") and len(parts) == 2
    return entry or "options" in parts or parts[0] not in {each.name for each in fields(RunSchema)}


def _sheet(name: str, config_dir: Path | None) -> str:
    """The id of a sheet that was named by its id, its product, or words of either (``mi300x``)."""
    if _own("hardware", name, config_dir):
        return name
    try:
        return load(name).id
    except UsageError:
        if name in plugin_sheet_ids():
            return name
        raise


def _own(group: str, name: str, config_dir: Path | None) -> bool:
    """Whether the user's folder has such a file."""
    return config_dir is not None and (config_dir / group / f"{name}.yaml").is_file()


def take_hardware(tidied: Sequence[str]) -> tuple[list[str], str | None]:
    """Split off the sheet that is named, the last one counting.

    Hydra would read the whole sheet, of which a run keeps only the name: a tenth of a second that every plan would wait.
    """
    named = [text.removeprefix("hardware=") for text in tidied if text.startswith("hardware=")]
    return [text for text in tidied if not text.startswith("hardware=")], named[-1] if named else None
