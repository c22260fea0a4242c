"""What gemm's settings ask for that makes no case: formats leave out scalings, zero points and switches that they do not have.

One setting serves a whole ladder of formats, so that this is no mistake; what a run leaves out is said all the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from suite.jobs.emulation import EMULATIONS
from suite.jobs.gemm.formats import FORMATS, scalings_of
from suite.jobs.gemm.switches import SWITCHES, applies, asked
from suite.values import written


def lines(settings: Any) -> Iterator[str]:
    """Lines for people, without an end; none where every value that was asked for is in some case of each format."""
    products = [*_without_scaling(settings), *_without_zero_point(settings)]
    if products:
        yield f"left out: {', '.join(products)}: there is no such product{_instead(settings)}"
    unused = [*_unused_scalings(settings), *_unused_zero_point(settings), *_unused_switches(settings)]
    if unused:
        yield f"left out: {', '.join(unused)}: no format of this run has {'that' if len(unused) == 1 else 'those'}"


def _formats(settings: Any) -> list[str]:
    return list(dict.fromkeys(settings.formats))


def _scalings(settings: Any) -> list[str]:
    """Those asked for by name."""
    return [each for each in dict.fromkeys(asked(settings, "scaling")) if each is not None]


def _lacks(name: str, scaling: str) -> bool:
    """Whether a format has scalings to choose from, and not this one."""
    return bool(FORMATS[name].scalings) and scaling not in FORMATS[name].scalings


def _unused_scalings(settings: Any) -> list[str]:
    return [f"scaling={each}" for each in _scalings(settings) if not any(FORMATS[name].scalings for name in _formats(settings))]


def _without_scaling(settings: Any) -> Iterator[str]:
    for name in _formats(settings):
        yield from (f"{name} with scaling {each}" for each in _scalings(settings) if _lacks(name, each))


def _instead(settings: Any) -> str:
    """Formats of which nothing that was asked for is left, with what they are measured in."""
    scalings = asked(settings, "scaling")
    replaced = [
        f"{name} is measured with scaling {FORMATS[name].scalings[0]}"
        for name in _formats(settings)
        if FORMATS[name].scalings and all(each is not None and _lacks(name, each) for each in scalings)
    ]
    return f"; {', '.join(replaced)}" if replaced else ""


def _shifts(settings: Any, name: str) -> list[tuple[str, bool]]:
    """The scalings of a format, each with whether it has the zero point that is asked for."""
    return list(scalings_of(name, (True,), tuple(asked(settings, "scaling"))))


def _without_zero_point(settings: Any) -> Iterator[str]:
    if True not in asked(settings, "zero_point"):
        return
    for name in _formats(settings):
        if any(each.shifted for each in FORMATS[name].variants.values()):
            yield from (f"{name} with scaling {each} and a zero point" for each, has in _shifts(settings, name) if not has)


def _unused_zero_point(settings: Any) -> list[str]:
    has_any = any(each.shifted for name in _formats(settings) for each in FORMATS[name].variants.values())
    return ["zero_point=true"] if True in asked(settings, "zero_point") and not has_any else []


def _unused_switches(settings: Any) -> Iterator[str]:
    usual = {each.name: each.default for each in fields(settings)}
    for name in SWITCHES:
        yield from (
            f"{name}={written(value)}"
            for value in dict.fromkeys(asked(settings, name))
            if value != usual[name] and not any(_switched(settings, name, value, each) for each in _formats(settings))
        )


def _switched(settings: Any, switch: str, value: Any, name: str) -> bool:
    if switch == "emulation":
        return value not in EMULATIONS or EMULATIONS[value].format == name
    scalings: Sequence[str] = [each for each, _ in _shifts(settings, name)]
    return any(applies(switch, name, each) for each in scalings)
