"""The sidebar: which runs, devices, formats and regimes a view is about."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st

from dashboard.address import choose
from dashboard.data import Run, store_name
from suite.report.panels import Panel, Source, each_once, panel
from suite.report.words import moment
from suite.rows import DeviceRow, ResultRow
from suite.store.runs import SELFTEST


class Filter(NamedTuple):
    """A choice over one property of the rows; ``name`` stands in the address."""

    label: str
    name: str
    value: Callable[[ResultRow], str]


FILTERS = (
    Filter("Jobs", "job", lambda row: row.job),
    Filter("Formats", "format", lambda row: row.format_label),
    Filter("Regimes", "regime", lambda row: row.regime),
    Filter("Implementations", "implementation", lambda row: row.implementation),
)


class Selection(NamedTuple):
    """What a view shows: the chosen runs, and a panel for each chosen device with the rows that pass the filters."""

    runs: tuple[Run, ...]
    panels: tuple[Panel, ...]

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        return tuple(row for panel in self.panels for row in panel.rows)


def select(runs: Sequence[Run]) -> Selection:
    """Draw the sidebar and apply it; ``runs`` is not empty, the latest first."""
    with st.sidebar:
        chosen = _choose_runs(runs)
        chips = _chips(chosen)
        uids = _choose_devices(chips)
        rows = _filtered([row for run in chosen for row in run.source.results(run.key)])
    panels = (_panel(chip, rows) for chip in chips if not uids or chip.device.info.uid in uids)
    return Selection(tuple(chosen), tuple(panels))


class Chip(NamedTuple):
    """A device in one store, with the chosen runs it is in: chips of two stores may have different empirical roofs."""

    device: DeviceRow
    source: Source
    runs: tuple[str, ...]


def _choose_runs(runs: Sequence[Run]) -> list[Run]:
    by_key = {run.key: run for run in runs}
    several = len({run.store for run in runs}) > 1
    if set(st.query_params.get_all("run")) - set(by_key):
        st.warning("This link names a run that is in no open store.")
    newest = next((run for run in runs if run.info.experiment != SELFTEST), runs[0])
    if newest is not runs[0]:
        st.caption("Opens on the newest run that is no pass of a selftest, as `roofbench show` does.")
    latest = newest.key
    keys = choose("Runs", "run", list(by_key), lambda key: _run_label(by_key[key], several), [latest], empty="Latest")
    return [by_key[key] for key in keys or [latest]]


def _run_label(run: Run, several_stores: bool) -> str:
    info = run.info
    place = store_name(run.store) if several_stores else ""
    parts = (info.experiment, moment(info.started_at), f"{info.finished}/{info.planned} {info.status}", info.note, place)
    return ", ".join(part for part in parts if part)


def _chips(runs: Sequence[Run]) -> list[Chip]:
    """Every chip of the runs once per store, as it was last recorded."""
    found: dict[tuple[str, str], Chip] = {}
    for run in reversed(runs):
        for device in each_once(run.source.devices(run.key)):
            key = (run.store, device.info.uid)
            earlier = found[key].runs if key in found else ()
            found[key] = Chip(device, run.source, tuple(dict.fromkeys((*earlier, run.key))))
    return list(found.values())


def _choose_devices(chips: Sequence[Chip]) -> list[str]:
    names = {chip.device.info.uid: chip.device.info.name for chip in chips}
    shared = len(set(names.values())) < len(names)
    options = sorted(names, key=lambda uid: (names[uid], uid))
    return choose("Devices", "device", options, lambda uid: f"{names[uid]} ({uid[:8]})" if shared else names[uid])


def _filtered(rows: list[ResultRow]) -> list[ResultRow]:
    """Each filter offers only what the ones above it left."""
    for label, name, value in FILTERS:
        chosen = choose(label, name, sorted({value(row) for row in rows}))
        rows = [row for row in rows if not chosen or value(row) in chosen]
    return rows


def _panel(chip: Chip, rows: Sequence[ResultRow]) -> Panel:
    own = [row for row in rows if row.device_uid == chip.device.info.uid and row.run in chip.runs]
    return panel(chip.source, chip.device, own)
