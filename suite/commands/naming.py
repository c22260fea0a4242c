"""How a store is named: by an option of commands that read one, by a setting of those that measure.

Written the other way it is refused in either direction with what to write instead, for all commands here.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from suite.errors import UsageError

OPTION, SETTING = "--store", "store.url"


def takes_settings(parser: argparse.ArgumentParser) -> bool:
    """Whether a command takes key=value."""
    return any(action.dest == "overrides" for action in parser._actions)


def parser_of(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    """The parser of a command."""
    return _own(parser, [command])[0]


def has_option(parser: argparse.ArgumentParser, name: str) -> bool:
    """Whether a command has an option, or one of its actions does."""
    actions = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    own = name in parser._option_string_actions
    return own or any(has_option(each, name) for action in actions for each in action.choices.values())


def no_option(program: str, path: str) -> str:
    """What is said of ``--store`` to a command whose store is a setting."""
    return f"unknown option '{OPTION}' for {program}, whose store is a setting; write {SETTING}={path or 'PATH'}"


def refuse_setting(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """``UsageError`` where a command whose store is an option is given ``store.url``."""
    own, given = _own(parser, argv)
    options = {name: action for action in own._actions for name in action.option_strings}
    if OPTION not in options or takes_settings(own):
        return
    for text in _beside_options(given, options):
        key, _, path = text.lstrip("+~").partition("=")
        if key == SETTING:
            raise UsageError(f"{text} is a setting, and {own.prog} takes none; write {OPTION} {path or 'PATH'}")


def _own(parser: argparse.ArgumentParser, argv: Sequence[str]) -> tuple[argparse.ArgumentParser, Sequence[str]]:
    """The parser of the command, or of its action, and what follows its name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and argv and argv[0] in action.choices:
            return _own(action.choices[argv[0]], argv[1:])
    return parser, argv


def _beside_options(given: Sequence[str], options: Mapping[str, argparse.Action]) -> Iterator[str]:
    """What is no option's value."""
    for before, text in pairwise(["", *given]):
        if before not in options or options[before].nargs == 0:
            yield text
