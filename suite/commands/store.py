"""``roofbench store``: look after a store file."""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from suite.commands.opening import orphan_lines
from suite.commands.options import AS_SOURCE, add_json, add_store, examples, naming_store
from suite.commands.output import json_text, say
from suite.errors import UsageError
from suite.paths import shown

if TYPE_CHECKING:
    from suite.roofline import Summary
    from suite.store.maintain import Merged, Stored

SUMMARY = "Look after a store: merge, prune, vacuum, check, rebuild, upgrade."
DETAIL = "Each works on ./roofbench.db unless --store names another. `roofbench store ACTION --help` says more."
EXAMPLES = """\
roofbench store merge node1.db node2.db              their runs into ./roofbench.db
roofbench store prune --before 2026-01-01 --dry-run  which runs that would remove
roofbench store check --store h200.db                whether a store is whole"""

EXAMPLES_OF = {
    "merge": """\
roofbench store merge node1.db node2.db             their runs into ./roofbench.db
roofbench store merge node*.db --store fleet.db     into another store, which is made when it is not there""",
    "prune": """\
roofbench store prune 20261129T1840                 one run, by the beginning of its id
roofbench store prune --before 2026-01-01 --dry-run which runs that would remove; nothing is removed
roofbench store prune --before 2026-01-01 --store h200.db""",
    "vacuum": """\
roofbench store vacuum                              after a prune
roofbench store vacuum --store h200.db""",
    "check": """\
roofbench store check --store h200.db               whether a store is whole
roofbench store check --json | jq '.[].what'        what is wrong, for programs""",
    "rebuild": """\
roofbench store rebuild                             after an update that changed formulas
roofbench store rebuild --everything --store h200.db""",
    "upgrade": """\
roofbench store upgrade --store h200.db             so that this version can read it; `run` does it by itself
roofbench store upgrade                             the same for ./roofbench.db""",
}
ACTIONS = {
    "merge": "copy the runs of other stores into this one; what is there already is left as it is",
    "prune": "remove runs with everything they own; vacuum then gives the space back",
    "vacuum": "give back the space of what was removed",
    "check": "say everything that is wrong with the file; exit status 1 when something is",
    "rebuild": "derive rates and bounds anew from the raw samples where formulas have changed; exit status 1 where that fails",
    "upgrade": "bring a store of an older version to this one's schema; a copy is kept",
}
EXIT_BROKEN = 1


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare one parser for each action."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    made = {
        name: actions.add_parser(name, help=text, description=text, epilog=examples(EXAMPLES_OF[name]))
        for name, text in ACTIONS.items()
    }
    made["merge"].add_argument("sources", nargs="+", metavar="SOURCE", help="stores to copy from; they are only read")
    made["prune"].add_argument("runs", nargs="*", metavar="RUN", help="run ids, or the beginning of them")
    made["prune"].add_argument("--before", type=_date, metavar="DATE", help="runs that started before DATE (YYYY-MM-DD, UTC)")
    made["prune"].add_argument("--dry-run", action="store_true", help="only say what would be removed")
    made["rebuild"].add_argument("--everything", action="store_true", help="also what is of this version already")
    add_json(made["check"])
    for each in made.values():
        add_store(each)
        each.set_defaults(parser=each)


def run(args: argparse.Namespace) -> int:
    """Carry out one action and say what it did."""
    if args.action == "check":
        return _check(args)
    if args.action == "rebuild":
        return _rebuild(args)
    lines = {"merge": _merge, "prune": _prune, "vacuum": _vacuum, "upgrade": _upgrade}[args.action](args)
    sys.stdout.writelines(line + "\n" for line in lines)
    return 0


def _named(args: argparse.Namespace) -> str:
    """The store as it was given."""
    return shown(Path(args.store))


def _date(text: str) -> datetime:
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--before {text} is not a date; write YYYY-MM-DD, such as 2026-01-31") from error
    try:
        return given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
    except OverflowError as error:
        raise UsageError(f"--before {text} is in UTC before the year 1 or after 9999; write YYYY-MM-DD") from error


def _merge(args: argparse.Namespace) -> Iterator[str]:
    from suite.report.words import counted
    from suite.store.files import locate
    from suite.store.maintain import merge, refuse_source
    from suite.store.queries import Reader

    for source in args.sources:  # all of them before anything is copied
        with naming_store(AS_SOURCE):
            Reader.open(source).close()
            refuse_source(source, args.store)
    for source in args.sources:
        merged = merge(source, args.store, is_checked=True)
        for line in orphan_lines(locate(args.store), merged.orphans):
            say(line)
        added = (counted(merged.runs_added, "run"), counted(merged.results_added, "result"))
        judged = f"; {counted(merged.selftests_added, 'selftest')} copied" if merged.selftests_added else ""
        judged += f"; {counted(merged.compiled_added, 'compiled program')} copied" if merged.compiled_added else ""
        yield f"{shown(Path(source))}: {' and '.join(added)} copied{_present(merged)}{judged}"
        yield from (f"  run {name} was being written; merge again when it has ended" for name in merged.live)
        yield from (f"  run {old} is {new} here: that name was taken" for old, new in merged.renamed.items())


def _present(merged: "Merged") -> str:
    """``, 4 were there already, 2 of them with other figures, which stay as they are``; empty where none was."""
    if not merged.results_present:
        return ""
    there = f", {merged.results_present} {'was' if merged.results_present == 1 else 'were'} there already"
    if not merged.results_differing:
        return there
    of_them = "" if merged.results_present == 1 else f" {merged.results_differing} of them"
    return f"{there},{of_them} with other figures, which stay as they are"


def _prune(args: argparse.Namespace) -> Iterator[str]:
    from suite.report.words import counted
    from suite.store.maintain import prune

    if not args.runs and args.before is None:
        raise UsageError("prune needs runs or a date: roofbench store prune RUN..., or --before 2026-01-31")
    pruned = prune(args.store, runs=args.runs, before=args.before, dry_run=args.dry_run)
    yield from (f"run {name}" for name in pruned.runs)
    done = "would be removed" if args.dry_run else "removed"
    yield f"{counted(len(pruned.runs), 'run')} with {counted(pruned.results, 'result')} {done}"
    if pruned.selftests:
        yield f"{counted(pruned.selftests, 'selftest')} {done}: of the runs behind the verdict none is left"
    if pruned.noted:
        yield f"{counted(pruned.noted, 'selftest')} kept: of the runs behind the verdict some are left"
    yield from (f"run {name} is being written and stays" for name in pruned.live)


def _vacuum(args: argparse.Namespace) -> Iterator[str]:
    from suite.store.maintain import vacuum

    size = vacuum(args.store)
    yield f"{_named(args)}: {size.before_bytes / 1e6:.2f} MB before, {size.after_bytes / 1e6:.2f} MB now"


def _rebuild(args: argparse.Namespace) -> int:
    from suite.report.words import counted
    from suite.store.maintain import Problem, rebuild

    left: list[Problem] = []
    derived = rebuild(args.store, summarized, everything=args.everything, tell=left.append)
    sys.stdout.writelines(f"{problem.where} is left as it was: {problem.what}\n" for problem in left)
    sys.stdout.write(f"{_named(args)}: {counted(derived, 'result')} derived anew\n")
    return EXIT_BROKEN if left else 0


def summarized(stored: "Stored") -> "Summary | None":
    """Derive a result's summary from what is stored of it, with the spec that its device had then."""
    from suite.hardware.spec import HardwareSpec
    from suite.roofline import Ceilings, summarize

    spec = HardwareSpec.from_json(stored.device.spec) if stored.device.spec is not None else None
    ceilings = Ceilings(stored.device.info, spec)
    return summarize(stored.measurement, stored.work, stored.case.regime, ceilings, stored.calibration)


def _upgrade(args: argparse.Namespace) -> Iterator[str]:
    from suite.store.maintain import upgrade

    done = upgrade(args.store)
    if done.old == done.new:
        yield f"{_named(args)}: schema {done.new} is current, nothing to do"
        return
    backup = done.backup and shown(done.backup)
    yield f"{_named(args)}: schema {done.old} is now {done.new}; the store before is kept as {backup}"
    yield "figures that are new with it are derived for older results by `roofbench store rebuild`"


def _check(args: argparse.Namespace) -> int:
    from suite.report.words import counted
    from suite.store.maintain import check, in_log, remedies

    problems = check(args.store)
    in_log_line = in_log(args.store)
    if args.json:
        sys.stdout.write(json_text([problem._asdict() for problem in problems]) + "\n")
    else:
        sys.stdout.writelines(f"{problem.where}: {problem.what}\n" for problem in problems)
        sys.stdout.write(f"{_named(args)}: {counted(len(problems), 'problem')}\n" if problems else f"{_named(args)} is whole\n")
        sys.stdout.writelines(f"  {line}\n" for line in remedies(args.store, problems))
    if in_log_line:
        say(in_log_line)
    return EXIT_BROKEN if problems else 0
