"""How the formats of the precision ladder are stored, counted and chosen."""

import re
from dataclasses import replace
from typing import Any

import pytest

from suite.case import Workload
from suite.errors import UsageError
from suite.hardware.spec import is_pipe
from suite.jobs.emulation import as_executed
from suite.jobs.gemm import FORMATS, GemmJob, GemmSettings
from suite.jobs.gemm.formats import USUAL, variant_of

JOB = GemmJob()


def workloads(name: str, shape: str = "64x96x256", **settings: object) -> list[Workload]:
    return list(JOB.workloads(GemmSettings(formats=[name], shapes=[shape], **settings)))


def semantics(name: str, **settings: object) -> list[dict[str, object]]:
    """What is chosen, less what every workload says."""
    return [{key: value for key, value in each.semantics if key != "accumulate"} for each in workloads(name, **settings)]


def test_a_sweep_without_a_word_about_formats_has_the_usual_ones() -> None:
    assert tuple(GemmSettings().formats) == USUAL


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_names_a_unit_and_an_accumulator(name: str) -> None:
    assert is_pipe(FORMATS[name].pipe)
    assert FORMATS[name].accumulate in ("fp64", "fp32", "int32")


@pytest.mark.parametrize(
    ("name", "scaling", "expected"),
    [
        ("bf16", ["tensor", "row"], [{}]),
        ("fp8_e4m3", None, [{"scaling": "tensor"}]),
        ("fp8_e4m3", "row", [{"scaling": "row"}]),
        ("fp8_e5m2", ["row", "block", "row"], [{"scaling": "row"}, {"scaling": "block"}]),
        ("fp8_e4m3", ["none"], [{"scaling": "tensor"}]),
        ("int8", None, [{}]),
        ("int8", "block", [{}]),
        ("int8", ["none", "tensor", "row", "block"], [{}, {"scaling": "tensor"}, {"scaling": "row"}]),
        ("mxfp4", ["tensor", "row", "block"], [{}]),
        ("w8a16", ["tensor"], [{}]),
    ],
)
def test_scaling_splits_the_formats_that_have_a_choice(name: str, scaling: object, expected: list[dict[str, str]]) -> None:
    assert semantics(name, scaling=scaling) == expected


@pytest.mark.parametrize(
    ("name", "scaling", "expected"),
    [
        ("w4a16", None, [{}, {"zero_point": True}]),
        ("w8a16", None, [{}]),
        ("int8", None, [{}]),
        ("int8", "row", [{"scaling": "row"}, {"scaling": "row", "zero_point": True}]),
        ("fp8_e4m3", "row", [{"scaling": "row"}]),
    ],
)
def test_zero_points_split_the_formats_that_have_them(name: str, scaling: object, expected: list[dict[str, object]]) -> None:
    assert semantics(name, scaling=scaling, zero_point=[False, True]) == expected


# Of A 64 x 256, B 96 x 256 and C 64 x 96, by hand.
A, B, C = 64 * 256, 96 * 256, 2 * 64 * 96
BYTES = {
    ("fp8_e4m3", "tensor", False): A + B + 8 + C,
    ("fp8_e5m2", "row", False): A + B + 4 * (64 + 96) + C,
    ("fp8_e4m3", "block", False): A + B + 4 * (64 * 2 + 1 * 2) + C,
    ("mxfp8_e4m3", None, False): A + B + (A + B) // 32 + C,
    ("mxfp6_e2m3", None, False): (A + B) * 6 // 8 + (A + B) // 32 + C,
    ("mxfp4", None, False): (A + B) // 2 + (A + B) // 32 + C,
    ("nvfp4", None, False): (A + B) // 2 + (A + B) // 16 + 2 * 4 + C,
    ("int8", None, False): A + B + 2 * C,
    ("int8", "tensor", False): A + B + 8 + C,
    ("int8", "row", True): A + 5 * 64 + B + 4 * 96 + C,
    ("w8a16", None, False): 2 * A + B + 2 * 96 + C,
    ("w4a16", None, False): 2 * A + B // 2 + 2 * B // 128 + C,
    ("w4a16", None, True): 2 * A + B // 2 + 3 * B // 128 + C,
    ("mxfp4a16", None, False): 2 * A + B // 2 + B // 32 + C,
}


@pytest.mark.parametrize(("name", "scaling", "zero_point"), BYTES)
def test_scales_and_zero_points_are_counted(name: str, scaling: str | None, zero_point: bool) -> None:
    (workload,) = workloads(name, scaling=scaling, zero_point=zero_point)
    work, footprint = JOB.work(workload), JOB.footprint(workload)
    assert work.compulsory_bytes == footprint.set_bytes == BYTES[name, scaling, zero_point]
    assert work.flops == 2 * 64 * 96 * 256


@pytest.mark.parametrize(
    ("name", "pipe"),
    [
        ("fp8_e5m2", "fp8"),
        ("mxfp8_e5m2", "fp8"),
        ("mxfp6_e3m2", "fp6"),
        ("mxfp4", "fp4"),
        ("nvfp4", "fp4"),
        ("int8", "int8"),
        ("w8a16", "bf16"),
        ("w4a16", "bf16"),
        ("mxfp4a16", "bf16"),
    ],
)
def test_the_pipe_is_the_unit_that_multiplies_the_format(name: str, pipe: str) -> None:
    assert {JOB.work(each).pipe for each in workloads(name, scaling=["none", "tensor", "row"])} == {pipe}


def test_a_kernel_that_multiplies_on_another_unit_is_judged_by_that_and_by_what_it_moves() -> None:
    (workload,) = workloads("mxfp4")
    planned = JOB.work(workload)
    executed = replace(planned, pipe="bf16", traffic_bytes=planned.compulsory_bytes + 100)
    assert as_executed(planned, {"executed_pipe": "bf16", "traffic_bytes": planned.compulsory_bytes + 100}) == executed
    assert as_executed(planned, {"executed_pipe": "bf16", "passing_bytes": 50}) == executed


@pytest.mark.parametrize(
    "description",
    [
        {"executed_pipe": "bf61"},
        {"executed_pipe": 4},
        {"traffic_bytes": "many"},
        {"traffic_bytes": 1},
        {"passing_bytes": "many"},
        {"passing_bytes": 0},
        {},
    ],
)
def test_a_description_that_names_no_unit_or_too_few_bytes_changes_nothing(description: dict[str, object]) -> None:
    planned = JOB.work(workloads("mxfp4")[0])
    assert as_executed(planned, description) == planned


WIDE = 2 * (A + B)  # both operands in bf16


@pytest.mark.parametrize(
    ("name", "scaling", "zero_point", "always", "without_unit"),
    [
        ("bf16", None, False, 0, 0),
        ("fp8_e4m3", "row", False, 0, WIDE),
        ("fp8_e4m3", "block", False, WIDE, 0),
        ("mxfp8_e4m3", None, False, WIDE, 0),
        ("mxfp6_e3m2", None, False, WIDE, 0),
        ("nvfp4", None, False, 0, WIDE),
        ("int8", None, False, 0, 0),
        ("int8", "row", False, 8 * 64 * 96, 0),
        ("int8", "row", True, 8 * 64 * 96 + WIDE, 0),
        ("mxfp4", None, False, WIDE, 0),
        ("w8a16", None, False, 4 * A + 6 * 64 * 96, 2 * B),
        ("w4a16", None, False, 2 * 64 * 96, 2 * B),
        ("mxfp4a16", None, False, 2 * B, 0),
    ],
)
def test_converted_operands_and_sums_are_in_the_footprint(
    name: str, scaling: str | None, zero_point: bool, always: int, without_unit: int
) -> None:
    (workload,) = workloads(name, scaling=scaling, zero_point=zero_point)
    footprint, plain = JOB.footprint(workload), JOB.footprint(workloads("bf16")[0])
    assert footprint.scratch_bytes - plain.scratch_bytes == always
    assert footprint.emulation_bytes == without_unit


def test_what_a_library_keeps_in_another_order_is_needed_for_every_input_set() -> None:
    (workload,) = workloads("w4a16")
    footprint = JOB.footprint(workload)
    assert footprint.rearranged_bytes == B // 2 + 2 * B // 128
    assert footprint.total_bytes(3) == 3 * (footprint.set_bytes + footprint.rearranged_bytes) + footprint.scratch_bytes
    assert JOB.footprint(workloads("bf16")[0]).rearranged_bytes == 0


@pytest.mark.parametrize("name", FORMATS)
def test_tolerances_stay_far_from_what_a_wrong_scale_does(name: str) -> None:
    """A tenth is what the planted bug does; a tolerance beyond a quarter of that would be close."""
    for workload in workloads(name, "64x96x16384", scaling=["none", "tensor", "row", "block"], zero_point=[False, True]):
        for switches in JOB.switches(GemmSettings(), workload):
            assert JOB.tolerance(workload, switches) < 0.025


def test_operands_that_are_rounded_on_the_way_have_more_room() -> None:
    def of(name: str, **settings: object) -> float:
        (workload,) = workloads(name, **settings)
        return JOB.tolerance(workload, ())

    assert of("mxfp4") == of("mxfp4a16") < of("w8a16") < of("nvfp4")
    assert of("int8", scaling="row") < of("int8", scaling="row", zero_point=True)
    assert of("int8") == 0.0


def test_fast_accumulation_means_nothing_where_every_block_is_scaled() -> None:
    settings = GemmSettings(fp8_fast_accum=[True, False])
    assert len(JOB.switches(settings, workloads("fp8_e5m2", scaling="row")[0])) == 2
    assert JOB.switches(settings, workloads("fp8_e4m3", scaling="block")[0]) == ((),)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"scaling": "rows"}, ("unknown scaling 'rows' in jobs.gemm.scaling", "did you mean 'row'")),
        ({"scaling": ["tensor", "blok"]}, ("unknown scaling 'blok'", "did you mean 'block'")),
        ({"scaling": []}, ("jobs.gemm.scaling is empty",)),
        ({"zero_point": "yes"}, ("jobs.gemm.zero_point=yes", "neither true nor false")),
        ({"zero_point": []}, ("jobs.gemm.zero_point is empty",)),
        ({"formats": ["mxfp4"], "shapes": ["64x64x40"]}, ("every 32 numbers along K", "k=40", "pad K to 64")),
        ({"formats": ["fp8_e4m3"], "scaling": "block", "shapes": ["64x64x64"]}, ("every 128 numbers", "pad K to 128")),
        ({"formats": ["mxfp8"]}, ("unknown format 'mxfp8'", "did you mean 'mxfp")),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(settings: dict[str, object], names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as error:
        JOB.check(GemmSettings(**settings))
    assert all(name in str(error.value) for name in names), str(error.value)
    assert "\n" not in str(error.value)


EVERY_SCALING = ["none", "tensor", "row", "block"]


@pytest.mark.parametrize("formats", [list(FORMATS), ["nvfp4", "mxfp4", "bf16"], ["fp8_e4m3"], ["int8", "fp8_e5m2", "w4a16"]])
@pytest.mark.parametrize("scaling", [EVERY_SCALING, "block", ["block", None], None])
@pytest.mark.parametrize("depths", [[64], [16], [8, 24], [128, 200], [1]])
def test_the_settings_that_a_refusal_names_are_taken(formats: list[str], scaling: object, depths: list[int]) -> None:
    given: dict[str, Any] = {"formats": formats, "scaling": scaling, "shapes": [f"64x64x{k}" for k in depths]}
    try:
        JOB.check(GemmSettings(**given))
    except UsageError as error:
        told = str(error)
    else:
        return
    deepest = 32 if "mxfp4" in formats and "w4a16" not in formats and scaling is None else 128
    JOB.check(GemmSettings(**{**given, "shapes": [f"64x64x{-(-k // deepest) * deepest}" for k in depths]}))
    assert f"every {deepest} numbers" in told or formats == ["nvfp4", "mxfp4", "bf16"]
    named: dict[str, Any] = {name: values.split(",") for name, values in re.findall(r"jobs\.gemm\.(\w+)=\[([^]]*)\]", told)}
    assert named
    if "scaling" in named:
        named["scaling"] = [None if each == "null" else each for each in named["scaling"]]
    JOB.check(GemmSettings(**{**given, **named}))


def test_a_refusal_keeps_what_goes_with_a_small_k() -> None:
    with pytest.raises(UsageError) as error:
        JOB.check(GemmSettings(formats=["bf16", "fp8_e4m3", "w4a16", "mxfp4"], scaling=EVERY_SCALING, shapes=["64x64x64"]))
    assert str(error.value) == (
        "fp8_e4m3 block has scales for every 128 numbers along K, and k=64 is no multiple; pad K to 128, or leave K as it is "
        "with jobs.gemm.scaling=[none,tensor,row] and jobs.gemm.formats=[bf16,fp8_e4m3,mxfp4]"
    )


def test_a_scaling_that_a_format_does_not_have_is_no_variant_of_it() -> None:
    with pytest.raises(KeyError):
        variant_of(Workload("gemm", "mxfp4", (), semantics=(("scaling", "row"),)))
