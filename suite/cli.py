"""The command line: which command, its options, and how errors and interruptions end.

Nothing heavy is imported here, so that ``--help`` and a misspelt option answer at once.
"""

import argparse
import errno
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from suite import __version__
from suite.commands import naming
from suite.commands.options import AS_OPTION, examples, naming_store
from suite.errors import RoofbenchError, UsageError, nearest
from suite.interrupts import EXIT_INTERRUPTED, was_told_to_end
from suite.report.printable import printable
from suite.streams import drop_output, prepare, takes_nothing

COMMANDS = (
    "run", "plan", "selftest", "devices", "show", "compare", "import", "hardware", "targets", "dashboard", "report", "store",
)  # fmt: skip

DESCRIPTION = """\
Measure an accelerator against its own roofline: every number with its regime, verified, with its uncertainty.

Start with `roofbench run`: it measures the best device it finds (the CPU if there is no other) for a few minutes,
prints a table and keeps everything in ./roofbench.db. Look again with `roofbench show` or `roofbench dashboard`."""

EPILOG = """\
examples:
  roofbench run                                    the quick experiment on the best device found
  roofbench plan experiment=standard               what that would measure, and for how long
  roofbench selftest                               whether this machine's measurements can be trusted
  roofbench show --json | head                     the latest results as JSON rows
  roofbench compare RUN latest                     whether anything became slower since

settings are written key=value, as Hydra reads them; `roofbench run --info defaults` lists what they start from.

the store is ./roofbench.db unless store.url=PATH (run, plan, selftest) or --store PATH (commands that read one, and
selftest --last) says otherwise.

exit status:
  0    done; so is a run that reached its own max_time_s
  1    something failed on the way; what was measured before is kept; what `compare --fail-on` names was found
  2    bad input: one line says what, nothing was run or created
  3    the run is complete, and some cases ended incorrect, impossible, crashed, in a timeout or in an error;
       a question of the selftest ended in FAIL; a kernel did not compile for a target that it is made for
  130  interrupted; `roofbench run resume=latest` goes on"""

ASKS_NO_STORE = ("roofbench devices",)  # of the commands that take settings

EXIT_TOO_MANY_FILES = EXIT_OUTPUT_LOST = 1
EXIT_PIPE_CLOSED = 141  # what a shell reports for a process that SIGPIPE ended


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ``UsageError``s and whose options cannot be abbreviated."""

    def __init__(self, **options: object) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)  # type: ignore[arg-type]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            what = "/".join(action.option_strings) or str(action.metavar or action.dest).lower()
            raise UsageError(f"unknown {what} '{value}'{nearest(str(value), map(str, action.choices))}")

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)  # argparse would pass over a help text that nobody got

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; ``argv`` is without the program's name."""
    prepare()
    try:
        status = run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        if argv is None:
            gc.freeze()  # the process ends: a last look through all of its objects would free nothing
    except RoofbenchError as error:
        print(f"roofbench: {_readable(str(error))}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("roofbench: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader is gone (head, less)
        drop_output()
        return EXIT_INTERRUPTED if was_told_to_end() else EXIT_PIPE_CLOSED
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            print("roofbench: too many open files; raise the limit, for instance with `ulimit -n 1024`", file=sys.stderr)
            return EXIT_TOO_MANY_FILES
        if not takes_nothing():
            raise
        if was_told_to_end():  # by a terminal that was closed, which takes no more output
            return EXIT_INTERRUPTED
        print(f"roofbench: the output cannot be written: {error.strerror}", file=sys.stderr)
        return EXIT_OUTPUT_LOST
    return status


def _readable(text: str) -> str:
    """One line, whatever was given; bytes without characters in the locale are shown as the UTF-8 that they most likely are."""
    return printable(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def run(argv: Sequence[str]) -> int:
    """Parse and carry out one command; errors escape."""
    parser = make_parser(argv[:1] if argv and argv[0] in COMMANDS else COMMANDS)
    _refuse_leading_option(parser, argv)
    naming.refuse_setting(parser, argv)
    try:
        args, extra = parser.parse_known_args(argv)
    except SystemExit as done:  # --help or --version have printed; what they printed has yet to reach its reader
        return int(done.code or 0)
    if args.command is None:
        if extra:
            raise UsageError(_not_understood(extra[0], parser))
        parser.print_help()
        return 0
    _take_scattered(args, extra)
    _refuse_lost_folder()
    with naming_store(AS_OPTION if hasattr(args, "store") else {}):
        return int(args.module.run(args))


def _refuse_leading_option(parser: Parser, argv: Sequence[str]) -> None:
    """``UsageError`` for an option of a command that stands before it, whose value would be taken for the command."""
    name, _, value = argv[0].partition("=") if argv else ("", "", "")
    if not name.startswith("-") or name in parser._option_string_actions:
        return
    command = next((text for text in argv[1:] if text in COMMANDS), None)
    if command is None and name != naming.OPTION:
        return
    own = naming.parser_of(parser, command or "show")
    if not naming.has_option(own, name):
        raise UsageError(_not_understood(argv[0], own))
    if name == naming.OPTION:
        following = argv[1] if not value and len(argv) > 1 and argv[1] != command else ""
        name = f"{name} {value or following or 'PATH'}"
    raise UsageError(f"{name} is an option of a command and stands behind it; write {own.prog} {name}")


def _refuse_lost_folder() -> None:
    """Paths are relative to the current folder, and several libraries ask for it."""
    try:
        os.getcwd()  # noqa: PTH109
    except OSError as error:
        raise UsageError(f"the current folder cannot be used ({error.strerror}); change to one that is there") from error


def make_parser(names: Sequence[str] = COMMANDS) -> Parser:
    """The parser of the command line, with those commands; each command's has its module and itself among its defaults.

    Only what is asked for is imported: all of it together would take a plan as long as a thousand cases.
    """
    parser = Parser(prog="roofbench", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"roofbench {__version__}", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in names:
        module = import_module(f"suite.commands.{name}")
        own = commands.add_parser(
            name, help=module.SUMMARY, description=f"{module.SUMMARY}\n\n{module.DETAIL}", epilog=examples(module.EXAMPLES)
        )
        own.set_defaults(module=module, parser=own)
        module.arguments(own)
    return parser


def _take_scattered(args: argparse.Namespace, extra: Sequence[str]) -> None:
    """Overrides may stand before and after options; everything else that was not understood is refused."""
    for text in extra:
        if text.startswith("-") or not hasattr(args, "overrides"):
            raise UsageError(_not_understood(text, args.parser))
    if extra:
        args.overrides.extend(extra)


def _not_understood(text: str, parser: argparse.ArgumentParser) -> str:
    if not text.startswith("-"):
        return f"unexpected argument '{text}'; see `{parser.prog} --help`"
    name, _, value = text.partition("=")
    if name == naming.OPTION and naming.takes_settings(parser) and parser.prog not in ASKS_NO_STORE:
        return naming.no_option(parser.prog, value)
    options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    return f"unknown option '{text}' for {parser.prog}{nearest(name, options)}"


if __name__ == "__main__":
    sys.exit(main())
