"""Names that are not there: each is answered with the nearest one that is."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from suite.config.backend_options import option_not_set, refuse_unknown_options
from suite.config.schema import GROUPS, OFFERED_JOBS, RunSchema, is_outside, outside_names
from suite.errors import UsageError, nearest
from suite.jobs.registry import JOBS
from suite.settings import OWN_BACKENDS, SearchSettings

LIKENESS = 0.75  # of a misspelt key to the one that was meant, by difflib's ratio; operations is 0.64 to implementations
LIKENESS_OF_A_WORD = 0.7  # of the last words of two keys: lengths is 0.73 to that of seq_lens

ENTRIES = {"jobs": ("job", OFFERED_JOBS), "backends": ("backend", OWN_BACKENDS)}


def selected(node: Any) -> bool:
    """An entry of ``jobs`` or ``backends`` is selected when its group put a schema there; the rest was only mentioned."""
    return isinstance(node, DictConfig) and is_dataclass(OmegaConf.get_type(node))


def refuse_unknown_entries(node: DictConfig) -> None:
    """Refuse entries of ``jobs`` and ``backends`` that no file offers, and keys that were added past a schema with ``+``."""
    for group, (what, known) in ENTRIES.items():
        for key, entry in node[group].items_ex(resolve=False):
            name = str(key)
            if not isinstance(entry, DictConfig):
                raise UsageError(
                    f"{group}.{name}={entry} is one value where settings are expected; write {group}.{name}.KEY=VALUE"
                )
            if not selected(entry) and name not in known and not is_outside(what, name):
                raise UsageError(f"unknown {what} '{name}' in {group}.{name}{nearest(name, [*known, *outside_names(what)])}")
    for key, entry in node.backends.items_ex(resolve=False):
        _refuse_options(str(key), entry)
    for group in ("jobs", "backends", "measure", "store", "search"):
        if node[group] is not None:
            _refuse_added(node[group], group)


def _refuse_options(name: str, entry: DictConfig) -> None:
    """Those of a backend that is only mentioned too, and of those that ``auto`` chooses from."""
    options = _branch(entry, "options")
    target = None if OmegaConf.is_missing(entry, "target") else entry.get("target")
    refuse_unknown_options(name, str(target) if target else None, options)
    for candidate, settings in _branch(options, "candidates").items():
        if isinstance(settings, DictConfig):
            _refuse_options(str(candidate), settings)


def _branch(node: Any, key: str) -> Any:
    found = node.get(key) if isinstance(node, DictConfig) and not OmegaConf.is_missing(node, key) else None
    return found if isinstance(found, DictConfig) else {}


def _refuse_added(node: DictConfig, path: str) -> None:
    kind = OmegaConf.get_type(node)
    valid = [field.name for field in fields(kind)] if is_dataclass(kind) else None
    for key, entry in node.items_ex(resolve=False):
        name = str(key)
        if valid is not None and name not in valid:
            raise UsageError(f"unknown key '{path}.{name}'{_elsewhere(path, name, valid) or _near_key(name, valid)}")
        if isinstance(entry, DictConfig):
            _refuse_added(entry, f"{path}.{name}")


def no_such_key(full_key: str, holder: type | None = None) -> UsageError:
    """The error for a key that no schema has; ``holder`` is the dataclass (or ``dict``) it was looked for in."""
    path, _, leaf = full_key.rpartition(".")
    if path in ENTRIES:
        return _no_such_entry(path, leaf)
    if "options" in path.split("."):
        return option_not_set(full_key, leaf)
    valid = [field.name for field in fields(holder)] if is_dataclass(holder) else []
    if path and (elsewhere := _elsewhere(path, leaf, valid)):
        return UsageError(f"unknown key '{full_key}'{elsewhere}")
    if valid and path:
        return UsageError(f"unknown key '{full_key}'{_near_key(leaf, valid)}")
    return UsageError(f"unknown key '{full_key}'{_anywhere(full_key)}")


def _no_such_entry(group: str, name: str) -> UsageError:
    what, known = ENTRIES[group]
    if name in known or is_outside(what, name):
        return UsageError(f"{group}.{name} is set but {what} '{name}' is not selected; add it with {what}={name}")
    return UsageError(f"unknown {what} '{name}' in {group}.{name}{nearest(name, [*known, *outside_names(what)])}")


def _near_key(given: str, valid: Sequence[str]) -> str:
    """The key that was meant, where one is as good as spelt so; else all that there are: a guess far off leads astray."""
    alike = difflib.get_close_matches(given.casefold(), valid, n=1, cutoff=LIKENESS)
    likely = alike or [key for key in valid if given and key.startswith(given.casefold())]
    return nearest(given, likely) if likely else f"; choose from: {', '.join(sorted(valid))}"


def _near_word(given: str, valid: Sequence[str]) -> str:
    """The key that is most alike by its last word, which says what is counted: ``lens`` of ``seq_lens`` and of ``kv_lens``."""
    last_words = {key.rpartition("_")[2]: key for key in sorted(valid, reverse=True)}
    alike = difflib.get_close_matches(given.casefold().rpartition("_")[2], last_words, n=1, cutoff=LIKENESS_OF_A_WORD)
    return f"; did you mean '{last_words[alike[0]]}'?" if alike else f"; choose from: {', '.join(sorted(valid))}"


def _anywhere(name: str) -> str:
    """Look for a top-level name among groups and settings, then as the last part of a deeper key (``shapes``)."""
    top = {*GROUPS, *(field.name for field in fields(RunSchema))}
    if difflib.get_close_matches(name, top, n=1, cutoff=LIKENESS):
        return nearest(name, top)
    deeper = {path.rpartition(".")[2]: path for path in reversed([*_paths()])}  # of the first job that has it
    close = difflib.get_close_matches(name, deeper, n=1, cutoff=LIKENESS)
    return f"; did you mean '{deeper[close[0]]}'?" if close else _near_key(name, sorted(top))


def _elsewhere(path: str, leaf: str, valid: Sequence[str]) -> str:
    """Where the last part of a key stands that was written below ``path``, whose keys are ``valid``; empty when nowhere.

    A key of another job leads nowhere from a setting of this one: its own come first, or else it is said whose the key is.
    """
    if leaf in {field.name for field in fields(RunSchema)}:
        return f"; did you mean '{leaf}', which stands at the top?"
    found = [each.rpartition(".") for each in _paths()]
    holders = [holder for holder, _, name in found if name == leaf]
    jobs = [holder.partition(".")[2] for holder in holders if holder.startswith("jobs.")]
    if path.startswith("jobs.") and jobs and valid:
        have = f"job {jobs[0]} has" if len(jobs) == 1 else f"jobs {', '.join(jobs)} have"
        return f", which {have}{_near_word(leaf, valid)}"
    return f"; did you mean '{holders[0]}.{leaf}'?" if len(holders) == 1 else ""


def _paths() -> Iterable[str]:
    schema = RunSchema()
    for group, kind in (("measure", schema.measure), ("store", schema.store), ("search", SearchSettings)):
        yield from (f"{group}.{field.name}" for field in fields(kind))
    for name in OFFERED_JOBS:
        yield from (f"jobs.{name}.{field.name}" for field in fields(JOBS[name].settings_type))
