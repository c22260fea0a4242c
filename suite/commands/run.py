"""``roofbench run``: measure, store, and show."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from suite.commands.options import add_config_dir
from suite.errors import UsageError

if TYPE_CHECKING:
    from suite.devices import Resolved
    from suite.events import SweepFinished
    from suite.planned import PlannedCase
    from suite.rows import Calibration, RunInfo
    from suite.settings import RunConfig
    from suite.store.writer import Store

SUMMARY = "Measure: compose a run, measure its cases, store every result, print them."
DETAIL = """\
Settings are key=value: a group picks a file (experiment=standard, backend=cuda, measure=precise), a dotted key sets one
value ('jobs.gemm.shapes=[4096x4096x4096]', measure.target=0.002, store.url=h200.db). Groups: job, backend, measure,
experiment, store, launcher, hardware. Bad settings end the command before anything runs or is created.

A run can be interrupted and goes on with resume=RUN or resume=latest; what was finished is kept. -m makes one run for each
combination of values given with commas, all in the same store; Hydra notes what it swept under ./multirun. --cfg and --info
show what would be composed, as in any Hydra program."""
EXAMPLES = """\
roofbench run                                                the quick experiment on the best device found
roofbench run experiment=standard device=all                 every GPU of this node, each case on each
roofbench run 'jobs.gemm.formats=[bf16]' 'jobs.gemm.shapes=[8192]' measure=precise
roofbench run -m backend=cpu,cuda                            two runs in one store
roofbench run resume=latest                                  go on with an interrupted run"""

EXIT_CASES_FAILED = 3
EXIT_INTERRUPTED = 130
MAY_CHANGE_ON_RESUME = ("resume", "store.url")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings; see --info and --cfg for what there is")
    add_config_dir(parser)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--multirun", "-m", action="store_true", help="one run for each combination of values given with commas")
    mode.add_argument("--cfg", "-c", nargs="?", const="job", choices=["job", "hydra", "all"], help="print the configuration")
    mode.add_argument(
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
    if (args.package or args.resolve) and args.cfg is None:
        raise UsageError("--package and --resolve go with --cfg; write roofbench run --cfg job --resolve")
    if args.cfg or args.info:
        return _inspect(args)
    if args.multirun:
        return _sweep_configurations(args)
    from suite.config import compose

    return measure(compose(args.overrides, args.config_dir), args.overrides)


def _inspect(args: argparse.Namespace) -> int:
    from suite.config.multirun import inspect

    flags = ["--cfg", args.cfg] if args.cfg else ["--info", args.info]
    flags += ["--package", args.package] if args.package else []
    flags += ["--resolve"] if args.resolve else []
    inspect(flags, args.overrides, args.config_dir)
    return 0


def _sweep_configurations(args: argparse.Namespace) -> int:
    """One run after the other; one that cannot start says so and the others go on.  The worst exit status counts."""
    from suite.config.multirun import sweep
    from suite.errors import RoofbenchError

    statuses = []

    def task(config: "RunConfig", overrides: Sequence[str]) -> None:
        sys.stdout.write(f"\n{' '.join(overrides)}\n")
        try:
            statuses.append(measure(config, overrides))
        except RoofbenchError as error:
            sys.stderr.write(f"roofbench: {error}\n")
            statuses.append(error.exit_status)
        if statuses[-1] == EXIT_INTERRUPTED:
            raise KeyboardInterrupt

    sweep(args.overrides, args.config_dir, task)
    return max(statuses, key=[0, EXIT_CASES_FAILED, 2, 1].index, default=0)


def measure(config: "RunConfig", overrides: Sequence[str]) -> int:
    """Carry out one run and print its results; the exit status says how its cases ended."""
    from suite.devices import resolve
    from suite.locks import lock_directory
    from suite.plan import plan

    resumed = _resumed(config, overrides) if config.resume else None
    if resumed is not None:
        config = _stored_config(resumed, config)
    resolved = resolve(config)
    plan(resolved.config, resolved.slots, ())  # refuses what cannot be measured while nothing has been created
    lock_directory()  # the same for where the device's lock will be
    from suite.store.writer import Store

    with Store.open(config.store.url) as store:
        _say_migrated(store)
        finished = _measure(resolved, store, resumed, overrides)
    return _show(finished, store)


def _measure(resolved: "Resolved", store: "Store", resumed: "RunInfo | None", overrides: Sequence[str]) -> "SweepFinished":
    from suite.progress import display
    from suite.sweep import Sweep, sweep

    calibrations = _calibrations(resolved, store)
    cases = _cases(resolved, calibrations, resumed)
    whole = Sweep(
        config=resolved.config,
        slots=resolved.slots,
        cases=cases,
        calibrations=calibrations,
        argv=["roofbench", *sys.argv[1:]],
        overrides=overrides,
        resume=resumed.run if resumed else None,
        recalibrate=_recalibrate(resolved, store, resumed, calibrations) if resumed else frozenset(),
    )
    _say_first(resolved)
    with display(sys.stdout) as watch:
        return sweep(whole, store, watch)


def _say_first(resolved: "Resolved") -> None:
    """What a person should know before the first case: a device that is passed over, workloads that are left out."""
    from suite.commands.plan import left_out_lines
    from suite.plan import left_out

    sys.stderr.writelines(f"roofbench: {note}\n" for note in resolved.notes)
    sys.stdout.writelines(f"{line}\n" for line in left_out_lines(left_out(resolved.config, resolved.slots)))


def _cases(
    resolved: "Resolved", calibrations: "dict[str, Calibration]", resumed: "RunInfo | None"
) -> "tuple[PlannedCase, ...]":
    """Calibration first on devices that have none; a resumed run keeps to what it had planned."""
    from suite.plan import plan

    uids = {slot.slot: slot.info.uid for slot in resolved.slots if slot.info}
    known = [slot for slot, uid in uids.items() if uid in calibrations]
    cases = plan(resolved.config, resolved.slots, known)
    if resumed is not None and len(cases) != resumed.planned:
        whole = plan(resolved.config, resolved.slots, ())
        return whole if len(whole) == resumed.planned else cases
    return cases


def _calibrations(resolved: "Resolved", store: "Store") -> "dict[str, Calibration]":
    """What the store knows of these devices; one that lacks a figure is calibrated again."""
    from dataclasses import astuple

    from suite.store.queries import Reader

    with Reader.open(str(store.path)) as reader:
        found = {slot.info.uid: reader.calibration(slot.info.uid) for slot in resolved.slots if slot.info}
    return {uid: calibration for uid, calibration in found.items() if None not in astuple(calibration)}


def _recalibrate(
    resolved: "Resolved", store: "Store", resumed: "RunInfo", calibrations: "dict[str, Calibration]"
) -> frozenset[int]:
    """Slots whose calibration in the run to go on with is another chip's, and whose own chip has none stored."""
    from suite.store.queries import Reader

    uids = {slot.slot: slot.info.uid for slot in resolved.slots if slot.info}
    with Reader.open(str(store.path)) as reader:
        rows = reader.results(resumed.run, job="calibration")
    strange = {row.device_slot for row in rows if uids.get(row.device_slot) not in (None, row.device_uid)}
    return frozenset(slot for slot in strange if uids[slot] not in calibrations)


def _resumed(config: "RunConfig", overrides: Sequence[str]) -> "RunInfo":
    """The run to go on with.  Its configuration is its own: anything given beside it is refused by name."""
    from suite.store.queries import Reader

    for override in overrides:
        key = override.lstrip("+~").partition("=")[0]
        if key not in MAY_CHANGE_ON_RESUME:
            raise UsageError(f"{override} cannot change a run that goes on; leave it out, or start a new run without resume")
    with Reader.open(config.store.url) as reader:
        info = reader.resolve(config.resume)
    if info.status == "complete":
        raise UsageError(f"run {info.run} is complete, nothing is left to measure; start a new run without resume")
    return info


def _stored_config(resumed: "RunInfo", config: "RunConfig") -> "RunConfig":
    from suite.config import from_stored

    return replace(from_stored(resumed.config), store=config.store, resume=resumed.run)


def _say_migrated(store: "Store") -> None:
    if store.migrated.backup is not None:
        sys.stderr.write(f"roofbench: store upgraded; the one before is kept as {store.migrated.backup}\n")


def _show(finished: "SweepFinished", store: "Store") -> int:
    from suite.commands.show import print_run
    from suite.store.queries import Reader

    with Reader.open(str(store.path)) as reader:
        rows = print_run(reader, finished.run)
    where = "" if store.path.name == "roofbench.db" and store.path.parent == store.path.cwd() else f" --store {store.path}"
    sys.stdout.write(f"\nstored in {store.path}\n")
    if finished.status != "complete":
        sys.stdout.write(f"{finished.status}: {finished.reason}\n")
    sys.stdout.write(f"a page to publish: roofbench report {finished.run}{where}\n")
    if finished.by_signal:
        return EXIT_INTERRUPTED
    from suite.show.results import GRAVE

    return EXIT_CASES_FAILED if any(row.outcome in GRAVE for row in rows) else 0
