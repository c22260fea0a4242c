"""What Hydra, OmegaConf and PyYAML complain about, said in one line that names the key, the value and the remedy."""

import codecs
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from traceback import walk_tb
from typing import Any, get_args

from hydra.errors import MissingConfigException
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
    ValidationError,
)
from yaml import MarkedYAMLError

from suite.config.plugin_files import without_file
from suite.config.schema import GROUPS, outside_names
from suite.config.unknown import no_such_key
from suite.errors import UsageError, nearest
from suite.paths import shown
from suite.values import (
    LIST_WANTED,
    NEITHER_TRUE_NOR_FALSE,
    NO_NULL,
    NOT_A_NUMBER,
    NOT_TEXT,
    NOT_WHOLE,
    SETTINGS_WANTED,
    list_wanted,
    not_whole,
    written,
)

LISTED_AT_MOST = 12  # a longer list of names is looked up with the command that prints it
BY_NAME = ("job", "backend")  # groups whose files each fill one entry of ``jobs`` or ``backends``

OTHER_SUFFIX = ".yml"
CHOICE = "_dummy_"  # the key under which Hydra resolves the choice of a group

DEEPEST_DEFAULTS = 100  # frames of Hydra's reading of defaults lists that nest without a circle

RAISED = re.compile(r"raised while resolving interpolation: \W*(Environment variable '.*' not found)")
NO_MERGE = "Cannot merge DictConfig with ListConfig"  # whichever of the two was given
LIST_EXPECTED = "is a list and takes no settings by name; write {key}=[VALUE]"
SETTINGS_EXPECTED = "holds settings by name and is no list; write {key}.NAME=VALUE"

# What OmegaConf says about a value of the wrong type, and what is said here.
EXPECTED = {
    "converted to Float": NOT_A_NUMBER,
    "converted to Integer": NOT_WHOLE,
    "is not a valid bool": NEITHER_TRUE_NOR_FALSE,
    "is not a ListConfig": LIST_WANTED,
    "is not a DictConfig": SETTINGS_WANTED,
    "to string": NOT_TEXT,
    "Cannot assign": SETTINGS_WANTED,
    "NoneType is not a subclass": "is no value; leave it out",
    "is not a subclass of": SETTINGS_WANTED,
    "not Optional": NO_NULL,
}


def explain(error: BaseException, config_dir: Path | None = None) -> UsageError:
    """Turn an error of one of the three libraries into a ``UsageError`` that says the same in one line.

    ``config_dir`` is the user's folder, for what lies there and is no file.
    """
    if isinstance(error, RecursionError):
        return UsageError(f"the configuration cannot be composed: {_circle(error)}")
    if isinstance(error, UnicodeDecodeError):
        file = _file_read(error) or "a YAML file"
        return UsageError(f"the configuration cannot be composed: {file} is not UTF-8 text ({error.reason}); save it as UTF-8")
    place = _place(error)
    for cause in _chain(error):
        if isinstance(cause, MissingConfigException) and cause.missing_cfg_file:
            return _no_such_option(cause, place, config_dir)
        if isinstance(cause, MarkedYAMLError):
            return _broken_yaml(cause)
        if isinstance(cause, OmegaConfBaseException) and cause.full_key:
            return _marked(cause, place, config_dir) or _bad_key(cause, place)
    if place and NO_MERGE in str(error):
        return UsageError(f"{place}the file holds a list; write settings by name, such as 'max_cases: 3'")
    return UsageError(f"the configuration cannot be composed: {one_line(error)}")


def one_line(error: BaseException) -> str:
    """The message without line breaks, markers under columns and links."""
    lines = (line.strip() for line in str(error).splitlines())
    kept = [
        line
        for line in lines
        if line and not line.startswith(("^", "See http", "full_key:", "object_type=", "reference_type="))
    ]
    return "; ".join(kept) or type(error).__name__


def _circle(error: RecursionError) -> str:
    """Of the two circles that can be written, the one through defaults lists is followed by Hydra, the other by OmegaConf."""
    followed = sum(frame.f_code.co_filename.endswith("defaults_list.py") for frame, _ in walk_tb(error.__traceback__))
    if followed > DEEPEST_DEFAULTS:
        return f"{_file_named(error)}a defaults list leads back to its own file"
    file = _file_read(error) or "a YAML file"
    return f"{file} has an alias (*NAME) inside of what its anchor (&NAME) names; write the value out"


def _file_read(error: BaseException) -> str:
    """The file that Hydra was reading, which none of the libraries says; empty where it was reading none."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__) if "full_path" in frame.f_locals]
    return shown(Path(frames[-1].f_locals["full_path"])) if frames else ""


def _file_named(error: BaseException) -> str:
    """``experiment/mine: `` of the defaults list that Hydra was following when it gave up."""
    walked = [frame for frame, _ in walk_tb(error.__traceback__) if frame.f_code.co_name == "_create_defaults_tree_impl"]
    return f"{walked[-1].f_locals['parent'].get_config_path()}: " if walked else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything it was raised from, outermost first."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


def _place(error: BaseException) -> str:
    """``experiment/mine: `` when a file other than the main one is at fault; Hydra says it in the message only."""
    found = re.match(r"In '(?:[^']*\|\s*)?([^']+)'", str(error))
    return f"{found[1]}: " if found and found[1] != "run" else ""


def _no_such_option(error: MissingConfigException, place: str, config_dir: Path | None) -> UsageError:
    group, name = _group_and_name(str(error.missing_cfg_file).removesuffix(".yaml"))
    if group in GROUPS and name.startswith((".", "/")):
        return UsageError(
            f"{place}{group}={name} is a path where a name is expected; "
            f"write --config-dir DIR {group}=NAME for DIR/{group}/NAME.yaml"
        )
    if config_dir is not None and (wrong := _no_file(config_dir / group / f"{name}.yaml")):
        return UsageError(f"{place}{wrong}")
    if group in BY_NAME and (wrong := without_file(group, name)):
        return UsageError(f"{place}{wrong}")
    # Hydra names no options when one of a list is missing; then the built-in ones are offered.
    known = error.options or [*_built_in(group), *(outside_names(group) if group in BY_NAME else ())]
    options = [option for option in known if option != name]
    close = nearest(name, options)
    if close.startswith("; choose") and len(options) > LISTED_AT_MOST:
        some = ", ".join(sorted(options)[:LISTED_AT_MOST])
        more = f"; choose from: {some} and {len(options) - LISTED_AT_MOST} more"
        close = f"; `roofbench {group}` lists all {len(options)}" if group == "hardware" else more
    return UsageError(f"{place}unknown {group or 'configuration'} '{name}'{close}")


def _group_and_name(file: str) -> tuple[str, str]:
    """Of a group that is ours the rest is the name, in whatever folder it was looked for."""
    group, _, name = file.partition("/")
    if group in GROUPS:
        return group, name
    group, _, name = file.rpartition("/")
    return group, name


def _no_file(path: Path) -> str:
    """What lies at a path where a file is expected and none can be read, or beside it; empty for nothing at all."""
    other = path.with_suffix(OTHER_SUFFIX)
    try:
        if other.is_file():
            return f"{shown(other)} is not read, as its name does not end in .yaml; rename it to {shown(Path(path.name))}"
        if path.is_dir():
            return f"{shown(path)} is a folder; a YAML file is expected there"
        path.stat()
    except OSError as error:
        return f"{shown(path)} is a link that leads nowhere ({error.strerror}); mend or remove it" if path.is_symlink() else ""
    return ""


def _built_in(group: str) -> list[str]:
    folder = resources.files("configs") / group
    return [file.name.removesuffix(".yaml") for file in folder.iterdir()] if group and folder.is_dir() else []


def _broken_yaml(error: MarkedYAMLError) -> UsageError:
    mark = error.problem_mark or error.context_mark
    where = f"{mark.name}, line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return UsageError(f"{where}not valid YAML: {error.problem or error.context}")


def _marked(error: OmegaConfBaseException, place: str, config_dir: Path | None) -> UsageError | None:
    """A byte-order mark hides the first line from Hydra, which then puts the file's settings in a wrong place."""
    if config_dir is None or "not in" not in str(error):
        return None
    named = [config_dir / f"{place.removesuffix(': ')}.yaml"] if place else []
    of_group = sorted((config_dir / error.full_key).glob("*.yaml")) if error.full_key in BY_NAME else []
    for file in filter(_begins_with_mark, [*named, *of_group]):
        return UsageError(
            f"{shown(file)} begins with a byte-order mark, which hides its first line; save it as UTF-8 without one"
        )
    return None


def _begins_with_mark(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
    except OSError:
        return False


def _without_package(group: str, name: str) -> str:
    """``name`` is empty where it is a backend's schema that Hydra stumbled over, which says nothing of whose it was to be."""
    if name:
        return f"{group}/{name}: the first line has to be '# @package {group}s.{name}', where its settings are looked for"
    return f"a file of {group}/ has to begin with '# @package {group}s.NAME', where NAME is the file's own"


def _bad_key(error: OmegaConfBaseException, place: str) -> UsageError:
    key = error.full_key or ""
    if key == CHOICE:
        return UsageError(
            f"{place}a file is chosen before there are values to choose it by ({one_line(error)}); write its name"
        )
    if isinstance(error, ConfigKeyError | ConfigAttributeError) and "not in" in str(error):
        if key in BY_NAME and place.startswith((f"{key}/", f"schema/{key}")):
            return UsageError(_without_package(key, place.removeprefix("schema/").rstrip(": ").partition("/")[2]))
        if key in GROUPS and place.startswith(f"{key}/"):
            return UsageError(
                f"{place}the first line has to be '# @package _global_', so that its settings count for the whole run"
            )
        unknown = no_such_key(key, error.object_type)
        return UsageError(f"{place}{unknown}")
    if "Cannot merge DictConfig" in str(error) and key.removesuffix("s") in BY_NAME:
        return UsageError(f"{place}{key} holds settings by name and is no list; choose with {key.removesuffix('s')}=[NAME]")
    if NO_MERGE in str(error):
        expected = LIST_EXPECTED if error.object_type is list else SETTINGS_EXPECTED
        return UsageError(f"{place}{key} {expected.format(key=key)}")
    if found := RAISED.search(str(error)):
        return UsageError(f"{place}{key}: {found[1]}; set it, or give a default as in ${{oc.env:NAME,DEFAULT}}")
    if isinstance(error, MissingMandatoryValue):
        return UsageError(f"{place}{key} has no value; set it with {key}=VALUE")
    if isinstance(error, ValidationError):
        return UsageError(f"{place}{_wrong_type(key, error)}")
    return UsageError(f"{place}{key}: {one_line(error)}")


def _element_type(error: OmegaConfBaseException) -> Any:
    """What the list holds that was given one value; ``Any`` where that is not declared."""
    metadata = getattr(error.child_node, "_metadata", None)
    return next(iter(get_args(getattr(metadata, "ref_type", None))), Any)


def _wrong_type(key: str, error: OmegaConfBaseException) -> str:
    if key == "search":
        return f"search={error.value} is one value where settings are expected; write experiment=peak for a search"
    if error.value == {}:  # a setting was given below it
        return f"{key} takes one value and no settings by name; write {key}=VALUE"
    value = "null" if error.value in (None, "None") else written(error.value)
    for said, meaning in EXPECTED.items():
        if said in str(error):
            if meaning == LIST_WANTED:
                meaning = list_wanted(error.value, _element_type(error))
            elif meaning == NOT_WHOLE:
                meaning = not_whole(error.value)
            return f"{key}={value} {meaning.format(key=key, value=value)}"
    return f"{key}={value}: {one_line(error)}"
