"""``roofbench run``: measure, store, and show."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from suite.commands.options import add_config_dir, store_option, store_override
from suite.commands.output import say
from suite.errors import StoreWriteFailed, UsageError
from suite.interrupts import EXIT_INTERRUPTED, leave, on_interrupt
from suite.paths import shown

if TYPE_CHECKING:
    from pathlib import Path

    from suite.commands.known import Known
    from suite.devices import Resolved
    from suite.events import Event, SweepFinished
    from suite.planned import PlannedCase
    from suite.rows import RunInfo
    from suite.search.subject import Subject
    from suite.settings import RunConfig
    from suite.store.queries import Reader
    from suite.store.writer import Store
    from suite.sweep import Watch, Workers

SUMMARY = "Measure: compose a run, measure its cases, store every result, print them."
DETAIL = """\
Settings are key=value: a group picks a file (experiment=standard, backend=cuda, measure=precise), a dotted key sets one
value ('jobs.gemm.shapes=[4096x4096x4096]', measure.target=0.002, store.url=h200.db). Groups: job, backend, measure,
experiment, store, launcher, hardware. Bad settings end the command before anything runs or is created.

A run can be interrupted and goes on with resume=RUN or resume=latest; what was finished is kept. So does one that reached its
own max_time_s, which is no interruption: its exit status is 0, or 3 where a case that it measured went wrong. A device that
another run holds ends the command; wait_s=SECONDS waits for it. Collectives that torchrun, srun or mpirun started go on under
one of them, with as many ranks. -m makes one run for each combination of values given with commas, all in the same store, and
none where one of them cannot run here; Hydra notes what it swept under ./multirun.

--cfg and --info show what would be composed, as in any Hydra program; the files that it comes from, which --cfg names, say
what each setting means. --cfg experiment prints it, or with resume=RUN a stored run's settings, as one experiment file: what to
hand on where a run was composed from a folder of your own. It says what it cannot carry."""
EXAMPLES = """\
roofbench run                                                the quick experiment on the best device found
roofbench run experiment=standard device=all                 every GPU of this node, each case on each
roofbench run 'jobs.gemm.formats=[bf16]' 'jobs.gemm.shapes=[1024,8192]' measure=precise
roofbench run job=decode 'jobs.decode.batches=[4]' 'jobs.decode.kv_lens=[512]'  another job, at sizes for a few CPU cores
roofbench run --cfg job --package jobs.decode job=decode     what can be set of that job
roofbench run -m measure=fast,precise                        two runs in one store
roofbench run resume=latest                                  go on with an interrupted run
roofbench run --cfg experiment resume=latest > again.yaml    the settings of the latest run, as a file"""

EXIT_FAILED, EXIT_CASES_FAILED = 1, 3


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings; see --info and --cfg for what there is")
    add_config_dir(parser)
    several = "one run for each combination of values given with commas; none where one of them cannot run"
    parser.add_argument("--multirun", "-m", action="store_true", help=several)
    kinds = ["job", "hydra", "all", "experiment"]
    parser.add_argument("--cfg", "-c", nargs="?", const="job", choices=kinds, help="print the configuration")
    parser.add_argument(
        "--info",
        "-i",
        nargs="?",
        const="all",
        choices=["all", "config", "defaults", "defaults-tree", "plugins", "searchpath"],
        help="print how the configuration is put together",
    )
    parser.add_argument("--package", "-p", metavar="PACKAGE", help="with --cfg: only this part, such as measure")
    parser.add_argument("--resolve", action="store_true", help="with --cfg: with interpolations resolved")


def run(args: argparse.Namespace) -> int:
    """One run, several with ``-m``, or a look at the configuration."""
    _refuse_two_modes(args)
    if (args.package or args.resolve) and args.cfg in (None, "experiment"):
        raise UsageError("--package and --resolve go with --cfg; write roofbench run --cfg job --resolve")
    if args.cfg == "experiment":
        return _print_experiment(args)
    if args.cfg or args.info:
        return _inspect(args)
    if args.multirun:
        return _sweep_configurations(args)
    from suite.config import compose
    from suite.ranks.join import taking_part

    return taking_part(compose(args.overrides, args.config_dir), args.overrides, measure)


def _refuse_two_modes(args: argparse.Namespace) -> None:
    """As Hydra does, whose own message names options that there are none of here."""
    given = [name for name, value in (("-m", args.multirun), ("--cfg", args.cfg), ("--info", args.info)) if value]
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} do not go together, as in any Hydra program: a sweep has a configuration for each "
            "combination; write --cfg or --info with one value each, without -m"
        )


def _inspect(args: argparse.Namespace) -> int:
    from suite.config.multirun import inspect

    flags = ["--cfg", args.cfg] if args.cfg else ["--info", args.info]
    flags += ["--package", args.package] if args.package else []
    flags += ["--resolve"] if args.resolve else []
    inspect(flags, args.overrides, args.config_dir)
    return 0


def _print_experiment(args: argparse.Namespace) -> int:
    """What would be measured, or what a stored run was, as one file."""
    from suite.commands.known import stored_run
    from suite.config import compose, to_stored
    from suite.experiment_file import experiment_file, missing_elsewhere
    from suite.ranks.join import placed, refuse_joined_by_hand
    from suite.ranks.launched import part

    refuse_joined_by_hand(args.overrides)
    config, what, own = compose(args.overrides, args.config_dir), "a run", part(os.environ)
    if own is not None and own.rank:
        return 0
    if own is not None:
        config = placed(config, args.overrides, own)
    if config.resume:
        config, info = stored_run(config, args.overrides)
        what = f"run {info.run}"
    stored = to_stored(config)
    sys.stdout.write(experiment_file(stored, what))
    sys.stderr.writelines(f"roofbench: not in this file: {clause}\n" for clause in missing_elsewhere(stored))
    return 0


def _sweep_configurations(args: argparse.Namespace) -> int:
    """One run after the other, none where one of them cannot run here or into its store as that is now; one that fails later
    leaves the others to go on.

    The worst exit status counts, and none says that nothing was run when something was.
    """
    from suite.commands.known import going_on
    from suite.commands.opening import refuse_store
    from suite.config.multirun import sweep
    from suite.errors import RoofbenchError
    from suite.ranks.join import is_first, placed, taking_part, told_by_rank_0
    from suite.ranks.launched import part
    from suite.report.printable import printable

    own, statuses = part(os.environ), []

    def task(config: "RunConfig", overrides: Sequence[str]) -> None:
        if is_first():
            sys.stdout.write(f"\n{printable(' '.join(overrides))}\n")
        try:
            statuses.append(taking_part(config, overrides, measure))
        except RoofbenchError as error:
            sys.stderr.write(f"roofbench: {printable(str(error))}\n")
            statuses.append(error.exit_status)
        if statuses[-1] == EXIT_INTERRUPTED:
            raise KeyboardInterrupt

    def refuse(config: "RunConfig", overrides: Sequence[str]) -> None:
        with told_by_rank_0(own):
            config = placed(config, overrides, own)
        if is_first() or not config.resume:
            _resolved(*going_on(config, overrides))
        if is_first():
            refuse_store(config.store.url)

    sweep(args.overrides, args.config_dir, task, refuse)
    worst = max(statuses, key=[0, EXIT_CASES_FAILED, UsageError.exit_status, EXIT_FAILED].index, default=0)
    refused_all = all(status == UsageError.exit_status for status in statuses)
    return EXIT_FAILED if worst == UsageError.exit_status and not refused_all else worst


def _resolved(config: "RunConfig", resumed: "RunInfo | None") -> "tuple[Resolved, tuple[Subject, ...]]":
    """The devices and the searches of a run; ``UsageError`` for whatever can be refused before a device is touched."""
    from suite.commands.plan import nothing_left, refuse_too_many, searched
    from suite.devices import resolve
    from suite.plan import plan
    from suite.ports import nothing_ported

    resolved = resolve(config)
    if resumed is None and (nothing := nothing_ported(resolved.config.jobs, resolved.slots)):
        raise UsageError(nothing)
    cases = plan(resolved.config, resolved.slots, ())
    searches = searched(resolved.config, resolved.slots)
    if resumed is None:
        refuse_too_many(resolved.config, cases, searches)
    if resumed is None and (nothing := nothing_left(resolved.config, resolved.slots, cases)):
        raise UsageError(nothing)
    return resolved, searches


def measure(config: "RunConfig", overrides: Sequence[str]) -> int:
    """Carry out one run and print its results; the exit status says how its cases ended.

    Whatever can be refused is refused before there is a store: a held device, workers that do not start.  What the store is
    to be refused for is looked for before a device is waited for.
    """
    from suite.commands.known import going_on, look
    from suite.commands.opening import Opening, refuse_store
    from suite.locks import Wait, hold
    from suite.ranks.join import joined_ranks
    from suite.sweep import devices, started

    config, resumed = going_on(config, overrides)
    resolved, searches = _resolved(config, resumed)
    refuse_store(config.store.url)
    with ExitStack() as stack:
        stack.enter_context(on_interrupt(leave))
        locks = stack.enter_context(hold(devices(resolved.slots), wait=Wait(config.wait_s, say)))
        opening = Opening(config.store.url, stack)
        ahead = _ahead(resolved, searches, look(config.store.url, resolved.slots, resumed), resumed)
        workers = stack.enter_context(started(resolved.config, resolved.slots, locks))
        begun = _Begun(joined_ranks(resolved.config))
        with _saying_how_to_go_on(config.store.url, begun):
            finished = _measure(ahead, workers, opening(), overrides, begun)
    with _saying_how_to_go_on(config.store.url, begun):
        return _show(finished, opening(), begun.ranks)


class _Begun:
    """The run that is stored while there is something left of it to measure; empty before and after.

    ``ranks`` are those of a launcher, without which it does not go on; 0 where there is none.
    """

    run = ""

    def __init__(self, ranks: int = 0) -> None:
        self.ranks = ranks

    def watching(self, watch: "Watch") -> "Watch":
        """Note what ``watch`` is told of the run's beginning and end, before it is told: it may fail."""
        from suite.events import SweepFinished, SweepStarted

        def tell(event: "Event") -> None:
            if isinstance(event, SweepStarted):
                self.run = event.run
            elif isinstance(event, SweepFinished) and event.status == "complete":
                self.run = ""
            watch(event)

        return tell


@contextmanager
def _saying_how_to_go_on(url: str, begun: _Begun) -> Iterator[None]:
    """A run whose store stopped taking results can go on where the store can be had back.

    So can one that ends before it could say so: at a second signal, or when the reader of its output is gone.
    """
    from suite.store.files import locate

    try:
        yield
    except (KeyboardInterrupt, OSError):
        if begun.run:
            with suppress(OSError):
                say(_to_go_on(begun.run, locate(url), begun.ranks))
        raise
    except StoreWriteFailed as error:
        if not error.run:
            raise
        told = StoreWriteFailed(f"{error}; {_to_go_on(error.run, locate(url), begun.ranks)}")
        told.run = error.run
        raise told from error


def _to_go_on(run: str, store: "Path", ranks: int) -> str:
    from suite.ranks.join import start_again

    how = f"to go on, {start_again(ranks)}" if ranks else "to go on"
    return f"{how}: roofbench run resume={run}{store_override(store)}"


class _Ahead(NamedTuple):
    """What is going to be measured: every case of the run and its searches, and how much of it already has a result."""

    resolved: "Resolved"
    cases: "tuple[PlannedCase, ...]"
    searches: "tuple[Subject, ...]"
    known: "Known"
    resumed: "RunInfo | None"


def _ahead(resolved: "Resolved", searches: "tuple[Subject, ...]", known: "Known", resumed: "RunInfo | None") -> _Ahead:
    """``UsageError`` where ``max_time_s`` would end every part of the run before a search has come any further."""
    from suite.commands.known import cases

    planned = cases(resolved.config, resolved.slots, known, resumed, searches)
    if searches:
        from suite.search.expected import too_short, waiting

        if short := too_short(resolved.config, waiting(searches, planned, known.done)):
            raise UsageError(short)
    return _Ahead(resolved, planned, searches, known, resumed)


def _measure(ahead: _Ahead, workers: "Workers", store: "Store", overrides: Sequence[str], begun: _Begun) -> "SweepFinished":
    from suite.progress import display
    from suite.sweep import Sweep, carry_out

    whole = Sweep(
        config=ahead.resolved.config,
        slots=ahead.resolved.slots,
        cases=ahead.cases,
        searches=ahead.searches,
        figures=ahead.known.figures,
        disturbed=ahead.known.disturbed,
        argv=["roofbench", *sys.argv[1:]],
        overrides=overrides,
        resume=ahead.resumed.run if ahead.resumed else None,
        recalibrate=ahead.known.recalibrate,
    )
    begun.run = whole.resume or ""
    _say_first(ahead)
    with display(sys.stdout) as watch:
        return carry_out(whole, workers, store, begun.watching(watch))


def _say_first(ahead: _Ahead) -> None:
    """What a person should know before the first case: how long it will take, what is passed over and what left out."""
    from suite.commands.plan import left_out_lines, not_searched_lines, remarks, time_line
    from suite.plan import left_out
    from suite.search.expected import still_hunting_s, still_sought
    from suite.sweep import left

    resolved, known = ahead.resolved, ahead.known
    sys.stderr.writelines(f"roofbench: {note}\n" for note in [*resolved.notes, *_no_verdict(ahead.resumed)])
    waiting = [
        *left(ahead.cases, known.done, known.recalibrate),
        *still_sought(ahead.searches, ahead.cases, known.done),
    ]
    hunting_s = still_hunting_s(ahead.searches, ahead.cases, known.done)
    sys.stdout.write(f"{time_line(resolved.config, resolved.slots, waiting, hunting_s)}\n")
    if ahead.resumed is None:
        sys.stdout.writelines(f"{line}\n" for line in known.recalibrated(resolved.slots))
    sys.stdout.writelines(f"{line}\n" for line in left_out_lines(left_out(resolved.config, resolved.slots)))
    sys.stdout.writelines(f"{line}\n" for line in not_searched_lines(ahead.searches))
    sys.stdout.writelines(f"{line}\n" for line in remarks(resolved.config, resolved.slots))


def _no_verdict(resumed: "RunInfo | None") -> "Iterator[str]":
    """What a person should know who goes on with a pass of a selftest, which needs all of them."""
    if resumed is None:
        return
    from suite.store.runs import SELFTEST

    if resumed.experiment == SELFTEST:
        one = f"run {resumed.run} is one pass of a selftest"
        yield f"{one}: no verdict comes of going on with it; `roofbench selftest` starts anew"


def _to_publish(run: str, path: "Path") -> str:
    """Into a file of the run's own: report.html may be there already, of this run by `make bench` or of another."""
    return f"roofbench report {run} -o report-{run}.html{store_option(path)}"


def _stalled(reader: "Reader", run: str) -> list[str]:
    """The searches that going on as before would not bring any further; nothing is loaded for a run without."""
    info = reader.resolve(run)
    if info.config.get("search") is None:
        return []
    from suite.report.peaks import stalled_lines

    return list(stalled_lines(reader, info))


def _show(finished: "SweepFinished", store: "Store", ranks: int) -> int:
    from suite.commands.show import print_run
    from suite.store.queries import Reader

    with Reader.open(str(store.path)) as reader:
        rows = print_run(reader, finished.run)
        stalled = [] if finished.status == "complete" or finished.by_signal else _stalled(reader, finished.run)
    sys.stdout.write(f"\nstored in {shown(store.path)}\n")
    if finished.status != "complete":
        sys.stdout.write(f"{finished.status}: {finished.reason}\n")
        sys.stdout.writelines(f"{line}\n" for line in stalled)
        sys.stdout.write(f"{_to_go_on(finished.run, store.path, ranks)}\n")
    elif finished.by_signal:
        sys.stdout.write("interrupted: every case of this run is stored\n")
    sys.stdout.write(f"a page to publish: {_to_publish(finished.run, store.path)}\n")
    if finished.by_signal:
        return EXIT_INTERRUPTED
    from suite.show.results import GRAVE

    return EXIT_CASES_FAILED if any(row.outcome in GRAVE for row in rows) else 0
