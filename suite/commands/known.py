"""What a store already has for the run that is asked for: a run to go on with, calibrations, results.

``plan`` and ``run`` ask alike, so that the one counts what the other does.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from suite.errors import UsageError
from suite.paths import shown

if TYPE_CHECKING:
    from suite.backend import DeviceInfo
    from suite.planned import DeviceSlot, PlannedCase
    from suite.rows import BaseFigures, BaseKey, RunInfo
    from suite.search.subject import Subject
    from suite.settings import RunConfig
    from suite.store.queries import Reader

TIME_LIMIT = "max_time_s"  # of one sitting: it changes nothing of what is measured
MAY_CHANGE_ON_RESUME = ("resume", "store.url", "wait_s", TIME_LIMIT)
# What a calibration consists of, by the fields of ``suite.rows.Calibration``.
CALIBRATES = {
    "read_bytes_s": "read",
    "copy_bytes_s": "copy",
    "triad_bytes_s": "triad",
    "empty_device_s": "empty kernel on the device",
    "empty_call_s": "empty kernel called",
}
CONTENDED, NOT_RESOLVED, MISSING = "contended", "not resolved", "missing"
SQLITE = "sqlite:///"


class Known(NamedTuple):
    """The figures of the devices' calibrations; of the run to go on with, the cases that have a result, by slot and key.

    Those that are ``disturbed`` were measured beside other work, or are known to their order of magnitude only: they bound
    results for want of better ones, and the next run takes a calibration with one of them again.  ``contended`` are those of
    them that were beside other work.
    ``recalibrate`` are its slots that another chip now fills, which has no calibration of its own.  ``unread`` says why a
    store that is there was not asked.
    """

    figures: "BaseFigures" = MappingProxyType({})
    disturbed: "frozenset[BaseKey]" = frozenset()
    done: frozenset[tuple[int, str]] = frozenset()
    recalibrate: frozenset[int] = frozenset()
    contended: "frozenset[BaseKey]" = frozenset()
    unread: str = ""

    def has_calibrated(self, slot: "DeviceSlot") -> bool:
        """Whether nothing is missing or disturbed of the calibration of a slot's device by its backend."""
        from suite.rows import calibration_of

        info = slot.info
        sure = {key: value for key, value in self.figures.items() if key not in self.disturbed}
        return info is not None and None not in astuple(calibration_of(sure, info.uid, info.backend))

    def recalibrated(self, slots: "Sequence[DeviceSlot]") -> Iterator[str]:
        """Why a calibration is measured although the store has figures of one: which of them do not do, for each device."""
        from suite.rows import calibration_of

        sure = {key: value for key, value in self.figures.items() if key not in self.disturbed}
        for info in (slot.info for slot in slots if slot.info is not None and not self.has_calibrated(slot)):
            kept, good = (calibration_of(figures, info.uid, info.backend) for figures in (self.figures, sure))
            whys: dict[str, list[str]] = {CONTENDED: [], NOT_RESOLVED: [], MISSING: []}
            for name, each in CALIBRATES.items():
                if getattr(kept, name) is None:
                    whys[MISSING].append(each)
                elif doubted := self._doubted(info, name, getattr(good, name) is not None):
                    whys[CONTENDED if doubted & self.contended else NOT_RESOLVED].append(each)
            if len(whys[MISSING]) < len(CALIBRATES):
                told = "; ".join(f"{why}: {', '.join(names)}" for why, names in whys.items() if names)
                yield f"calibration is measured again on {info.backend} {info.name}; of the earlier one in this store {told}"

    def _doubted(self, info: "DeviceInfo", name: str, is_known: bool) -> "frozenset[BaseKey]":
        """The disturbed figures of this name: the backend's own, though another has a better one of the same memory, and where
        none has (not ``is_known``) the others' too.
        """
        from suite.rows import BANDWIDTHS

        is_shared = name in BANDWIDTHS and not is_known
        of_chip = (key for key in self.disturbed if (key.device_uid, key.name) == (info.uid, name))
        return frozenset(key for key in of_chip if is_shared or key.backend == info.backend)


def store_file(url: str) -> Path | None:
    """The file at ``url`` if there is one with anything in it: what tells without a database whether there is a store."""
    try:
        path = Path(url.removeprefix(SQLITE)).expanduser()
        return path if path.stat().st_size else None
    except (OSError, RuntimeError):  # there is none, or no such user whose home it would be in
        return None


def going_on(config: "RunConfig", overrides: Sequence[str]) -> "tuple[RunConfig, RunInfo | None]":
    """The configuration to measure and the run to go on with, if any; ``UsageError`` for a run that is complete, and for one of
    other ranks than were started.
    """
    if not config.resume:
        return config, None
    from suite.ranks.join import refuse_elsewhere
    from suite.ranks.launched import part

    stored, resumed = stored_run(config, overrides)
    if resumed.status == "complete":
        raise UsageError(f"run {resumed.run} is complete, nothing is left to measure; start a new run without resume")
    refuse_elsewhere(stored, resumed.run, part(os.environ), going_on_command(resumed.run, config.store.url))
    limit_s = config.max_time_s if any(_key(override) == TIME_LIMIT for override in overrides) else stored.max_time_s
    return replace(stored, store=config.store, resume=resumed.run, wait_s=config.wait_s, max_time_s=limit_s), resumed


def going_on_command(run: str, url: str) -> str:
    """What a person types, or has a launcher start, to go on with a run."""
    from suite.commands.options import store_override
    from suite.store.files import locate

    return f"roofbench run resume={run}{store_override(locate(url))}"


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def stored_run(config: "RunConfig", overrides: Sequence[str]) -> "tuple[RunConfig, RunInfo]":
    """The run that ``resume`` names, with its own configuration; ``UsageError`` for anything given beside it."""
    from suite.config import from_stored
    from suite.importers.origin import refuse_imported
    from suite.store.queries import Reader

    for override in overrides:
        if _key(override) not in MAY_CHANGE_ON_RESUME:
            raise UsageError(f"{override} cannot change a run that goes on; leave it out, or start a new run without resume")
    with Reader.open(config.store.url) as reader:
        info = reader.resolve(config.resume)
    refuse_imported(info)
    return from_stored(info.config), info


def look(url: str, slots: "Sequence[DeviceSlot]", resumed: "RunInfo | None") -> Known:
    """Ask the store about these devices and about the run to go on with; nothing is known where there is no store."""
    path = store_file(url)
    if path is None or not any(slot.info and slot.info.uid for slot in slots):
        return Known()
    from suite.store import schema
    from suite.store.queries import Reader

    if path.is_file() and schema.look(path).state == "older":
        return Known(
            unread=f"what {shown(path)} has is not counted: it is of an older version; `roofbench run` upgrades it first"
        )
    with Reader.open(url) as reader:
        uids = {slot.info.uid for slot in slots if slot.info}
        figures, sure = reader.base_figures(uids), reader.base_figures(uids, undisturbed=True)
        disturbed = frozenset(figures.keys() - sure.keys())
        known = Known(figures, disturbed, contended=reader.contended_figures(uids) if disturbed else frozenset())
        return known if resumed is None else _of_run(reader, resumed, slots, known)


def cases(
    config: "RunConfig",
    slots: "Sequence[DeviceSlot]",
    known: Known,
    resumed: "RunInfo | None",
    searched: "Sequence[Subject]" = (),
) -> "tuple[PlannedCase, ...]":
    """Calibration first on devices that have none; a resumed run keeps to what it had planned, its searches apart."""
    from suite.plan import plan

    calibrated = [slot.slot for slot in slots if known.has_calibrated(slot)]
    planned = plan(config, slots, calibrated)
    if resumed is None:
        return planned
    others = resumed.planned - sum(len(subject.outline.stand_ins) for subject in searched)
    whole = plan(config, slots, ()) if len(planned) != others else planned
    return whole if len(whole) == others else planned


def _of_run(reader: "Reader", resumed: "RunInfo", slots: "Sequence[DeviceSlot]", known: Known) -> Known:
    rows = reader.results(resumed.run)
    uids = {slot.slot: slot.info.uid for slot in slots if slot.info}
    strange = {row.device_slot for row in rows if row.job == "calibration" and uids.get(row.device_slot) != row.device_uid}
    return known._replace(
        done=frozenset((row.device_slot, row.case_key) for row in rows),
        recalibrate=frozenset(
            slot.slot for slot in slots if slot.info and slot.slot in strange and not known.has_calibrated(slot)
        ),
    )
