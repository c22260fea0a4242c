"""``roofbench selftest``: whether the instrument can be trusted on the machine at hand."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, TextIO

from suite.commands import naming
from suite.commands.opening import Opening, refuse_store
from suite.commands.options import AS_OPTION, add_config_dir, add_json, naming_store
from suite.commands.output import say
from suite.errors import UsageError
from suite.interrupts import EXIT_INTERRUPTED, leave, on_interrupt
from suite.paths import shown

if TYPE_CHECKING:
    from suite.locks import Locks
    from suite.selftest.carry import Progress
    from suite.selftest.course import Course
    from suite.selftest.record import Selftest
    from suite.settings import BackendSettings, RunConfig
    from suite.store.writer import Store

SUMMARY = "Check whether measurements on this machine can be trusted: timer, flush, load, clock, repeatability."
DETAIL = """\
Measures twenty matrix products sized to the device (cold and warm, bound by arithmetic and by memory), the largest also in a
burst, the cold ones with everything doubled that makes them cold, and all of them a second time: a few minutes. Each question
ends ok, warn, FAIL or n/a (the device does not offer it) with one sentence. Raw results are stored as runs of the experiment
selftest; the verdict with them, and how closely the device repeats itself.

Takes backend, backends.*, device, hardware, launcher, store.url, wait_s, seed, note, and the group measure (fast, standard,
precise) as run does; of measure.* everything but regimes, interleave and max_burst_cases, for the cases themselves are fixed.
The exit status is 3 when a question ends in FAIL, and with --last when one of the stored verdicts did."""
EXAMPLES = """\
roofbench selftest                              the best device found
roofbench selftest device=all                   every GPU of this node, side by side
roofbench selftest measure=fast                 with wider intervals, sooner done
roofbench selftest --last                       the latest verdicts of this store, measuring nothing
roofbench selftest --last --store node7.db      those of another store
roofbench selftest --json store.url=node7.db    figures for programs"""

EXIT_FINDING_FAILED = 3
# The cases are always the same for a device, so that two selftests of it compare.
FIXED = (
    "experiment", "job", "jobs", "search", "oversize", "max_cases", "max_kernel_s", "max_time_s", "resume", "measure.regimes",
    "measure.interleave", "measure.max_burst_cases",
)  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="backend, device, hardware, store.url, wait_s, seed, note, measure=fast or precise, measure.* but for regimes, "
        "interleave and max_burst_cases",
    )
    parser.add_argument(
        "--last",
        action="store_true",
        help="print each device's latest verdict of the store, with its exit status; measure nothing",
    )
    parser.add_argument(
        "--store",
        dest="read_store",
        metavar="PATH",
        help="with --last, which only reads: the store, as store.url=PATH names it",
    )
    add_config_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and judge, or print what was judged before."""
    _refuse_store(args)
    _refuse_fixed(args.overrides)
    from suite.config import compose
    from suite.ranks.join import placed, told_by_rank_0
    from suite.ranks.launched import part
    from suite.selftest.course import EXPERIMENT

    overrides = [f"experiment={EXPERIMENT}", *args.overrides]
    config, own = compose(overrides, args.config_dir), part(os.environ)
    if not args.last:
        with told_by_rank_0(own):
            config = placed(config, overrides, own)
    selftests = (
        _stored(args.read_store or config.store.url, args.overrides) if args.last else _measured(config, overrides, args.json)
    )
    if selftests is None:
        return EXIT_INTERRUPTED
    _print(selftests, args.json)
    from suite.selftest.record import Status

    return EXIT_FINDING_FAILED if any(each.status is Status.FAIL for each in selftests) else 0


def _refuse_fixed(overrides: Sequence[str]) -> None:
    for override in overrides:
        key = override.lstrip("+~").partition("=")[0]
        if key in FIXED or key.startswith("jobs."):
            raise UsageError(
                f"{override} cannot change a selftest: its cases are fixed, so that two of them compare; leave it out"
            )


def _refuse_store(args: argparse.Namespace) -> None:
    """``--store`` is what a command reads; a selftest that measures has a setting for where it writes."""
    if args.read_store is None:
        return
    if not args.last:
        raise UsageError(
            f"--store {args.read_store} goes with --last, which only reads; where a selftest stores what it measures is a "
            f"setting: write {naming.SETTING}={args.read_store}"
        )
    named = [override for override in args.overrides if override.lstrip("+~").partition("=")[0] == naming.SETTING]
    if named:
        raise UsageError(f"--store {args.read_store} and {named[-1]} both name the store; give one of them")


def _stored(url: str, overrides: Sequence[str]) -> "list[Selftest]":
    """The latest selftest of each device in the store under each backend: what one says is no word on another."""
    from suite.store.queries import Reader

    for override in overrides:
        if override.partition("=")[0] != "store.url":
            raise UsageError(f"{override} does not go with --last, which prints what the store has; only --store PATH does")
    with naming_store({"run `roofbench run` first": "run `roofbench selftest` first", **AS_OPTION}), Reader.open(url) as reader:
        found = {(each.device_uid, each.backend): each for each in reversed(reader.selftests())}
    if not found:
        raise UsageError(
            f"store {shown(reader.path)} has no selftest; run `roofbench selftest` first, or name one with --store PATH"
        )
    return list(found.values())


def _measured(config: "RunConfig", overrides: Sequence[str], as_json: bool) -> "list[Selftest] | None":
    """Measure on every chosen device; ``None`` when it was interrupted.

    Whatever can be refused is refused before there is a store: what cannot be planned, a held device, a worker that fails.
    """
    from suite.devices import resolve
    from suite.locks import Wait, hold
    from suite.selftest.course import courses
    from suite.sweep import devices

    resolved = resolve(config)
    planned = courses(resolved.config, resolved.slots, _offers)
    sys.stderr.writelines(f"roofbench: {note}\n" for note in resolved.notes)
    refuse_store(config.store.url)
    with ExitStack() as stack:
        stack.enter_context(on_interrupt(leave))
        locks = stack.enter_context(hold(devices(resolved.slots), wait=Wait(config.wait_s, say)))
        opening = Opening(config.store.url, stack)
        return _carry_out(planned, locks, opening, overrides, sys.stderr if as_json else sys.stdout)


def _offers(backend: "BackendSettings") -> bool:
    """Whether a backend takes these settings: asked as any backend is for its devices."""
    from suite.devices import ask_backend

    return bool(ask_backend(backend.target or "", backend.options).devices)


def _carry_out(
    planned: "Sequence[Course]", locks: "Locks", opening: Opening, overrides: Sequence[str], out: TextIO
) -> "list[Selftest] | None":
    from suite.errors import RoofbenchError
    from suite.progress import display
    from suite.selftest.carry import Progress, Request, carry_out

    def announce(line: str) -> None:
        out.write(f"{line}\n")
        out.flush()

    request = Request(["roofbench", *sys.argv[1:]], overrides, locks, opening, announce, lambda: display(out))
    progress = Progress(sum(course.cases for course in planned))
    announce(_ahead(planned))
    try:
        return [selftest for course in planned for selftest in carry_out(course, request, progress)]
    except KeyboardInterrupt:
        announce(f"interrupted: {_left(progress, opening.store)}")
        return None
    except RoofbenchError:
        if progress.runs:
            announce(f"ended early: {_left(progress, opening.store)}")
        raise


def _ahead(planned: "Sequence[Course]") -> str:
    from suite.show.results import span

    devices = sum(len(course.slots) for course in planned)
    cases = sum(course.cases for course in planned)
    about = span(sum(course.predicted_s for course in planned))
    return f"selftest: {cases} cases on {devices} device{'s' * (devices != 1)}, about {about}"


def _left(progress: "Progress", store: "Store | None") -> str:
    if store is None or not progress.runs:
        return "nothing was stored, and no verdict was reached"
    runs = ", ".join(progress.runs)
    return (
        f"{progress.stored} of {progress.total} cases are stored in {shown(store.path)} (runs {runs}); no verdict was reached"
    )


def _print(selftests: "Sequence[Selftest]", as_json: bool) -> None:
    from suite.selftest.verdict import verdict_lines
    from suite.show.screen import screen_of

    if as_json:
        json.dump([selftest.to_json() for selftest in selftests], sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
        return
    for selftest in selftests:
        sys.stdout.write("\n")
        sys.stdout.writelines(f"{line}\n" for line in verdict_lines(selftest, screen_of(sys.stdout)))
