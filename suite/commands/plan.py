"""``roofbench plan``: what a run would measure, how long it would take, and whether it fits, without touching a device."""

import argparse
import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from suite.commands.options import add_config_dir, add_json
from suite.commands.output import json_array
from suite.gigabytes import gigabytes

if TYPE_CHECKING:
    from suite.commands.placing import Placed
    from suite.hardware.spec import HardwareSpec
    from suite.outcome import Outcome
    from suite.planned import DeviceSlot, PlannedCase
    from suite.rows import RunInfo
    from suite.search.expected import Waiting
    from suite.search.subject import Subject
    from suite.settings import RunConfig

SUMMARY = "Print the cases that a run would measure, with predicted time and memory."
DETAIL = """\
Takes the same overrides as run and measures nothing. Device facts come from a probe in a child process, kept until the
driver, the boot or the packages change; hardware=NAME plans for a machine that is not here, or where that sheet is of the one
that is, for this one. Where neither is known, memory is not checked, and the plan says so. Calibration is planned on a device
that has none in the store; resume=RUN leaves out what that run has measured. Under torchrun, srun or mpirun rank 0 plans for
the ranks that were started."""
EXAMPLES = """\
roofbench plan                                              the quick experiment on the best device
roofbench plan experiment=standard hardware=nvidia-h200-sxm5-141gb
roofbench plan 'jobs.gemm.shapes=[512,4096x128256x4096]' --json
roofbench plan resume=latest store.url=h200.db              what an interrupted run has left to do"""

SAY_WHAT_IS_PASSED_OVER = ("gemm", "attention", "decode", "decode_step")  # jobs of ours with a module of that name
CALIBRATION = "calibration"  # the job that plan adds by itself
SKIPPED = "what the device turns out not to offer is skipped at once, and its seconds, which count here, are not spent"
TITLE_WIDTH = 100  # characters of a case beyond which its figures stand behind it, and not in their column
EXAMPLES_LEFT_OUT = 3  # workloads named before the rest is only counted


class Planned(NamedTuple):
    """A plan with what it was made from.  ``waiting`` are those of its ``searches`` that have something left to measure.

    ``unchecked`` says why memory was not checked, empty when it was.  ``resumed`` is the run that it goes on with; ``cases``
    are then what is left of it.  ``unread`` says why a store that is there was not asked for what it has, ``recalibrated`` why
    its calibrations do not do.  ``sheet`` describes devices that are not here.
    """

    config: "RunConfig"
    slots: "tuple[DeviceSlot, ...]"
    cases: "tuple[PlannedCase, ...]"
    unchecked: str = ""
    resumed: "RunInfo | None" = None
    unread: str = ""
    recalibrated: tuple[str, ...] = ()
    searches: "tuple[Subject, ...]" = ()
    waiting: "Sequence[Waiting]" = ()
    sheet: "HardwareSpec | None" = None

    @property
    def sought(self) -> "list[PlannedCase]":
        """Stand-ins for the cases that the searches have yet to find."""
        return [stand_in for each in self.waiting for stand_in in each.stand_ins]

    @property
    def hunting_s(self) -> Mapping[int, float]:
        """What looking for them is predicted to take on each slot."""
        by_slot: dict[int, float] = {}
        for each in self.waiting:
            by_slot[each.subject.slot.slot] = by_slot.get(each.subject.slot.slot, 0.0) + each.hunting_s
        return by_slot


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings, as for run")
    add_config_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Plan and print; lines are written as they are made.  Of a launch's processes the first does, as it would measure."""
    from suite.ranks.join import is_first

    if not is_first():
        return 0
    with _no_garbage_collection():
        from suite.config import compose

        planned = make(compose(args.overrides, args.config_dir), args.overrides)
        lines = _json_lines(planned) if args.json else _text_lines(planned)
        sys.stdout.writelines(line + "\n" for line in lines)
    return 0


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Ten thousand cases live until the end: looking through them again and again costs a tenth of a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _text_lines(planned: Planned) -> Iterator[str]:
    from suite.plan import left_out

    yield from _case_lines(planned)
    limited = planned.config.max_kernel_s is not None
    yield from _totals(planned, left_out(planned.config, planned.slots) if limited else ())


def _json_lines(planned: Planned) -> Iterator[str]:
    names = {slot.slot: slot.info.name if slot.info else None for slot in planned.slots}
    rows = [_json_row(case, names[case.slot]) for case in planned.cases]
    return json_array([*rows, *(_json_search(each, names[each.subject.slot.slot]) for each in planned.waiting)])


def make(config: "RunConfig", overrides: Sequence[str] = ()) -> Planned:
    """Plan for the sheet that ``hardware`` names, else for the devices found here, else without device facts.

    What is left of the run that ``resume`` names is planned for the devices found here, as the run would be; so are the ranks
    of a launcher, of which none is waited for.
    """
    from suite.commands.known import cases, going_on, look
    from suite.commands.opening import refuse_planned
    from suite.commands.placing import here, place
    from suite.ranks.join import placed as over_ranks
    from suite.ranks.launched import part

    config, resumed = going_on(over_ranks(config, overrides, part(os.environ)), overrides)
    placed = place(config) if resumed is None else here(config)
    sheet = _sheet_of_absent(placed)
    if any(slot.info and slot.info.uid for slot in placed.slots):  # what is planned here would be run here
        refuse_planned(config.store.url)
    known = look(config.store.url, placed.slots, resumed)
    searches = searched(placed.config, placed.slots)
    planned = _without_lacking(cases(placed.config, placed.slots, known, resumed, searches), placed.slots, sheet)
    if resumed is None:
        refuse_too_many(placed.config, planned, searches)
    again = tuple(known.recalibrated(placed.slots)) if resumed is None else ()
    found = Planned(placed.config, placed.slots, planned, placed.unchecked, resumed, known.unread, again, searches, sheet=sheet)
    if searches:
        from suite.search.expected import waiting

        found = found._replace(waiting=waiting(searches, planned, known.done))
    if resumed is not None:
        from suite.sweep import left

        found = found._replace(cases=tuple(left(planned, known.done, known.recalibrate)))
    return found


def _is_absent(slot: "DeviceSlot") -> bool:
    return slot.info is None or not slot.info.uid


def _sheet_of_absent(placed: "Placed") -> "HardwareSpec | None":
    """The sheet that is named for devices that are not here."""
    if placed.config.hardware is None or not all(map(_is_absent, placed.slots)):
        return None
    from pathlib import Path

    from suite.hardware.catalogue import load

    return load(placed.config.hardware, [Path(folder) for folder in placed.config.hardware_folders])


def _without_lacking(
    cases: "Sequence[PlannedCase]", slots: "Sequence[DeviceSlot]", sheet: "HardwareSpec | None"
) -> "tuple[PlannedCase, ...]":
    """The cases, with that verdict on those that a device would not offer which is not here: one that is, is asked by a run."""
    from suite.hardware.lacking import lacking
    from suite.outcome import Outcome

    absent = {slot.slot for slot in slots if _is_absent(slot)}
    reasons = [lacking(each, sheet) if each.slot in absent else "" for each in cases]
    return tuple(
        each._replace(verdict=Outcome.UNSUPPORTED, reason=reason, predicted_s=0.0) if reason else each
        for each, reason in zip(cases, reasons, strict=True)
    )


def _lacking_lines(planned: Planned) -> Iterator[str]:
    """How many cases a device that is not here would not offer, and which formats it has no unit for."""
    from suite.hardware.lacking import without_unit
    from suite.outcome import Outcome
    from suite.report.words import counted

    lacking = [case for case in planned.cases if case.verdict is Outcome.UNSUPPORTED]
    if lacking:
        whys = "; ".join(dict.fromkeys(case.reason for case in lacking))
        yield f"{counted(len(lacking), 'case')} would be unsupported there: {whys}"
    if planned.sheet is not None:
        left = [case for case in planned.cases if case.verdict is not Outcome.UNSUPPORTED]
        if found := ", ".join(without_unit(left, planned.sheet)):
            yield f"no unit by the sheet {planned.sheet.id} for {found}: such cases would be emulated, or unsupported"
    if planned.resumed is None:
        from suite.ports import nothing_ported

        if nothing := nothing_ported(planned.config.jobs, planned.slots):
            yield f"a run is refused: {nothing}"


def searched(config: "RunConfig", slots: "Sequence[DeviceSlot]") -> "tuple[Subject, ...]":
    """What a run searches for; nothing is loaded for one without a search."""
    if config.search is None:
        return ()
    from suite.search.expected import searches

    return searches(config, slots)


def refuse_too_many(config: "RunConfig", cases: "Sequence[PlannedCase]", searches: "Sequence[Subject]") -> None:
    """``UsageError`` where searches bring a plan above ``max_cases``, which counts what a device is going to measure."""
    if searches:
        from suite.plan import check_count
        from suite.search.expected import sought

        check_count(config, [*cases, *sought(searches)], ("formats", "regimes", "search.finalists"))


def _case_lines(planned: Planned) -> Iterator[str]:
    several = len(planned.slots) > 1
    titles = [f"{case.case.title}{_on(case.slot, several)}" for case in planned.cases]
    width = min(TITLE_WIDTH, max(map(len, titles), default=0))
    if planned.cases or planned.waiting:
        yield _line("case", width, "memory", "time")
    for title, case in zip(titles, planned.cases, strict=True):
        ending = f"{_verdict_words(case.verdict)}: {case.reason}" if case.verdict else f"{case.predicted_s:.1f} s"
        yield _line(title, width, gigabytes(case.memory_bytes), ending)
    for each in planned.waiting:
        title = f"search {each.subject.name}{_on(each.subject.slot.slot, several)}  {_search_words(each)}"
        yield _line(title, width, gigabytes(each.subject.outline.memory_bytes), f"{_search_s(each):.1f} s")


def _verdict_words(verdict: "Outcome") -> str:
    from suite.outcome import Outcome

    return f"would be {verdict.value}" if verdict is Outcome.UNSUPPORTED else verdict.value


def _on(slot: int, several: bool) -> str:
    return f"  device {slot}" if several else ""


def _line(title: str, width: int, memory: str, time: str) -> str:
    return f"{title:<{width}}  {memory:>9}  {time:>7}"


def _search_words(waiting: "Waiting") -> str:
    """``10 s for the best of 5120 shapes, step 1024; then 3 measured cold/sustained/device and cold/burst/device``.

    Of one that has looked, how much is left to be measured.
    """
    from suite.report.words import counted

    subject, outline = waiting.subject, waiting.subject.outline
    if not waiting.hunting_s:
        return f"looked at what there is; {len(waiting.stand_ins)} of {counted(len(outline.stand_ins), 'case')} left to measure"
    regimes = " and ".join(regime.label for regime in subject.regimes)
    finalists = len(outline.stand_ins) // len(subject.regimes)
    looking = f"{subject.settings.budget_s:g} s for the best of {counted(outline.shapes, 'shape')}, step {outline.step}"
    return f"{looking}; then {finalists} measured {regimes}"


def _search_s(waiting: "Waiting") -> float:
    return waiting.hunting_s + sum(case.predicted_s for case in waiting.stand_ins)


def _totals(planned: Planned, left_out: Sequence[str]) -> Iterator[str]:
    everything = [*planned.cases, *planned.sought]
    largest = max((case.memory_bytes for case in everything if case.verdict is None), default=0)
    largest = max([largest, *(each.subject.outline.memory_bytes for each in planned.waiting)])
    resumed = planned.resumed
    yield ""
    if resumed is not None:
        yield f"run {resumed.run}: {len(everything)} of its {resumed.planned} cases are left"
    if planned.waiting or any(case.case.workload.job != CALIBRATION for case in planned.cases):
        yield SKIPPED
    yield f"{time_line(planned.config, planned.slots, everything, planned.hunting_s)}; at most {gigabytes(largest)} at once"
    if planned.unchecked:
        yield f"memory was not checked and times are guesses: {planned.unchecked}; hardware=NAME plans for one of the table"
    else:
        yield from _not_built_lines(planned.slots)
    yield from _lacking_lines(planned)
    if planned.unread:
        yield planned.unread
    yield from planned.recalibrated
    yield from left_out_lines(left_out)
    yield from not_searched_lines(planned.searches)
    if resumed is None and (nothing := nothing_left(planned.config, planned.slots, planned.cases)):
        yield f"a run is refused: {nothing}"
    if planned.waiting:
        from suite.search.expected import too_short

        if short := too_short(planned.config, planned.waiting):
            yield f"a run is refused: {short}"
    yield from remarks(planned.config, planned.slots)


def remarks(config: "RunConfig", slots: "Sequence[DeviceSlot]" = ()) -> Iterator[str]:
    """What the number of cases does not tell of an experiment on these devices."""
    from suite.ports import nothing_ported, without_port_lines

    if not nothing_ported(config.jobs, slots):  # which is refused with a reason that says as much
        yield from without_port_lines(config.jobs, slots)
    yield from _passed_over(config)
    if "collective" in config.jobs:
        from suite.jobs.collective import crowded, rounded

        yield from rounded.lines(config.jobs["collective"])
        yield from crowded.lines(config.jobs["collective"], slots)
    if config.experiment == "selftest":
        yield "this is one pass of four: `roofbench selftest` measures them all, with products sized to the device, and judges"


def _passed_over(config: "RunConfig") -> Iterator[str]:
    """What settings ask for that makes no case; a job's is loaded where the job is asked for, as plans answer at once."""
    for job in (each for each in SAY_WHAT_IS_PASSED_OVER if each in config.jobs):
        yield from import_module(f"suite.jobs.{job}.passed_over").lines(config.jobs[job])


def _not_built_lines(slots: "Sequence[DeviceSlot]") -> Iterator[str]:
    """A sheet can be planned for before there is a backend to measure it."""
    from suite.devices import missing

    for backend, target in dict.fromkeys((slot.backend, slot.target) for slot in slots):
        if reason := missing(target):
            yield f"this can be planned, not run: backend '{backend}' is {reason}"


def time_line(
    config: "RunConfig", slots: "Sequence[DeviceSlot]", cases: "Sequence[PlannedCase]", hunting_s: Mapping[int, float]
) -> str:
    """``33 cases on cpu Two cores (8.6 GB): about 2 min 10 s``, and where ``max_time_s`` ends it before that.

    ``hunting_s`` is what searches take on each slot before they have something to measure.
    """
    from suite.report.words import counted
    from suite.show.results import span

    devices = ", ".join(_device_words(slot) for slot in slots)
    total_s = _wall_s(slots, cases, hunting_s)
    line = f"{counted(len(cases), 'case')} on {devices}: about {span(total_s)}"
    if config.max_time_s is not None and total_s > config.max_time_s:
        line += f", of which max_time_s={config.max_time_s:g} allows {span(config.max_time_s)} at a time"
    return line


def _wall_s(slots: "Sequence[DeviceSlot]", cases: "Sequence[PlannedCase]", hunting_s: Mapping[int, float]) -> float:
    if len(slots) > 1 and all(slot.info for slot in slots):
        from suite.estimate import wall_s

        return wall_s(slots, cases, hunting_s)
    return sum(case.predicted_s for case in cases) + sum(hunting_s.values())


def nothing_left(config: "RunConfig", slots: "Sequence[DeviceSlot]", cases: "Sequence[PlannedCase]") -> str:
    """Why a run would measure nothing that was asked for, on none of its devices; empty where it would.

    ``cases`` are those of the whole run, also of one that goes on.
    """
    from suite.plan import left_out

    if config.search is not None or any(planned.case.workload.job != CALIBRATION for planned in cases):
        return ""
    longest = left_out(config, slots)
    return (
        f"nothing that was asked for is left: {longest[0]}{f', and {len(longest) - 1} more' if len(longest) > 1 else ''}; "
        f"choose smaller {_sizes(config)}, or max_kernel_s=null to measure them all the same"
    )


def _sizes(config: "RunConfig") -> str:
    """What is chosen smaller: jobs whose sizes are no shapes have names for them that only their settings tell."""
    other = [name for name, settings in config.jobs.items() if not hasattr(settings, "shapes")]
    if not other:
        return "shapes"
    return f"sizes (`roofbench run --cfg job --package jobs.{other[0]} job={other[0]}` prints what can be set)"


def left_out_lines(left_out: Sequence[str]) -> Iterator[str]:
    """The first workloads that are too long for this device, how many more, and how to measure them all the same."""
    for line in left_out[:EXAMPLES_LEFT_OUT]:
        yield f"left out: {line}"
    if len(left_out) > EXAMPLES_LEFT_OUT:
        yield f"left out: {len(left_out) - EXAMPLES_LEFT_OUT} more for the same reason"
    if left_out:
        yield "max_kernel_s=null measures them too"


def not_searched_lines(searched: "Sequence[Subject]") -> Iterator[str]:
    """The first of the shapes that a job names and that its searches do not look at, and how many more."""
    if not searched:
        return
    from suite.search.expected import left_out

    lines = left_out(searched)
    yield from (f"left out: {line}" for line in lines[:EXAMPLES_LEFT_OUT])
    if (more := len(lines) - EXAMPLES_LEFT_OUT) > 0:
        yield f"left out: {more} more shape{'s that were' if more > 1 else ' that was'} named"


def _device_words(slot: "DeviceSlot") -> str:
    if slot.info is None:
        return f"{slot.backend} (no device facts)"
    return f"{slot.backend} {slot.info.name} ({gigabytes(slot.info.memory_bytes)})"


def _json_row(planned: "PlannedCase", device: str | None) -> dict[str, Any]:
    """The identity fields of a result row, by the same names, and what was predicted."""
    case, workload = planned.case, planned.case.workload
    return {
        "case_key": case.key,
        "workload_key": workload.key,
        "job": workload.job,
        "implementation": case.implementation,
        "backend": case.backend,
        "device": device,
        "device_slot": planned.slot,
        "format": workload.format,
        "params": dict(workload.params),
        "semantics": dict(workload.semantics),
        "distribution": workload.distribution,
        "switches": dict(case.switches),
        "regime": case.regime._asdict(),
        "flops": planned.work.flops,
        "compulsory_bytes": planned.work.compulsory_bytes,
        "pipe": planned.work.pipe,
        "sets": planned.sets,
        "memory_bytes": planned.memory_bytes,
        "predicted_s": planned.predicted_s,
        "outcome": planned.verdict.value if planned.verdict else None,
        "reason": planned.reason,
    }


def _json_search(waiting: "Waiting", device: str | None) -> dict[str, Any]:
    """What is known of a search before it finds anything: everything but the sizes, and so no keys."""
    from dataclasses import asdict

    subject = waiting.subject
    row = _json_row(subject.outline.stand_ins[0], device)
    unknown = ("case_key", "workload_key", "flops", "compulsory_bytes", "sets")
    params = {name: value for name, value in row["params"].items() if name not in ("m", "n", "k")}
    return {
        **row,
        **dict.fromkeys(unknown),
        "params": params,
        "regime": None,
        "memory_bytes": subject.outline.memory_bytes,
        "predicted_s": _search_s(waiting),
        "search": {**asdict(subject.settings), "regimes": [regime._asdict() for regime in subject.regimes]},
    }
