"""``roofbench show``: the results of a run, or everything about one of its cases."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from suite.commands.options import add_json, add_store, store_option, store_override
from suite.commands.output import json_array, json_text
from suite.report.glossary import glossary_lines

if TYPE_CHECKING:
    from suite.report.floors import Ground
    from suite.rows import DeviceRow, ResultDetail, ResultRow, RunInfo
    from suite.show.screen import Screen
    from suite.store.queries import Reader

IN_DOUBT = "bound_in_doubt"  # in JSON: the bandwidth that decided the bound was measured while other work ran, or not resolved
SEARCH = "search"  # in JSON: of a result that a search measured, what that found under its load, and whether it sets a roof
SHARED_CORES = "shared_cores"  # in JSON: of a collective, that its ranks took turns on so many cores; else left out
HELP_WIDTH = 124
KEY_LENGTH = 6  # characters of a key that name a case; what is shorter and of digits alone is its number in the run
SUMMARY = "Show a run's results as tables, or one case with its samples, telemetry and checks."
DETAIL = """\
Each number has its regime (cache/load/dispatch), the half width of the 95 % interval of its median, what bounds it, and its
share of the roof. A collective is bound by the link: its bus bandwidth, busbw, stands instead of a share. Cases that were not
timed say how they ended and why. CASE shows one of them with everything that is kept: its floors, its samples over time with
clock, power and temperature beneath, telemetry, checks, environment and log. Its switches without effect allow what does not
happen on this device; they are part of its name, so that it has one name on all of them.
Of a search, a line for each format and load names the fastest shape, and says whether it sets the empirical roof.
In JSON, bound_in_doubt says that the bandwidth by which a bound was found was measured while other work ran, or not resolved;
search, of what a search measured, whether the result is_best of its format and load, and whether that sets_roof;
shared_cores, of a collective over more ranks than cores, how many shared how many.

words:
""" + "\n".join(glossary_lines(HELP_WIDTH))
EXAMPLES = """\
roofbench show                            the latest run; a pass of a selftest only where there is nothing else
roofbench show latest 7                   the case that the run printed as [7/33], and show in the column #
roofbench show 20261129T1840 3f2a91       one case of a run, by the beginning of their ids
roofbench show --json | jq '.[].p50_s'    rows for programs
roofbench show --runs                     which runs the store holds"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run_id", nargs="?", metavar="RUN", help="a run id, the beginning of one, or latest (the default)")
    parser.add_argument(
        "case",
        nargs="?",
        metavar="CASE",
        help="a case's number, as run and show print it, its key, the first 6 characters or more of it, or KEY@SLOT",
    )
    parser.add_argument("--runs", action="store_true", help="list the runs instead")
    parser.add_argument("--keys", action="store_true", help="print each case's number and key, to name it as CASE")
    add_store(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print what was asked for."""
    from suite.store.queries import Reader

    _refuse_dropped(args)
    with Reader.open(args.store) as reader:
        if args.runs:
            lines = _runs(reader, args.json)
        elif args.case is not None:
            lines = _case(reader, _detail(reader, args.run_id, args.case), args.json)
        else:
            lines = _results(reader, args)
        sys.stdout.writelines(line + "\n" for line in lines)
    return 0


def _refuse_dropped(args: argparse.Namespace) -> None:
    """``UsageError`` for what the answer that was asked for would pass over."""
    from suite.errors import UsageError

    named = [text for text in (args.run_id, args.case) if text is not None]
    if args.runs and (named or args.keys):
        given = " ".join([*named, *(["--keys"] if args.keys else [])])
        raise UsageError(
            f"--runs lists every run and takes no {given}; leave --runs out to show {named[0] if named else 'one'}"
        )
    if args.keys and (args.case is not None or args.json):
        given = "--json, whose rows have case_key and device_slot" if args.json else f"CASE {args.case}"
        raise UsageError(f"--keys lists the keys of a run's cases as text and does not go with {given}; leave one of them out")


def _runs(reader: "Reader", as_json: bool) -> Iterable[str]:
    from dataclasses import asdict

    from suite.show.results import runs_lines
    from suite.show.screen import screen_of

    runs = reader.runs()
    if as_json:
        return json_array(asdict(info) for info in runs)
    return runs_lines(runs, screen_of(sys.stdout))


def print_run(reader: "Reader", run_id: str) -> "list[ResultRow]":
    """Print a run as ``roofbench show`` does, and give its rows."""
    from suite.experiment_file import own_folder_lines
    from suite.report.doubt import doubt_lines, in_doubt
    from suite.show.screen import screen_of

    info, rows, devices = reader.resolve(run_id), reader.results(run_id), reader.devices(run_id)
    table = _tables(reader, info, devices, rows, screen_of(sys.stdout))
    lines = [*table, *_peak_lines(reader, info, rows), *doubt_lines(in_doubt(reader, devices, rows))]
    sys.stdout.writelines(line + "\n" for line in [*lines, *own_folder_lines(info, store_override(reader.path))])
    return rows


def _tables(
    reader: "Reader", info: "RunInfo", devices: "Sequence[DeviceRow]", rows: "list[ResultRow]", screen: "Screen"
) -> Iterator[str]:
    """The tables of a run, with what no row of theirs has room for and is stored with each case."""
    from suite.report.joules import without_joules
    from suite.show.results import run_lines

    lacking, shared = without_joules(reader, info, rows), _shared_cores(reader, rows)
    return run_lines(info, devices, rows, screen, reader.pause(info.run), lacking, shared)


def _shared_cores(reader: "Reader", rows: "list[ResultRow]") -> dict[int, str]:
    """The mark of each result whose ranks shared cores; nothing is loaded for a run without collectives."""
    if not any(row.job == "collective" for row in rows):
        return {}
    from suite.collectives.marked import shared_cores_marks

    return shared_cores_marks(reader, rows)


def _peak_lines(reader: "Reader", info: "RunInfo", rows: "list[ResultRow]") -> Iterable[str]:
    """What the searches of a run found; nothing is loaded for a run without."""
    if info.config.get("search") is None:
        return ()
    from suite.report.peaks import peak_lines

    return peak_lines(reader, info, rows)


def _beside(reader: "Reader", info: "RunInfo", rows: "list[ResultRow]") -> dict[int, dict[str, Any]]:
    """What of a result is no field of its row, by its id."""
    found = _peaks(reader, info, rows)
    for result_id, mark in _shared_cores(reader, rows).items():
        found.setdefault(result_id, {})[SHARED_CORES] = mark.partition(": ")[2]
    return found


def _peaks(reader: "Reader", info: "RunInfo", rows: "list[ResultRow]") -> dict[int, dict[str, Any]]:
    """The same of each result of a search, by its id."""
    if info.config.get("search") is None:
        return {}
    from suite.report.peaks import peaks

    return {row.result_id: {SEARCH: each.to_json(row)} for each in peaks(reader, info, rows) for row in each.of}


def _results(reader: "Reader", args: argparse.Namespace) -> Iterable[str]:
    from suite.experiment_file import own_folder_lines
    from suite.report.doubt import doubt_lines, in_doubt
    from suite.report.trust import distrust_lines
    from suite.show.imported import imported_lines
    from suite.show.results import case_hint
    from suite.show.screen import screen_of

    info = reader.resolve(args.run_id)
    rows = reader.results(info.run)
    if args.json:
        doubted = in_doubt(reader, reader.devices(info.run), rows)
        told = _beside(reader, info, rows)
        return json_array({**row.to_json(), IN_DOUBT: row.result_id in doubted, **told.get(row.result_id, {})} for row in rows)
    if args.keys:
        return (_keyed(number, row, len(str(len(rows)))) for number, row in enumerate(rows, 1))
    option = store_option(reader.path.resolve())
    devices = reader.devices(info.run)
    screen = screen_of(sys.stdout)
    shown = (*_tables(reader, info, devices, rows, screen), *imported_lines(reader, rows, screen))
    doubts = doubt_lines(in_doubt(reader, devices, rows))
    lines = (*shown, *_peak_lines(reader, info, rows), *doubts, *distrust_lines(reader, [each.info for each in devices]))
    lines = (*about_passes(info, args.run_id, option, _has_verdict(reader, info)), *lines)
    return (*lines, *own_folder_lines(info, store_override(reader.path)), *case_hint(info, rows, option))


def about_passes(info: "RunInfo", asked: str | None, option: str, has_verdict: bool) -> Iterable[str]:
    """That a pass of a selftest is shown because there is nothing else, and where the verdict is."""
    if asked in (None, "latest") and info.experiment == "selftest":
        verdict = f"`roofbench selftest --last{option}` has the verdict"
        ended = "it was ended before it came to a verdict: repeat it with `roofbench selftest`"
        yield f"no run here but the passes of a selftest: this is the last; {verdict if has_verdict else ended}"


def _has_verdict(reader: "Reader", info: "RunInfo") -> bool:
    """Whether the selftest that this run is a pass of came to its end; one that cannot be read is there to be read about."""
    from suite.errors import StoreUnusable

    if info.experiment != "selftest":
        return False
    try:
        return any(info.run in each.runs for each in reader.selftests())
    except StoreUnusable:
        return True


def _detail(reader: "Reader", run_id: str | None, case: str) -> "ResultDetail":
    """A case by the number that ``run`` printed of it, or by its key, which no few digits may stand for."""
    from suite.errors import UsageError

    if case.isdecimal() and len(case) < KEY_LENGTH:
        run = reader.resolve(run_id).run
        rows = reader.results(run)
        if not 1 <= int(case) <= len(rows):
            numbered = f"its {len(rows)} are numbered from 1 on" if rows else "none of its cases has ended yet"
            raise UsageError(
                f"run {run} has no case number {case}: {numbered}, as run and show number them; "
                f"a key has at least {KEY_LENGTH} characters, and `roofbench show {run} --keys` lists them"
            )
        return reader.detail(rows[int(case) - 1].result_id)
    key = case.partition("@")[0]
    if len(key) < KEY_LENGTH:
        raise UsageError(
            f"case '{case}' is too short for a key, of which at least {KEY_LENGTH} characters are needed: give its number, "
            f"as run and show print it, or one of the keys that `roofbench show {run_id or 'latest'} --keys` lists"
        )
    return reader.detail((run_id, case))


def _case(reader: "Reader", detail: "ResultDetail", as_json: bool) -> Iterable[str]:
    from suite.report.floors import Ground
    from suite.report.panels import device_of, panel
    from suite.show.detail import detail_lines
    from suite.show.screen import screen_of

    row = detail.row
    ground = Ground.of(panel(reader, device_of(reader.devices(row.run), row), [row]), row)
    if as_json:
        return [json_text(detail_json(detail, ground))]
    return detail_lines(replace(detail, measurement=detail.measurement.as_read()), ground, screen_of(sys.stdout))


def detail_json(detail: "ResultDetail", ground: "Ground") -> dict[str, Any]:
    """A result row with its floors, samples (nanoseconds) and the clock over each (kHz), telemetry, checks, environment, log.

    A reading of telemetry that was missing is ``null``.
    """
    from suite.report.doubt import is_in_doubt
    from suite.report.floors import floors

    measured = detail.measurement
    plain = measured.to_json()
    if measured.samples is not None:
        clocks = [int(clock) for clock in measured.samples.clocks_khz]
        plain["samples"] = {**plain["samples"], "durations": list(measured.samples.durations_ns), "clocks": clocks}
    environment = {group: {name: fact._asdict() for name, fact in facts.items()} for group, facts in detail.environment.items()}
    below = [floor._asdict() for floor in floors(detail.row, ground)]
    doubted = is_in_doubt(detail.row, ground.calibration, ground.ceilings.bandwidth_bytes_s)
    told = {**detail.row.to_json(), IN_DOUBT: doubted}
    return {**told, "floors": below, "measurement": plain, "environment": environment, "log": detail.log}


def _keyed(number: int, row: "ResultRow", digits: int) -> str:
    from suite.progress.tally import result_words
    from suite.report.words import case_title

    return f"{number:>{digits}}  {row.case_key}@{row.device_slot}  {case_title(row)}: {result_words(row)}"
