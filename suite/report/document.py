"""A report as data: everything that is published about one or more runs, cleaned, before it becomes text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from suite.backend import DeviceInfo
from suite.collectives.marked import shared_cores_marks
from suite.errors import StoreUnusable, UsageError
from suite.measurement import Measurement, is_unread
from suite.outcome import Evidence, Outcome
from suite.report.cases import case_data
from suite.report.contest import Contest, contests
from suite.report.floors import Ground
from suite.report.headlines import Headline, headlines
from suite.report.joules import no_joules, why_no_joules
from suite.report.ladder import Ladder, ladders
from suite.report.panels import Panel, Source, each_once, panel
from suite.report.peaks import peaks
from suite.report.privacy import Scrubber, without_place_overrides, without_places
from suite.report.reproduce import Command, rerun_command
from suite.report.roofs import RoofSet
from suite.report.standing import standing_of
from suite.report.system import Group, Whose, ceilings_group, device_group, environment_groups
from suite.report.targets_matrix import ordered
from suite.report.trust import SelftestSource, distrust
from suite.report.words import counted
from suite.rows import DeviceRow, ResultRow, RunInfo
from suite.targets.record import Compiled

DATA_FORMAT = "roofbench-report/1"


class MeasurementSource(Source, SelftestSource, Protocol):
    """A source that also has what was measured of one result, the selftests of a device, and the files kept with a run."""

    def measurement(self, result_id: int) -> Measurement: ...

    def artifacts(self, run: str | None = None) -> Mapping[str, bytes]: ...


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """One device of one run: its results, its roofs, the best of each format, and the shapes measured in several formats.

    ``cases`` has the JSON values of ``case_data`` for each result that can be shown over time, by its id; ``unreadable``
    counts timed results whose samples the store cannot give back.  ``distrust`` is what the latest selftest says against them.
    ``name`` is the device's alone, ``label`` has its slot too where there are several.  ``joules`` says why energy that was
    asked for is not there, ``peaks`` what each search for the maximum found.  ``shared_cores`` has the mark of each
    result whose ranks shared cores, by its id.
    """

    label: str
    rows: tuple[ResultRow, ...]
    roofs: RoofSet
    headlines: tuple[Headline, ...]
    ladders: tuple[Ladder, ...]
    system: tuple[Group, ...]
    cases: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    unreadable: int = 0
    distrust: str = ""
    name: str = ""
    joules: str = ""
    peaks: tuple[str, ...] = ()
    shared_cores: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run: its devices, the system it ran on, and how to run it again."""

    info: RunInfo
    devices: tuple[DeviceReport, ...]
    system: tuple[Group, ...]
    command: Command

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        return tuple(row for device in self.devices for row in device.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The devices that it has results of, each once; before any case has finished those that it was to measure."""
        found = [row.device for row in self.rows] or [device.name for device in self.devices]
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def counts(self) -> str:
        """``4 of 17 cases verified and timed, 13 not measured``: of those planned, whether they have ended or not."""
        planned = max(self.info.planned, len(self.rows))
        verified = sum(row.outcome == Outcome.OK for row in self.rows)
        left = planned - len(self.rows)
        return f"{verified} of {counted(planned, 'case')} verified and timed{f', {left} not measured' if left else ''}"


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """What ``render_markdown`` and ``render_html`` turn into text; ``compiled`` is empty unless it was asked for."""

    runs: tuple[RunReport, ...]
    compiled: tuple[Compiled, ...] = ()

    @property
    def title(self) -> str:
        """The devices' names, each once."""
        names = dict.fromkeys(name for run in self.runs for name in run.names)
        return f"{', '.join(names)} against the roofline" if names else "A run that recorded no name of a device"

    @property
    def contests(self) -> tuple[Contest, ...]:
        """The cases that were computed in several ways on one device, in whichever of the runs."""
        return contests(row for run in self.runs for row in run.rows)

    @property
    def several_devices(self) -> bool:
        """Whether results are of more than one device, so that a name has to be said."""
        return len({row.device_uid for run in self.runs for row in run.rows}) > 1

    @property
    def evidence(self) -> tuple[str, ...]:
        """Kinds of evidence other than measured that occur in the results."""
        return tuple(sorted({row.evidence for run in self.runs for row in run.rows} - {Evidence.MEASURED.value}))

    def data(self) -> dict[str, Any]:
        """Runs and result rows as JSON values: what the HTML page embeds."""
        return {
            "format": DATA_FORMAT,
            "runs": [_run_json(run) for run in self.runs],
            "results": [row.to_json() for run in self.runs for row in run.rows],
            **({"compiled": [cell.to_json() for cell in self.compiled]} if self.compiled else {}),
        }


def build(
    reader: MeasurementSource, runs: Sequence[str], with_cases: bool = True, compiled: Sequence[Compiled] = ()
) -> ReportDocument:
    """Read ``runs`` (ids or ``latest``) and make one report of them, in the order given.

    ``with_cases`` reads what is kept of each result too, which a text report does not show; ``compiled`` are cells that it has
    beside them.  Host and user names,
    addresses, home paths and the store's place are left out.  Raises ``UsageError`` when no run is named; an unknown run
    raises what ``reader.resolve`` raises.
    """
    if not runs:
        raise UsageError("a report needs at least one run; name one, or 'latest' for the last")
    infos = {info.run: info for info in (reader.resolve(run) for run in runs)}
    scrubbers = [Scrubber.of(reader.environment(run)) for run in infos] if compiled else []
    cells = tuple(_clean_compiled(cell, scrubbers) for cell in ordered(compiled))
    return ReportDocument(tuple(_run(reader, info, with_cases) for info in infos.values()), cells)


def _run(reader: MeasurementSource, info: RunInfo, with_cases: bool) -> RunReport:
    environment = reader.environment(info.run)
    scrubber = Scrubber.of(environment)
    rows = [_clean(row, scrubber) for row in reader.results(info.run)]
    devices = [_clean_device(device, scrubber) for device in each_once(reader.devices(info.run))]
    running = frozenset(other.run for other in reader.runs() if other.status == "running" and other.run != info.run)
    about = _About(info, scrubber, running, len(devices) > 1, with_cases)
    return RunReport(
        info=_clean_info(info, scrubber),
        devices=tuple(_device(reader, about, device, rows) for device in devices),
        system=environment_groups(scrubber.facts(environment)),
        command=rerun_command(info, scrubber),
    )


class _About(NamedTuple):
    """What all devices of a run share; ``running`` are the other runs in progress, ``several`` whether it has many devices."""

    info: RunInfo
    scrubber: Scrubber
    running: frozenset[str]
    several: bool
    with_cases: bool


def _device(reader: MeasurementSource, about: _About, device: DeviceRow, rows: Sequence[ResultRow]) -> DeviceReport:
    own = [row for row in rows if (row.device_slot, row.device_uid) == (device.slot, device.info.uid)]
    found = panel(reader, device, own)
    pipes = tuple(sorted({row.pipe for row in own if row.pipe}))
    standing = standing_of(found.calibrating, device.info, about.info, about.running)
    cases, unreadable = _cases(reader, own, found) if about.with_cases else ({}, 0)
    why = about.scrubber.text(why_no_joules(reader, about.info, own))
    return DeviceReport(
        label=f"{device.info.name} (slot {device.slot})" if about.several else device.info.name,
        rows=found.rows,
        roofs=found.roofs,
        headlines=headlines(own),
        ladders=ladders(own),
        system=(
            device_group(device.info, found.spec, device.match_reason),
            ceilings_group(found.spec, pipes, standing, found.roofs, Whose(about.info.run, about.running)),
        ),
        cases=cases,
        unreadable=unreadable,
        distrust=distrust(reader, device.info),
        name=device.info.name,
        joules=no_joules(why) if why else "",
        peaks=tuple(each.line for each in peaks(reader, about.info, own)),
        shared_cores=shared_cores_marks(reader, own),
    )


def _cases(reader: MeasurementSource, rows: Sequence[ResultRow], found: Panel) -> tuple[dict[int, dict[str, Any]], int]:
    """The cases that can be shown over time, and how many timed ones the store is damaged at: the rest is published."""
    cases, unreadable = {}, 0
    for row in rows:
        if row.p50_s is None:
            continue
        try:
            measured = reader.measurement(row.result_id)
            case = case_data(row, measured, Ground.of(found, row))
        except StoreUnusable:
            unreadable += 1
            continue
        if case is not None and is_unread(measured):
            unread = "its telemetry cannot be read: `roofbench store check` says what is wrong"
            case["remark"] = "; ".join(filter(None, (case["remark"], unread)))
        if case is not None:
            cases[row.result_id] = case
    return cases, unreadable


def _clean(row: ResultRow, scrubber: Scrubber) -> ResultRow:
    return replace(
        row,
        device=scrubber.text(row.device),
        reason=scrubber.text(row.reason),
        params=scrubber.json(row.params),
        semantics=scrubber.json(row.semantics),
        switches=scrubber.json(row.switches),
    )


def _clean_compiled(cell: Compiled, scrubbers: Sequence[Scrubber]) -> Compiled:
    """A compiler's words may name folders, and so may the variables that it was given."""
    reason, versions = cell.reason, dict(cell.versions)
    for scrubber in scrubbers:
        reason, versions = scrubber.text(reason), scrubber.json(versions)
    return replace(cell, reason=reason, versions=versions)


def _clean_device(device: DeviceRow, scrubber: Scrubber) -> DeviceRow:
    return replace(device, info=DeviceInfo.from_json(scrubber.json(device.info.to_json())))


def _clean_info(info: RunInfo, scrubber: Scrubber) -> RunInfo:
    return replace(
        info,
        argv=(),  # the command of the report is made from the overrides; argv names the program's place
        overrides=tuple(scrubber.text(override) for override in without_place_overrides(info.overrides)),
        note=scrubber.text(info.note),
        config=scrubber.json(without_places(info.config)),
    )


def _run_json(run: RunReport) -> dict[str, Any]:
    system = {group.title: {f.name: f._asdict() for f in group.fields} for group in run.system}
    devices = [
        {"label": device.label, "system": {group.title: [f._asdict() for f in group.fields] for group in device.system}}
        for device in run.devices
    ]
    return {**asdict(run.info), "command": run.command.line, "system": system, "devices": devices}
