"""Switches of the gemm job: precision and library settings that are part of a case where they can change it."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from suite.case import Items, Scalar, Workload, items
from suite.errors import UsageError, nearest
from suite.jobs.axes import check_truths, listed
from suite.jobs.emulation import EMULATIONS, NATIVE
from suite.jobs.gemm.formats import USUAL
from suite.values import written


class Switch(NamedTuple):
    """A switch of ``GemmSettings``: the formats it applies to, and the values it takes (none: a number of MiB, or null)."""

    formats: tuple[str, ...]
    values: tuple[Scalar, ...] = (True, False)


FP8 = ("fp8_e4m3", "fp8_e5m2")
BY_CUBLAS = (*USUAL, "fp8_e5m2")  # wherever they are multiplied as they are stored

SWITCHES = {
    "fp8_fast_accum": Switch(FP8),
    "reduced_precision_reduction": Switch(("bf16", "fp16")),
    "fp16_accumulation": Switch(("fp16",)),
    "emulation": Switch(tuple(each.format for each in EMULATIONS.values()), (NATIVE, *EMULATIONS)),
    "tunable_op": Switch(tuple(name for name in BY_CUBLAS if name != "int8")),
    "workspace_mib": Switch(BY_CUBLAS, ()),
}
# A case that does not name one of these has it off: a switch that comes later gives no stored case another key.
LEFT_OUT_WHEN_OFF: dict[str, Scalar | None] = {
    "fp16_accumulation": False,
    "emulation": NATIVE,
    "tunable_op": False,
    "workspace_mib": None,
}
TORCHS_OWN = ("tunable_op", "workspace_mib")  # an emulated product does not go through torch
LARGEST_WORKSPACE_MIB = 1 << 20


def check_switches(settings: Any) -> None:
    """Refuse an empty list and values that a switch does not have."""
    for name in SWITCHES:
        _check(name, asked(settings, name))


def combinations(settings: Any, workload: Workload) -> tuple[Items, ...]:
    """Every combination of what applies to a workload: a key splits where result or speed can, and nowhere else."""
    scaling = str(dict(workload.semantics).get("scaling", ""))
    return _combinations(workload.format, scaling, tuple(tuple(asked(settings, name)) for name in SWITCHES))


def asked(settings: Any, name: str) -> list[Any]:
    """What a setting of one value or several is set to, as a list."""
    return listed(getattr(settings, name))


def _check(name: str, given: list[Any]) -> None:
    where, values = f"jobs.gemm.{name}", SWITCHES[name].values
    if not given:
        raise UsageError(f"{where} is empty; leave it out for the default")
    if values == (True, False):
        check_truths("gemm", name, given)
    for value in given:
        if NATIVE in values and value not in values:
            raise UsageError(f"unknown emulation '{written(value)}' in {where}{nearest(str(value), map(str, values))}")
        if not values and not (value is None or (_whole(value) and 1 <= value <= LARGEST_WORKSPACE_MIB)):
            raise UsageError(
                f"{where}={written(value)} is not a whole number of MiB from 1 to {LARGEST_WORKSPACE_MIB}; "
                "null leaves the choice to torch"
            )


@cache
def _combinations(format_name: str, scaling: str, given: tuple[tuple[Any, ...], ...]) -> tuple[Items, ...]:
    """The same for every workload of a format and scaling: a plan of thousands asks once for each."""
    wanted = {name: each for name, each in zip(SWITCHES, given, strict=True) if applies(name, format_name, scaling)}
    axes = {name: _values(each, name, format_name) for name, each in wanted.items()}
    chosen = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    tf32 = {"tf32": format_name == "tf32"} if format_name in ("fp32", "tf32") else {}
    return tuple(dict.fromkeys(items({**tf32, **_recorded(each)}) for each in chosen))


def applies(name: str, format_name: str, scaling: str) -> bool:
    """Sums of fp8 in blocks of 128 are scaled in fp32 after each block, whatever the tensor core adds them up in."""
    return format_name in SWITCHES[name].formats and not (name == "fp8_fast_accum" and scaling == "block")


def _values(given: Sequence[Any], name: str, format_name: str) -> list[Any]:
    """The values of a switch that mean something for a format, without repeats."""
    values = list(dict.fromkeys(given))
    if name != "emulation":
        return values
    fitting = [value for value in values if value == NATIVE or EMULATIONS[value].format == format_name]
    return fitting or [NATIVE]


def _recorded(switches: Mapping[str, Any]) -> dict[str, Scalar]:
    """The switches that stand in a case."""
    emulated = switches.get("emulation", NATIVE) != NATIVE
    return {
        name: value
        for name, value in switches.items()
        if not (name in LEFT_OUT_WHEN_OFF and value == LEFT_OUT_WHEN_OFF[name]) and not (emulated and name in TORCHS_OWN)
    }


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
