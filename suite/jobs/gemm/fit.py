"""Shapes that the scales of a format do not divide: refused before anything runs, with settings that can be had instead."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from suite.case import Items, Workload
from suite.errors import UsageError
from suite.jobs.gemm.formats import FORMATS, Variant, scalings_of, semantics_of, variant_of
from suite.jobs.gemm.switches import asked
from suite.values import written

if TYPE_CHECKING:
    from suite.jobs.gemm.job import GemmSettings

OF_ANY_DEPTH = "row"  # every format with a choice of scalings has it


class Scaled(NamedTuple):
    """A format in one of its scalings."""

    label: str
    variant: Variant


def semantics(settings: "GemmSettings", format_name: str) -> list[Items]:
    """Of each scaling of a format that is asked for."""
    zero_points, scalings = tuple(asked(settings, "zero_point")), tuple(asked(settings, "scaling"))
    return [semantics_of(format_name, *each) for each in scalings_of(format_name, zero_points, scalings)]


def refuse_misfits(settings: "GemmSettings", depths: Sequence[int]) -> None:
    """Raise ``UsageError`` where some K is no multiple of what shares a scale along it."""
    scaled = [each for name in dict.fromkeys(settings.formats) for each in _scaled(settings, name)]
    deepest = max(scaled, key=lambda each: each.variant.depth if _cuts(each, depths) else 0)
    uneven = _cuts(deepest, depths)
    if uneven:
        told = deepest.variant.misfit(deepest.label, uneven[0])
        several = f", and each other K to a multiple of {deepest.variant.depth}" if len(uneven) > 1 else ""
        raise UsageError(f"{told}{several}{_instead(settings, depths)}")


def _scaled(settings: "GemmSettings", format_name: str) -> list[Scaled]:
    workloads = (Workload("gemm", format_name, (), "normal", each) for each in semantics(settings, format_name))
    return [Scaled(each.format_label, variant_of(each)) for each in workloads]


def _cuts(scaled: Scaled, depths: Sequence[int]) -> list[int]:
    return [k for k in depths if k % scaled.variant.depth]


def _fits(settings: "GemmSettings", format_name: str, depths: Sequence[int]) -> bool:
    return not any(_cuts(each, depths) for each in _scaled(settings, format_name))


def _instead(settings: "GemmSettings", depths: Sequence[int]) -> str:
    """The settings that take these shapes as they are, with as much of what was asked for as there is."""
    blocks = [each for each in asked(settings, "scaling") if each is not None and not _divides(each, settings, depths)]
    kept = [each for each in asked(settings, "scaling") if each not in blocks]
    fitting = replace(settings, scaling=(kept or [OF_ANY_DEPTH]) if blocks else settings.scaling)
    formats = [name for name in dict.fromkeys(settings.formats) if _fits(fitting, name, depths)]
    if not formats:
        return ""
    changed = [("scaling", fitting.scaling)] if blocks else []
    changed += [("formats", formats)] if formats != list(dict.fromkeys(settings.formats)) else []
    words = (f"jobs.gemm.{name}=[{','.join(written(each) for each in value)}]" for name, value in changed)
    return f", or leave K as it is with {' and '.join(words)}"


def _divides(scaling: str, settings: "GemmSettings", depths: Sequence[int]) -> bool:
    """Whether a scaling goes with every K in all formats that have it."""
    variants = (FORMATS[name].variants.get(scaling) for name in settings.formats)
    return not any(k % each.depth for each in variants if each is not None for k in depths)
