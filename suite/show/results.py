"""A run's results as tables, one for each device, job and format label; rows keep the order in which they were planned."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from suite.case import USUAL_DATA, sizes_of
from suite.collectives.cores import SHARED_CORES
from suite.outcome import Bound, Outcome
from suite.report.joules import lacks_joules, no_joules
from suite.report.printable import clipped, printable
from suite.report.words import (
    counted,
    duration,
    half_width_percent,
    marks,
    message_size,
    percent,
    relative_error,
    relative_half_width,
    si,
    tera_rates,
)
from suite.rows import DeviceRow, Fractions, Pause, ResultRow, RunInfo
from suite.show.contests import contest_lines
from suite.show.screen import Screen
from suite.show.table import Column, Fitted, Row, fitted, table

RATE, DATA = "TFLOP/s", "GB/s"
BUSBW = "busbw"
COLUMNS = (
    Column("#", right=True, tells_apart=True),
    Column("case"),
    Column("by", rank=9, tells_apart=True),
    Column("regime", rank=10, tells_apart=True),
    Column("bound", rank=2),
    Column("p50", right=True),
    Column("± of p50", rank=3, right=True),
    Column(RATE, rank=4, right=True),
    Column(DATA, rank=8, right=True),
    Column("tokens/s", right=True),
    Column("of spec", rank=1, right=True),
    Column("at clock", rank=7, right=True),
    Column("empirical", rank=6, right=True),
    Column("quantisation", rank=5, right=True),
)
COLLECTIVE, MESSAGE = "collective", ("op", "message_bytes", "world_size")
ABOUT_SHARED_CORES = (
    f"{SHARED_CORES}: with more ranks than cores they take turns, and a time is also of waiting for a core: no figure of a link"
)
NAME_LENGTH = 80  # of a device's name, so that its spec sheet still stands behind it
LONG_PAUSE_S = 30.0  # more than most workers take to start anew; a search measures nothing for longer
GRAVE = (Outcome.INCORRECT, Outcome.IMPOSSIBLE, Outcome.CRASHED, Outcome.TIMEOUT, Outcome.ERROR, Outcome.NOT_HONOURED)


def run_lines(
    run: RunInfo,
    devices: Sequence[DeviceRow],
    rows: Sequence[ResultRow],
    screen: Screen,
    pause: Pause | None = None,
    without_joules: Mapping[int, str] = MappingProxyType({}),
    shared_cores: Mapping[int, str] = MappingProxyType({}),
) -> Iterator[str]:
    """The whole answer of ``roofbench show``: the run, its devices, a table for each format and scaling, how cases ended.

    ``without_joules`` has by slot why energy that was asked for is not there, as far as that was looked up; ``shared_cores``
    by result the mark of one whose ranks shared cores.
    """
    yield from header_lines(run, devices, screen, pause)
    left_out: dict[str, None] = {}
    for (slot, job, label), group in _groups(rows).items():
        on = f" on device {slot}" if len(devices) > 1 else ""
        found = result_table(group, screen, shared_cores)
        left_out |= dict.fromkeys(found.titles_left_out)
        yield ""
        yield from _heading(printable(f"{job} {label}{on}"), found, screen)
        yield from _wrapped(shared_label([row for _, row in group]), screen)
        yield from found.lines(screen)
    if any(row.job == "collective" for row in rows):
        from suite.show.collective import study_lines  # models: what shows a plan's cases needs none of them

        yield from study_lines(rows, screen, shared_cores)
    yield from contest_lines(rows, screen)
    yield ""
    if left_out:
        yield from textwrap.wrap(
            f"not shown for want of width: {', '.join(left_out)}; a wider terminal or --json has them", screen.columns
        )
    if any(row.result_id in shared_cores for row in rows):
        yield from textwrap.wrap(ABOUT_SHARED_CORES, screen.columns)
    yield from _joules(run, rows, screen, without_joules)
    yield counts_line(rows)


def _joules(run: RunInfo, rows: Sequence[ResultRow], screen: Screen, why: Mapping[int, str]) -> Iterator[str]:
    """That energy was asked for and is not there, once for all devices of which that is so for one reason."""
    slots = sorted({row.device_slot for row in rows})
    reasons: dict[str, list[int]] = {}
    for slot in slots:
        own = [row for row in rows if row.device_slot == slot]
        if lacks_joules(run, own):
            number = next(number for number, row in enumerate(rows, 1) if row.device_slot == slot and row.p50_s is not None)
            case = f"`roofbench show {run.run} {number}` says why under telemetry"
            reasons.setdefault(why.get(slot) or case, []).append(slot)
    for reason, lacking in reasons.items():
        on = f"on device {', '.join(map(str, lacking))}: " if len(slots) > 1 else ""
        line = printable(f"{on}{no_joules(reason)}")
        yield from textwrap.wrap(line, screen.width) if screen.width else (line,)


def _heading(title: str, found: Fitted, screen: Screen) -> Iterator[str]:
    """The title, and what every row has where a column of it did not fit, beneath it where it is long."""
    said = ", ".join(f"{name} {cell}" for name, cell in found.said_once)
    if not said or len(f"{title}, {said}") <= screen.columns:
        yield screen.paint(title, "bold") + f", {said}" * bool(said)
        return
    yield screen.paint(title, "bold")
    yield from _wrapped(said, screen)


def _wrapped(text: str, screen: Screen) -> Iterator[str]:
    """Beneath a title, as wide as the screen; names are not broken at their hyphens."""
    yield from textwrap.wrap(
        text, screen.columns, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def case_hint(run: RunInfo, rows: Sequence[ResultRow], option: str) -> Iterator[str]:
    """How to see one case of these tables with everything; ``option`` names the store where it must be named."""
    if rows:
        number = len(rows)
        yield f"one case in detail: `roofbench show {run.run} {number}{option}`, where {number} is a number of the column #,"
        yield f"or a key of those that `roofbench show {run.run} --keys{option}` lists"


def header_lines(run: RunInfo, devices: Sequence[DeviceRow], screen: Screen, pause: Pause | None = None) -> Iterator[str]:
    """Which run, how far it came, and on what."""
    state = screen.paint(printable(run.status), "green" if run.status == "complete" else "yellow")
    name = f"{clipped(printable(run.experiment))} " if run.experiment else ""
    title = screen.paint(printable(f"run {run.run}"), "bold")
    yield f"{title}  {name}{state}, {run.finished} of {counted(run.planned, 'case')}, {_when(run, pause)}"
    if run.note:
        yield f"  note: {clipped(printable(run.note))}"
    for device in devices:
        partition = f" ({device.info.partition})" if device.info.partition else ""
        name = clipped(printable(device.info.name), NAME_LENGTH)
        told = f"  device {device.slot}{_asked_as(device)}: {device.info.backend} {name}{partition}, {_sheet(device)}"
        yield clipped(printable(told))


def _asked_as(device: DeviceRow) -> str:
    """By which number a device is asked for, where that is not its place in the run."""
    return f" (device={device.info.index})" if device.info.index != device.slot else ""


def runs_lines(runs: Sequence[RunInfo], screen: Screen) -> Iterator[str]:
    """One line a run, the latest first."""
    titles = ("run", "experiment", "backend", "status", "cases", "when")
    columns = tuple(Column(title, right=title == "cases") for title in titles)
    cells = [(run.run, run.experiment, _backends(run), run.status, f"{run.finished}/{run.planned}", _when(run)) for run in runs]
    if not runs:
        yield "no runs yet; start one with `roofbench run`"
        return
    yield from table(columns, [Row(each, clipped(printable(run.note))) for each, run in zip(cells, runs, strict=True)], screen)


def _backends(run: RunInfo) -> str:
    """Those that the run measured with, ``cuda, xla``; of what another tool measured nothing is known."""
    named = run.config.get("backends")
    return ", ".join(map(str, named)) if isinstance(named, Mapping) else ""


def _sheet(device: DeviceRow) -> str:
    if device.hardware is not None:
        return f"spec sheet {device.hardware} ({device.match_reason})"
    return f"spec {device.match_reason}" if device.spec is not None else f"spec unknown: {device.match_reason}"


def result_table(
    rows: Sequence[tuple[int, ResultRow]], screen: Screen, shared_cores: Mapping[int, str] = MappingProxyType({})
) -> Fitted:
    """One table of rows with their numbers; a case that was not timed shows how it ended instead of figures."""
    only = [row for _, row in rows]
    differing = case_labels(only)
    known = Fractions(*(any(getattr(row.fractions, name) is not None for row in only) for name in Fractions._fields))
    told = [_marked(_row(number, row, differing, known), shared_cores.get(row.result_id)) for number, row in rows]
    return fitted(_columns(only), told, screen)


def _columns(rows: Sequence[ResultRow]) -> list[Column]:
    """The figure that a kind of case is read for stays: of what crosses links busbw, of what computes nothing the bytes."""
    timed = [row for row in rows if row.p50_s]
    told: dict[str, dict[str, Any]] = {RATE: {"title": tera_rates(row.multiplied for row in rows)}}
    if timed and all(row.bound == Bound.LINK for row in timed):
        told[DATA] = {"title": BUSBW, "rank": 0}
    elif not any(row.flop_s for row in timed):
        told[DATA] = {"rank": 4}
    return [column._replace(**told.get(column.title, {})) for column in COLUMNS]


def case_labels(rows: Iterable[ResultRow]) -> tuple[str, ...]:
    """Names of the parameters, besides sizes, in which these rows differ: the others would only repeat themselves.

    A switch that only some cases name differs too: the others have it off.
    """
    known = [_known(row) for row in rows]
    names = dict.fromkeys(name for each in known for name in each)
    differing = (name for name in names if len({str(each.get(name, "")) for each in known}) > 1)
    return tuple(name for name in differing if name not in ("m", "n", "k", *MESSAGE))


def case_label(row: ResultRow, differing: Sequence[str]) -> str:
    """``4096x4096x4096 layout=nn``, ``all_reduce 64 KiB 4 ranks``; every parameter where there are no sizes."""
    sizes, known = _beside_sizes(row)
    shown = [name for name in known if _is_shown(name, row, sizes, differing)]
    return " ".join([*([sizes] if sizes else []), *(f"{name}={known[name]}" for name in shown)])


def shared_label(rows: Sequence[ResultRow]) -> str:
    """What the rows of a table have in common and a label of theirs does not show: ``layers=2 page_size=16 tf32=False``.

    Without it a part of a model would be taken for the whole.  Data drawn as usual are what nobody asks about.
    """
    differing = case_labels(rows)
    hidden: dict[str, Any] = {}
    for row in rows:
        sizes, known = _beside_sizes(row)
        hidden |= {name: value for name, value in known.items() if not _is_shown(name, row, sizes, differing)}
    if hidden.get("data") == USUAL_DATA:
        del hidden["data"]
    return " ".join(clipped(printable(f"{name}={value}")) for name, value in hidden.items())


def _known(row: ResultRow) -> dict[str, Any]:
    return {**row.params, "data": row.distribution, **row.switches}


def _beside_sizes(row: ResultRow) -> tuple[str, dict[str, Any]]:
    """The sizes as a label writes them, empty where there are none, and all else that a row is of, by name."""
    sizes, rest = _message_of(row.params) if row.job == COLLECTIVE else sizes_of(row.params)
    return sizes, {**rest, "data": row.distribution, **row.switches}


def _is_shown(name: str, row: ResultRow, sizes: str, differing: Sequence[str]) -> bool:
    return name in differing or (not sizes and name in row.params)


def _message_of(params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A message in a few words, as its parameters by name would fill half a screen, and what other parameters there are."""
    if not all(name in params for name in MESSAGE):
        return sizes_of(params)
    op, message_bytes, ranks = (params[name] for name in MESSAGE)
    rest = {name: value for name, value in params.items() if name not in MESSAGE}
    return f"{op} {message_size(message_bytes)} {ranks} ranks", rest


def remark(row: ResultRow) -> str:
    """How the case ended unless it is ok, with its reason, and what to know before trusting its number."""
    reason = f": {clipped(printable(row.reason))}" if row.reason else ""
    ending = [] if row.outcome == Outcome.OK else [f"{row.outcome.replace('_', ' ')}{reason}"]
    return "; ".join([*ending, *marks(row)])


def counts_line(rows: Iterable[ResultRow]) -> str:
    """``42 ok, 6 unsupported``, in the order in which outcomes are defined."""
    ended = [row.outcome for row in rows]
    counts = [f"{ended.count(outcome)} {outcome.value.replace('_', ' ')}" for outcome in Outcome if outcome in ended]
    return ", ".join(counts) or "no case has finished"


def _groups(rows: Iterable[ResultRow]) -> dict[tuple[int, str, str], list[tuple[int, ResultRow]]]:
    """Devices in slot order; within one, jobs and formats as they first appear; each row with its number in the run."""
    groups: dict[tuple[int, str, str], list[tuple[int, ResultRow]]] = {}
    for number, row in sorted(enumerate(rows, 1), key=lambda each: each[1].device_slot):
        groups.setdefault((row.device_slot, row.job, row.format_label), []).append((number, row))
    return groups


def _row(number: int, row: ResultRow, differing: Sequence[str], known: Fractions) -> Row:
    """``known`` tells of each fraction whether any row of the table has it: there the others say n/a."""
    identity = (str(number), case_label(row, differing), row.implementation, row.regime)
    style = "red" if row.outcome in GRAVE else "" if row.outcome == Outcome.OK else "dim"
    if row.p50_s is None:
        return Row((*identity, *[""] * (len(COLUMNS) - len(identity))), remark(row), style)
    half_width = relative_half_width(row)
    return Row(
        (
            *identity,
            row.bound or "",
            duration(row.p50_s),
            "" if half_width is None else half_width_percent(half_width),
            f"{row.flop_s / 1e12:.4g}" if row.flop_s else "",
            _data_rate(row),
            f"{row.tokens_s:.4g}" if row.tokens_s else "",
            "" if row.bound == Bound.LINK else percent(row.fractions.spec),  # which no sheet has a roof for
            percent(row.fractions.at_clock) if known.at_clock else "",
            percent(row.fractions.empirical) if known.empirical else "",
            relative_error(row.quantisation_error) if row.quantisation_error is not None else "",
        ),
        remark(row),
        style,
    )


def _data_rate(row: ResultRow) -> str:
    """Of what crosses links with its unit: from the smallest message to the largest it spans six decades."""
    if not row.bytes_s:
        return ""
    return si(row.bytes_s, "B/s") if row.bound == Bound.LINK else f"{row.bytes_s / 1e9:.4g}"


def _marked(row: Row, mark: str | None) -> Row:
    """A row with one more mark behind the others."""
    return row._replace(remark="; ".join(filter(None, (row.remark, mark)))) if mark else row


def _when(run: RunInfo, pause: Pause | None = None) -> str:
    started = datetime.fromisoformat(run.started_at)
    text = f"started {started:%Y-%m-%d %H:%M} UTC"
    if run.finished_at is None:
        return text
    took_s = (datetime.fromisoformat(run.finished_at) - started).total_seconds()
    if pause is None or pause.longest_s < LONG_PAUSE_S or run.config.get("search") is not None:
        return f"{text}, over {span(took_s)}"
    return f"{text}, over {span(took_s)}, {span(pause.total_s)} of it without a case under way"


def span(seconds: float) -> str:
    """``45 s``, ``4 min 12 s``, ``3 h 05 min``: a wall time for people."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
