"""The system description of a report: every field with how it is known."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from suite.backend import DeviceInfo, Fact
from suite.hardware import cpu
from suite.hardware.makers import is_cpu
from suite.hardware.spec import HardwareSpec
from suite.report.doubt import AGAIN, DISTURBED
from suite.report.quantities import named_fact
from suite.report.roofs import RoofSet, Setter, declared_peak_flop_s
from suite.report.standing import Standing
from suite.report.words import duration, rate_unit, si
from suite.rows import BANDWIDTHS, Calibration, ResultRow

_NOT_SAID = "the runtime does not report it"
_NO_SHEET = "no spec sheet is matched to this device"
_DERIVED = "from cores, clock and vector width"
_NOT_DERIVED = "this device has no spec sheet: its peaks are derived, and this figure cannot be"
_NOT_CALIBRATED = "not measured on this device by this run, nor known when it began"


UNAVAILABLE = "unavailable"
ALIKE, LONGEST_NAME = 3, 40  # how many fields are told in one line, and the longest reason that can name it


class Field(NamedTuple):
    """One line of the system description, ready to print; ``status`` and ``reason`` as in ``Fact``, or ``derived``."""

    name: str
    value: str
    status: str
    reason: str


class Group(NamedTuple):
    """A titled part of the system description."""

    title: str
    fields: tuple[Field, ...]


def together(fields: Sequence[Field]) -> tuple[Field, ...]:
    """What is not there for one reason in one line: twenty libraries that are not installed are a screen that says nothing.

    Its name is the reason, its value the names; so of ``ALIKE`` fields and more.
    """
    names: dict[str, list[str]] = {}
    for field in fields:
        if _is_alike(field):
            names.setdefault(field.reason, []).append(field.name)
    alike = {reason: found for reason, found in names.items() if len(found) >= ALIKE}
    told: list[Field] = []
    for field in fields:
        if not _is_alike(field) or field.reason not in alike:
            told.append(field)
        elif field.name == alike[field.reason][0]:
            told.append(Field(field.reason, ", ".join(alike[field.reason]), UNAVAILABLE, ""))
    return tuple(told)


def _is_alike(field: Field) -> bool:
    return field.status == UNAVAILABLE and 0 < len(field.reason) <= LONGEST_NAME


def environment_groups(environment: Mapping[str, Mapping[str, Fact]]) -> tuple[Group, ...]:
    """The environment as it was recorded, in its own groups and order."""
    return tuple(
        Group(title, tuple(_field(name, fact) for name, fact in facts.items())) for title, facts in environment.items()
    )


def device_group(info: DeviceInfo, spec: HardwareSpec | None, match_reason: str) -> Group:
    """What the runtime reports of a device, and which spec sheet that was matched to."""
    sheet = Fact(spec.title, _known_by(spec), match_reason) if spec else Fact.unavailable(match_reason or _NO_SHEET)
    facts = {
        "name": Fact.measured(info.name),
        "backend": Fact.measured(info.backend),
        "spec sheet": sheet,
        "architecture": _reported(info.architecture),
        "partition": _partition(info, spec),
        "units": _reported(info.visible_units),
        "memory": _reported(si(info.memory_bytes, "B") if info.memory_bytes else None),
        "last-level cache": _reported(_binary(info.llc_bytes)),
        **_clock(info),
        "maximum memory clock": _reported(si(info.max_memory_clock_hz, "Hz") if info.max_memory_clock_hz else None),
        "power limit": _reported(si(info.power_limit_w, "W") if info.power_limit_w else None),
        "driver": _reported(info.driver),
        "instruction sets": _reported(" ".join(info.isa) or None),
        **{name: Fact.measured(value) for name, value in sorted(info.details.items())},
    }
    return Group("Device", tuple(_field(name, fact) for name, fact in facts.items()))


class Whose(NamedTuple):
    """Whose ceilings are told: a run's id, and the runs that are in progress."""

    run: str
    running: frozenset[str] = frozenset()

    def of(self, run: str) -> str:
        """``of this run``, or which other one."""
        if run == self.run:
            return "of this run"
        return f"of run {run}" + (", which is in progress" if run in self.running else "")


def ceilings_group(
    spec: HardwareSpec | None, pipes: tuple[str, ...], standing: Standing, roofs: RoofSet, whose: Whose
) -> Group:
    """The figures that fractions refer to: declared peaks and bandwidth, empirical roofs, and what bounded this run.

    The empirical ones are those that the run's own fractions are of; bandwidths and empty kernels are as they stood for it.
    """
    calibration = standing.calibration
    peaks = {f"{pipe} peak": _declared(spec, declared_peak_flop_s(spec, pipe), rate_unit(pipe)) for pipe in pipes}
    rates = {"read": calibration.read_bytes_s, "copy": calibration.copy_bytes_s, "triad": calibration.triad_bytes_s}
    empties = {"device": calibration.empty_device_s, "call": calibration.empty_call_s}

    def told(name: str, value: str | None) -> Fact:
        remark = "; ".join(filter(None, (_set_by(standing.set_by.get(name), whose), _doubt(name, spec, calibration))))
        return Fact.unavailable(_NOT_CALIBRATED) if value is None else Fact(value, "measured", remark)

    facts = {
        **peaks,
        "memory bandwidth": _declared(spec, spec.bandwidth_bytes_s if spec else None, "B/s"),
        **_empirical(roofs, whose),
        **{f"{name} bandwidth": told(f"{name}_bytes_s", si(rate, "B/s") if rate else None) for name, rate in rates.items()},
        **{
            f"empty kernel, {name}": told(f"empty_{name}_s", duration(time) if time else None) for name, time in empties.items()
        },
    }
    return Group("Ceilings", tuple(_field(name, fact) for name, fact in facts.items()))


def _empirical(roofs: RoofSet, whose: Whose) -> dict[str, Fact]:
    """The roofs that the column Empirical is of, by the cases that set them."""
    found = {
        f"empirical {', '.join(roof.pipes)} roof, {roof.load}": Fact(
            si(roof.peak_flop_s, rate_unit(*roof.pipes)), "measured", _setter(roof.set_by, whose)
        )
        for roof in roofs.of_kind("empirical")
    }
    if roofs.memory is not None:
        memory = Fact(si(roofs.memory.bandwidth_bytes_s, "B/s"), "measured", _setter(roofs.memory.set_by, whose))
        found["empirical memory roof"] = memory
    return found


def _setter(setter: Setter | None, whose: Whose) -> str:
    return (
        "by a result that was not found among the newest runs" if setter is None else f"{setter.words}, {whose.of(setter.run)}"
    )


def _set_by(row: ResultRow | None, whose: Whose) -> str:
    return "" if row is None else f"{row.params.get('op')} by {row.implementation}, {row.backend}, {whose.of(row.run)}"


def _clock(info: DeviceInfo) -> dict[str, Fact]:
    """A CPU's that nothing measured, nor told as its maximum, is its nominal one."""
    clock = si(info.max_clock_hz, "Hz") if info.max_clock_hz else None
    if clock is None or not (is_cpu(info) and cpu.is_nominal(info)):
        return {"maximum clock": _reported(clock)}
    source = info.details.get("clock_source", "")
    told = f"by {source}; no maximum can be read here" if source else "no maximum can be read here"
    return {"nominal clock": Fact(clock, "derived", told)}


def _partition(info: DeviceInfo, spec: HardwareSpec | None) -> Fact:
    """A runtime that shows each die as a device does not say so: the sheet does."""
    if info.partition or spec is None or not spec.part:
        return Fact.measured(info.partition or "whole device")
    return Fact(spec.part, "declared", "the sheet says that the runtime shows each as a device")


def _field(name: str, fact: Fact) -> Field:
    name, value = named_fact(name, fact.value)
    value = "" if value is None else str(value)
    return Field(name.replace("_", " "), value, fact.status, fact.reason)


def _reported(value: str | int | float | None) -> Fact:
    return Fact.unavailable(_NOT_SAID) if value is None else Fact.measured(value)


def _declared(spec: HardwareSpec | None, value: float | None, unit: str) -> Fact:
    if spec is None:
        return Fact.unavailable(_NO_SHEET)
    if value is None:
        return Fact.unavailable(_NOT_DERIVED if spec.derived else "the spec sheet has no such figure")
    return Fact(si(value, unit), _known_by(spec), _DERIVED if spec.derived else "")


def _known_by(spec: HardwareSpec) -> str:
    return "derived" if spec.derived else "declared"


def _doubt(name: str, spec: HardwareSpec | None, calibration: Calibration) -> str:
    """What is to be known of a calibrated figure that was disturbed, and what rests on it; empty of one that was not.

    Of the bandwidths the fastest decides bounds, and only where no sheet declares one.
    """
    if name not in calibration.disturbed:
        return ""
    decides = name not in BANDWIDTHS or (
        getattr(calibration, name) == calibration.best_bytes_s and not (spec and spec.bandwidth_bytes_s)
    )
    return f"{DISTURBED}{f': bounds that rest on it may be wrong; {AGAIN}' * decides}"


def _binary(size_bytes: int | None) -> str | None:
    if not size_bytes:
        return None
    scale, unit = next(((s, u) for s, u in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")) if size_bytes >= s), (1, "B"))
    return f"{size_bytes / scale:.4g} {unit}"
