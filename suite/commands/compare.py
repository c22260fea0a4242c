"""``roofbench compare``: whether one run is faster or slower than another, case by case."""

import argparse
import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from suite.commands.options import DEFAULT_STORE, add_json
from suite.commands.output import say
from suite.errors import UsageError

if TYPE_CHECKING:
    from suite.compare.comparison import Comparison

SUMMARY = "Compare two runs: FASTER, SLOWER, SAME or UNDECIDED for each case, with the interval of the ratio."
DETAIL = """\
A is what B is held against: a ratio above 1 is slower. Two runs of one device are paired by case; other devices, backends and
implementations by workload and regime. What arithmetic bounds is compared in cycles where both devices counted them, else in
time. Results of another regime, method version or kind of evidence are never compared; what has no partner is listed with why.

SLOWER and FASTER say that the difference is beyond delta, SAME that it is within, UNDECIDED that these two runs cannot tell:
so is every case that was measured beside other processes on the device, in either run, whatever its ratio.
Delta is 1 % (--min-effect) or, where a selftest of the device is stored and found more, how far two of its runs differ anyway.
A selftest whose repeatability or contention ended in FAIL is not used: the one before it is, as far as the device is the same.
Each verdict rests on batches of samples, never on single ones, and p-values are corrected over the cases.

exit status: 0 done; 1 what --fail-on names was found; 2 bad input, or not one case could be compared."""
EXAMPLES = """\
roofbench compare 20261129T1840 latest                      the latest run against an earlier one
roofbench compare 20261129T1840 latest --fail-on slower     exit status 1 where any case is slower: a gate
roofbench compare latest latest --store a.db --store b.db   A in the first store, B in the second
roofbench compare 20261129T1840 latest --by workload        one implementation or device against another
roofbench compare 20261129T1840 latest --markdown > new.md  for a comment on a change
roofbench compare 20261129T1840 latest --json | jq .counts  for programs"""

WAYS = ("case", "workload")
FAIL_ON = ("slower", "faster", "different", "undecided", "lost")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("a", metavar="A", help="the run to hold against: an id, the beginning of one, or latest")
    parser.add_argument("b", metavar="B", help="the run that is judged")
    parser.add_argument(
        "--store",
        action="append",
        metavar="PATH",
        help="the store of both (default: ./roofbench.db); given twice, first that of A, then that of B",
    )
    parser.add_argument(
        "--by",
        choices=WAYS,
        help="pair results of the same case, or of the same workload and regime (default: case for runs of one device)",
    )
    parser.add_argument(
        "--fail-on",
        action="append",
        choices=FAIL_ON,
        default=[],
        metavar="WHAT",
        help="exit status 1 for slower, faster, different (either), undecided, or lost (ok in A and not in B); may be repeated",
    )
    parser.add_argument(
        "--min-effect",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="the least difference that matters (default: 0.01, which is 1 %%)",
    )
    add_json(parser)
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a comment on a change")


def run(args: argparse.Namespace) -> int:
    """Compare, print, and say what the gate found."""
    stores = _stores(args.store)
    if args.json and args.markdown:
        raise UsageError("--json and --markdown are two answers; ask for one of them")
    from suite.compare.gate import FailOn, failures
    from suite.compare.pairing import By
    from suite.compare.runs import Place, compare_runs
    from suite.compare.verdict import refuse_effect
    from suite.store.comparing import ComparisonReader

    refuse_effect(args.min_effect)
    with ExitStack() as stack:
        readers = {path: stack.enter_context(ComparisonReader.open(path)) for path in dict.fromkeys(stores)}
        a, b = (Place(readers[path], name) for path, name in zip(stores, (args.a, args.b), strict=True))
        comparison = compare_runs(a, b, By(args.by) if args.by else None, args.min_effect)
    _print(comparison, args)
    if not comparison.cases:
        raise UsageError(f"not one case of {comparison.a.run} and {comparison.b.run} could be compared{_remedy(comparison)}")
    failed = failures(comparison, [FailOn(each) for each in args.fail_on])
    if failed:
        say(f"failed, as --fail-on {' and '.join(dict.fromkeys(args.fail_on))} asks for: {', '.join(failed)}")
    return 1 if failed else 0


def _stores(given: list[str] | None) -> tuple[str, str]:
    paths = given or [DEFAULT_STORE]
    if len(paths) > 2:
        raise UsageError(f"--store is given {len(paths)} times; once for both runs, or twice, first for A and then for B")
    return paths[0], paths[-1]


def _print(comparison: "Comparison", args: argparse.Namespace) -> None:
    if args.json:
        json.dump(comparison.to_json(), sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    elif args.markdown:
        from suite.compare.markdown import render_markdown

        sys.stdout.write(render_markdown(comparison))
    else:
        from suite.show.comparison import comparison_lines
        from suite.show.screen import screen_of

        sys.stdout.writelines(f"{line}\n" for line in comparison_lines(comparison, screen_of(sys.stdout)))


def _remedy(comparison: "Comparison") -> str:
    if comparison.empty:
        return f": {comparison.empty[0]} has no result" if len(comparison.empty) == 1 else ": neither has a result"
    if comparison.pairing.by == "case":
        return ": why stands beside each; --by workload compares other devices and implementations"
    return ": why stands beside each"
