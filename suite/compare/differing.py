"""What else differed between two runs: devices, clocks, limits, versions, switches, variables, settings."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from suite.backend import Fact
from suite.compare.pairing import Pair
from suite.compare.side import Side
from suite.jobs.fp8 import ENCODING, encoding_of
from suite.report.quantities import named_fact
from suite.rows import DeviceRow

UNSET, UNRECORDED = "not set", "not recorded"
DERIVED, NO_SHEET = "derived", "none"
_AS_TYPED = ("variables", "settings")  # groups whose names a person types as they stand here
# What never is the same twice, and what stands elsewhere already.
_LEFT_OUT = {("storage", "free_bytes"), ("source", "commit"), ("source", "dirty"), ("python", "roofbench")}
# Fields of a device as its runtime reports them, and what they are called here.
_DEVICE_FIELDS = {
    "backend": "backend",
    "name": "name",
    "uid": "chip",
    "partition": "partition",
    "driver": "driver",
    "power_limit_w": "power limit_w",
    "max_clock_hz": "maximum clock_hz",
    "max_memory_clock_hz": "maximum memory clock_hz",
    "visible_units": "units",
    "memory_bytes": "memory_bytes",
    "llc_bytes": "last-level cache_bytes",
    "architecture": "architecture",
    "cold_by": "cold by",
}
_SETTINGS = ("measure", "backends", "seed")  # of the configuration: what decides how a case is measured
_OF_DEVICE = re.compile(r"(.* device) \d+")

Values = dict[tuple[str, str], dict[str, str]]  # by group and name: each value as it is, with how it is written


class Differing(NamedTuple):
    """One thing that differed, as people read it; several values of one side are joined by commas.

    ``where`` says in how many of the compared cases, where it is a matter of cases.
    """

    group: str
    name: str
    a: str
    b: str
    where: str = ""


def differing(a: Side, b: Side, pairs: Sequence[Pair]) -> tuple[Differing, ...]:
    """What matters most first: the devices, the code, how it was measured, then the system."""
    common = {entry.row.job for entry in a.entries} & {entry.row.job for entry in b.entries}
    return (
        *_between(_devices(a), _devices(b)),
        *_between(_code(a, common), _code(b, common)),
        *_of_cases(pairs),
        *_between(_system(a), _system(b)),
    )


def _between(a: Values, b: Values) -> Iterator[Differing]:
    for group, name in dict.fromkeys([*a, *b]):
        missing = UNSET if group in _AS_TYPED else UNRECORDED
        one, other = (side.get((group, name), {missing: missing}) for side in (a, b))
        if one.keys() != other.keys():
            yield Differing(group, name, *_written(one, other))


def _written(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, str]:
    """As people read them, unless that rounds the difference away."""
    a, b = (", ".join(dict.fromkeys(side.values())) for side in (one, other))
    return (a, b) if a != b else (", ".join(one), ", ".join(other))


def _devices(side: Side) -> Values:
    values: Values = {}
    for device in side.devices:
        for name, value in _reported(device):
            _add_named(values, "device", name, value, UNRECORDED)
    return values


def _reported(device: DeviceRow) -> Iterator[tuple[str, Any]]:
    # Nothing looked at the device of an imported run: its memory of 0 bytes is none that was recorded.
    yield from ((called, getattr(device.info, name) or None) for name, called in _DEVICE_FIELDS.items())
    yield "spec sheet", _sheet(device)
    yield from device.info.details.items()


def _sheet(device: DeviceRow) -> str:
    """Which sheet its results were judged by; a CPU's is derived from what the CPU says of itself."""
    return device.hardware or (DERIVED if (device.spec or {}).get("derived") else NO_SHEET)


def _code(side: Side, jobs: Collection[str]) -> Values:
    """``jobs`` are those whose versions say something: what only one run measured has no other version in the other."""
    info = side.info
    values: Values = {}
    _add(values, "roofbench", "version", info.version)
    _add(values, "roofbench", "commit", f"{info.commit or UNRECORDED}{' with changes' if info.dirty else ''}")
    for job, version in sorted({(entry.row.job, entry.method_version) for entry in side.entries}):
        if job in jobs:
            _add(values, "roofbench", f"method version of {job}", str(version))
    for key in (each for each in _SETTINGS if each in info.config):
        for name, value in _flat(key, info.config[key]):
            _add(values, "settings", name, _typed(value))
    return values


def _of_cases(pairs: Sequence[Pair]) -> Iterator[Differing]:
    """What differs within pairs: who computes, switches, how it ran and was timed."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for pair in pairs:
        one, other = _case(pair.a.row), _case(pair.b.row)
        for key in dict.fromkeys([*one, *other]):
            values = one.get(key, UNSET), other.get(key, UNSET)
            if values[0] != values[1]:
                found.setdefault(key, []).append(values)
    for (group, name), each in found.items():
        a, b = (", ".join(dict.fromkeys(of_side)) for of_side in zip(*each, strict=True))
        yield Differing(group, name, a, b, f"in {len(each)} of {len(pairs)}")


def _case(row: Any) -> dict[tuple[str, str], str]:
    named = {"implementation": row.implementation, "execution": row.execution, "timed by": row.method or UNRECORDED}
    switches = {("switches", name): str(value) for name, value in row.switches.items()}
    return {**{("cases", name): value for name, value in named.items()}, **switches}


def _system(side: Side) -> Values:
    values: Values = {}
    for environment in side.environments:
        for group, facts in environment.items():
            _add_facts(values, group, facts)
    return values


def _add_facts(values: Values, group: str, facts: Mapping[str, Fact]) -> None:
    """Facts of a device go by its backend: the same one may have had another number."""
    of_device = _OF_DEVICE.fullmatch(group)
    for name, fact in facts.items():
        if (group, name) not in _LEFT_OUT:
            _add_named(values, of_device[1] if of_device else group, name, fact.value, _unavailable(fact))


def _unavailable(fact: Fact) -> str:
    """Reasons may be worded differently from version to version, and say the same."""
    return "not installed" if fact.reason == "not installed" else "not available"


def _typed(value: Any) -> str:
    """A setting as it is given on the command line: ``null``, ``true``, ``[standard, all]``."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"[{', '.join(map(_typed, value))}]" if isinstance(value, list | tuple) else str(value)


def _add_named(values: Values, group: str, name: str, value: Any, missing: str) -> None:
    """A value with the unit that its name ends with."""
    shown, worded = named_fact(name, value)
    _add(values, group, shown, missing if value is None else str(value), missing if value is None else str(worded))


def _add(values: Values, group: str, name: str, value: str, written: str = "") -> None:
    key = group, name if group in _AS_TYPED else name.replace("_", " ")
    values.setdefault(key, {})[value] = written or value


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, each in value.items():
        yield from _flat(f"{name}.{key}", each)


def encoded(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Differing, ...]:
    """Whether the two multiplied 8-bit floats of another kind, whoever computed: their data was rounded to other numbers."""
    one, other = encoding_of(a), encoding_of(b)
    return () if one == other else (Differing("kernel", ENCODING.replace("_", " "), one, other),)


def executed(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Differing, ...]:
    """What of two kernels' own descriptions differs: libraries, kernel names, tiles.  Figures with a fraction are costs."""
    one, other = dict(_described(a)), dict(_described(b))
    return tuple(
        Differing("kernel", name, one.get(name, UNRECORDED), other.get(name, UNRECORDED))
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name) and name != ENCODING.replace("_", " ")
    )


def _described(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in _flat_all(description.items()):
        if isinstance(value, list):
            if not any(isinstance(each, float) for each in value):
                yield name, ", ".join(map(str, value))
        elif isinstance(value, str | int):
            yield name, str(value)


def _flat_all(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in items:
        yield from _flat(name.replace("_", " "), value)
