"""Switches as they are written on the command line: one value or a list, checked as the other settings are."""

import pytest

from suite.config import compose
from suite.errors import UsageError
from suite.jobs.gemm import FORMATS, GemmJob
from suite.jobs.gemm.formats import SCALINGS


@pytest.mark.parametrize(
    ("override", "name", "expected"),
    [
        ("jobs.gemm.fp8_fast_accum=false", "fp8_fast_accum", False),
        ("jobs.gemm.fp8_fast_accum=[true,false]", "fp8_fast_accum", [True, False]),
        ("jobs.gemm.emulation=int8", "emulation", "int8"),
        ("jobs.gemm.emulation=[none,bf16x9]", "emulation", ["none", "bf16x9"]),
        ("jobs.gemm.workspace_mib=[null,64]", "workspace_mib", [None, 64]),
        ("jobs.gemm.scaling=row", "scaling", "row"),
        ("jobs.gemm.scaling=[none,tensor,block]", "scaling", ["none", "tensor", "block"]),
        ("jobs.gemm.zero_point=[false,true]", "zero_point", [False, True]),
    ],
)
def test_one_value_and_a_list_are_both_taken(override: str, name: str, expected: object) -> None:
    value = getattr(compose([override]).jobs["gemm"], name)
    assert value == expected
    assert type(value) is type(expected)  # a list of the configuration library would not be JSON


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("jobs.gemm.fp8_fast_accum=maybe", "jobs.gemm.fp8_fast_accum=maybe is neither true nor false"),
        ("jobs.gemm.tunable_op=[true,maybe]", "jobs.gemm.tunable_op=maybe is neither true nor false"),
        ("jobs.gemm.emulation=bf16x8", "unknown emulation 'bf16x8' in jobs.gemm.emulation; did you mean 'bf16x9'?"),
        ("jobs.gemm.scaling=blocks", "unknown scaling 'blocks' in jobs.gemm.scaling; did you mean 'block'?"),
        ("jobs.gemm.zero_point=maybe", "jobs.gemm.zero_point=maybe is neither true nor false"),
        ("jobs.gemm.fp16_accum=true", "unknown key 'jobs.gemm.fp16_accum'; did you mean 'fp16_accumulation'?"),
    ],
)
def test_a_wrong_value_is_named(override: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        compose([override])
    assert str(refused.value) == message


def test_the_yaml_says_what_the_settings_are() -> None:
    """A default that stood in two places could drift apart."""
    settings = compose([]).jobs["gemm"]
    defaults = type(settings)()
    for name in (
        "fp8_fast_accum",
        "reduced_precision_reduction",
        "fp16_accumulation",
        "emulation",
        "tunable_op",
        "workspace_mib",
    ):
        assert getattr(settings, name) == getattr(defaults, name), name


def test_the_ladder_has_every_format_and_scaling() -> None:
    settings = compose(["experiment=ladder"]).jobs["gemm"]
    assert set(settings.formats) == set(FORMATS)
    assert set(settings.scaling) == set(SCALINGS)
    variants = {(each.format, each.semantics) for each in GemmJob().workloads(settings)}
    assert len(variants) == 26
