"""Why a result has no share of a ceiling."""

from dataclasses import replace

import pytest

from suite.report.floors import Ground
from suite.report.unshared import unshared
from suite.roofline import Ceilings
from suite.rows import NO_FRACTIONS, Fractions
from tests.report.builders import CALIBRATION, SPEC, device, result

GROUND = Ground(Ceilings(device().info, SPEC), CALIBRATION)
WHOLE = Fractions(0.7, 0.7, 0.9, 1.0)
NO_BANDWIDTH = replace(SPEC, memory=replace(SPEC.memory, bandwidth_bytes_s=replace(SPEC.memory.bandwidth_bytes_s, value=None)))


def of(ground=GROUND, fractions=NO_FRACTIONS, **fields):
    return unshared(replace(result(**fields), fractions=fractions), ground)


def on(spec):
    return Ground(Ceilings(device().info, spec), CALIBRATION)


def test_a_result_with_every_share_needs_no_reason():
    assert of(fractions=WHOLE) == {}


def test_what_the_cache_bounds_has_one_reason_for_all():
    assert of(bound="cache") == {"no share": "its data stay in the last-level cache, whose bandwidth no sheet gives"}


@pytest.mark.parametrize(
    ("spec", "bound", "why"),
    [
        (None, "compute", "no sheet describes this device"),
        (NO_BANDWIDTH, "memory", "memory bounds it, and no sheet declares this device's bandwidth"),
        (replace(SPEC, peaks={}), "compute", "no bf16 peak is known for this device"),
        (
            replace(SPEC, derived=True, peaks={"bf16": replace(SPEC.peaks["bf16"], value=1e9)}),
            "compute",
            "over 2 % above the derived peak",
        ),
    ],
)
def test_no_share_of_spec(spec, bound, why):
    assert of(on(spec), bound=bound)["no share of spec"].startswith(why)


def test_no_share_at_a_clock_that_nothing_counted():
    assert of(fractions=WHOLE._replace(at_clock=None), bound="compute") == {
        "no share at clock": "the device's clock was not counted"
    }
    assert of(fractions=WHOLE._replace(at_clock=None), bound="memory") == {}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"bound": "memory"}, "no bandwidth of this device was measured alone and resolved"),
        ({"bound": "compute"}, "no sustained rate in bf16 of this device was measured alone and resolved"),
        (
            {"bound": "memory", "contended": True},
            "no bandwidth of this device was measured alone and resolved, or it lies above that, contended",
        ),
        ({"interval_s": None}, "its time is not resolved"),
    ],
)
def test_no_empirical_share(fields, why):
    row = replace(result(), fractions=WHOLE._replace(empirical=None), **fields)
    assert unshared(row, GROUND) == {"no empirical share": why}
