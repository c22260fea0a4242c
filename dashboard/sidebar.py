"""The sidebar: which runs, devices, formats, regimes, implementations and kinds of evidence a page is about."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from dashboard.address import choose, choose_one
from dashboard.selection import Selection, chip_names, device_names, regime_of
from dashboard.shelf import Pair
from dashboard.stores import Run, Stores
from suite.report.palette import Theme
from suite.report.printable import clipped, printable
from suite.report.standings import label_of
from suite.report.words import moment
from suite.store.scopes import Group

IMAGES = ("PNG", "SVG")
LABELS_S = 0.3  # how long a name of a run waits for what is only known once the run was read


class Filter(NamedTuple):
    """A choice over one property of the groups; ``name`` stands in the address."""

    label: str
    name: str
    value: Callable[[Group], str]
    help: str


FILTERS = (
    Filter("Formats", "format", label_of, "Number format, with what shares a scale"),
    Filter("Regimes", "regime", regime_of, "Cache, load and dispatch: results of two regimes are no rivals"),
    Filter("Implementations", "implementation", lambda group: group.implementation, "Who computes it"),
    Filter("Evidence", "evidence", lambda group: group.evidence, "Measured here, imported, or simulated"),
)


def select(stores: Stores, job: str, theme: Theme) -> Selection:
    """Draw the filters and apply them; ``stores`` has at least one run."""
    names = device_names(stores)
    with st.sidebar:
        runs = _choose_runs(stores)
        held = [shelf.held(runs) for shelf in stores.shelves]
        groups = [pair for each in held for pair in each.pairs if not job or pair[1].job == job]
        uids = _choose_devices(groups, chip_names(stores))
        groups = [each for each in groups if each[0].uid in uids] if uids else groups
        chosen: dict[str, tuple[str, ...]] = {}
        if not job:
            groups, chosen["job"] = _filtered(groups, Filter("Jobs", "job", lambda group: group.job, "What is computed"))
        for each in FILTERS:
            groups, chosen[each.name] = _filtered(groups, each)
    present = {device for device, _ in groups}
    regimes = [(parts[0], parts[1], parts[2]) for text in chosen["regime"] if len(parts := text.split("/")) == 3]
    return Selection(
        stores=stores,
        job=job,
        groups=tuple(groups),
        devices=tuple(device for device in names if device in present),
        names=names,
        known=tuple(names),
        runs=tuple(runs),
        regimes=tuple(regimes),
        formats=chosen["format"],
        implementations=chosen["implementation"],
        evidence=chosen["evidence"],
        missing=sum(each.missing for each in held),
        problems=tuple(problem for each in held for problem in each.problems),
        theme=theme,
    )


def image_format() -> None:
    """Draw the choice of what the camera button of figures makes."""
    with st.sidebar:
        choose_one("Figures download as", "image", IMAGES, help="What the camera above a figure downloads")


def run_labels(stores: Stores) -> dict[Run, str]:
    """Every run by experiment, start, devices and note, as far as it was read, with its store where there are several."""
    names, several = chip_names(stores), len(stores.shelves) > 1
    devices: dict[tuple[int, str], dict[str, None]] = {}
    for shelf in stores.shelves:
        for device, group in shelf.held(wait_s=LABELS_S).pairs:
            devices.setdefault((device.store, group.run), {})[names.get(device.uid, "")] = None
    is_told = len(names) > 1
    found = {}
    for run in stores.runs:
        whose = ", ".join(devices.get((run.store, run.entry.run), ())) if is_told else ""
        found[run] = ", ".join(part for part in (run_label(run, several, stores), clipped(whose, 60)) if part)
    return found


def run_label(run: Run, several_stores: bool, stores: Stores) -> str:
    """Experiment, backends, start and note of a run, as far as it was read, with its state where it is not complete."""
    entry = run.entry
    backends = "+".join(stores.shelves[run.store].backends_of(entry.run))
    state = "" if entry.status == "complete" else entry.status
    place = stores.names[run.store] if several_stores else ""
    parts = (entry.experiment, backends, moment(entry.started_at), state, entry.note, place)
    return ", ".join(clipped(printable(part), 60) for part in parts if part)


def _choose_runs(stores: Stores) -> list[str]:
    by_name = {run.entry.run: run for run in stores.runs}
    for shelf in stores.shelves:
        shelf.held(wait_s=LABELS_S)  # a label names the backends of what was read
    several = len(stores.shelves) > 1
    return choose("Runs", "run", list(by_name), lambda name: run_label(by_name[name], several, stores))


def _choose_devices(groups: Sequence[Pair], names: Mapping[str, str]) -> list[str]:
    present = {device.uid for device, _ in groups}
    uids = sorted(present, key=lambda uid: (names.get(uid, ""), uid))
    return choose("Devices", "device", uids, lambda uid: names.get(uid, uid))


def _filtered(groups: list[Pair], each: Filter) -> tuple[list[Pair], tuple[str, ...]]:
    """Each filter offers only what the ones above it left."""
    options = sorted({each.value(group) for _, group in groups})
    chosen = choose(each.label, each.name, options, lambda text: clipped(printable(text), 60), help=each.help)
    if not chosen:
        return groups, ()
    return [(device, group) for device, group in groups if each.value(group) in chosen], tuple(chosen)
