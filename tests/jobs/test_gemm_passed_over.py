"""What was asked of a run of products and makes no case is said: a value that one format has and another has not."""

from typing import Any

import pytest

from suite.commands.plan import remarks
from suite.config import compose
from suite.jobs.gemm import GemmSettings
from suite.jobs.gemm.passed_over import lines
from suite.settings import RunConfig

NO_SUCH = "there is no such product"


def told(**settings: Any) -> list[str]:
    return list(lines(GemmSettings(**settings)))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"formats": ["int8", "fp8_e4m3"], "scaling": ["none", "tensor", "block"]},
            f"left out: int8 with scaling block, fp8_e4m3 with scaling none: {NO_SUCH}",
        ),
        (
            {"formats": ["int8", "fp8_e4m3"], "scaling": "block"},
            f"left out: int8 with scaling block: {NO_SUCH}; int8 is measured with scaling none",
        ),
        (
            {"formats": ["fp8_e4m3"], "scaling": "none"},
            f"left out: fp8_e4m3 with scaling none: {NO_SUCH}; fp8_e4m3 is measured with scaling tensor",
        ),
        (
            {"formats": ["int8", "w4a16"], "zero_point": [False, True]},
            f"left out: int8 with scaling none and a zero point: {NO_SUCH}",
        ),
        ({"formats": ["bf16", "mxfp4"], "scaling": "row"}, "left out: scaling=row: no format of this run has that"),
        (
            {"formats": ["fp32"], "zero_point": True, "emulation": ["none", "int8"]},
            "left out: zero_point=true, emulation=int8: no format of this run has those",
        ),
        (
            {"formats": ["bf16"], "fp8_fast_accum": [True, False]},
            "left out: fp8_fast_accum=false: no format of this run has that",
        ),
        (
            {"formats": ["fp8_e4m3"], "scaling": "block", "fp8_fast_accum": False},
            "left out: fp8_fast_accum=false: no format of this run has that",
        ),
        ({"formats": ["mxfp8_e4m3"], "workspace_mib": 32}, "left out: workspace_mib=32: no format of this run has that"),
    ],
)
def test_what_makes_no_case_is_named(settings: dict[str, Any], line: str) -> None:
    assert told(**settings) == [line]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"formats": ["int8", "bf16"], "scaling": ["tensor", "row"], "zero_point": [False, True]},
        {"formats": ["int8"], "scaling": [None, "row"]},
        {"formats": ["fp32", "fp64"], "emulation": ["bf16x9", "int8"]},
        {"formats": ["fp16", "bf16"], "fp16_accumulation": True, "tunable_op": True, "workspace_mib": [None, 32]},
    ],
)
def test_nothing_is_said_where_every_value_is_in_some_case(settings: dict[str, Any]) -> None:
    assert told(**settings) == []


def test_plan_and_run_say_it_of_a_ladder() -> None:
    (line,) = remarks(compose(["experiment=ladder"], None))
    assert line.startswith("left out: ")
    assert "int8 with scaling block" in line
    assert not [*remarks(compose([], None)), *remarks(RunConfig(jobs={}))]
