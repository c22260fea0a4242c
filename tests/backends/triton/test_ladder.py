"""Which rungs of the ladder the kernels take on which device, and what they say of the others."""

from typing import Any

import pytest

from backends.triton import ladder
from backends.triton.gemm.device import Device
from backends.triton.gemm.port import LARGEST
from backends.triton.gemm.problem import Problem as Plain
from backends.triton.quantised.problem import Problem
from tests.backends.triton.compiled import DEVICES
from tests.backends.triton.rungs import BLOCKS, FP8_ROW, INT8_ROW, MX4, MX8, QUANTISED, W4, W4_ZERO, W8, Rung

HOPPER = DEVICES["sm_90"]


def reason(rung: Rung, *sizes: int, device: Device = HOPPER, switches: dict[str, Any] | None = None) -> str | None:
    case = rung.case(*(sizes or (16, 256, 512)), switches=switches)
    return ladder.not_taken(case.workload) or ladder.reason(ladder.problem_of(case), dict(case.switches), device)


def test_scales_along_k_go_to_the_kernels_for_them() -> None:
    assert ladder.problem_of(W4_ZERO.case(1, 2, 128)) == Problem("w4a16", 1, 2, 128, zero_point=True)
    assert ladder.problem_of(BLOCKS.case(1, 2, 128)) == Problem("fp8_e4m3", 1, 2, 128)


def test_other_scales_go_to_the_kernels_of_plain_numbers() -> None:
    assert ladder.problem_of(INT8_ROW.case(1, 2, 3)) == Plain("int8", 1, 2, 3, "nt", promoted=False, scaling="row")
    fast = ladder.problem_of(FP8_ROW.case(1, 2, 16, switches={"fp8_fast_accum": True}))
    assert fast == Plain("fp8_e4m3", 1, 2, 16, "nt", promoted=False, scaling="row")
    assert ladder.problem_of(Rung("bf16").case(1, 2, 3)) == Plain("bf16", 1, 2, 3, "nt")


@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)
def test_weights_are_taken_everywhere_and_fp8_where_triton_has_it(device: Device) -> None:
    """mxfp8 is converted by a pass that reads it, which Triton does not compile for sm_80 either."""
    for rung in QUANTISED:
        said = reason(rung, device=device)
        if rung in (BLOCKS, MX8) and device.name == "sm_80":
            assert said == "Triton has no fp8_e4m3 for sm_80"
        else:
            assert said is None


@pytest.mark.parametrize(
    ("rung", "k", "step", "padded"),
    [
        (W4, 192, 128, 256),
        (W4_ZERO, 64, 128, 128),
        (W8, 96, 64, 128),
        (MX4, 96, 128, 128),
        (BLOCKS, 192, 128, 256),
        (MX8, 40, 32, 64),
    ],
)
def test_k_that_is_no_multiple_is_refused_with_what_it_could_be(rung: Rung, k: int, step: int, padded: int) -> None:
    assert reason(rung, 16, 256, k) == (
        f"this kernel takes {rung.format} by {step} numbers along K, and k={k} is no multiple; pad K to {padded}"
    )


def test_sizes_past_32_bits_are_refused() -> None:
    assert reason(W4, 2**31, 1, 128) == f"this kernel takes sizes up to {LARGEST}, not {2**31}"


@pytest.mark.parametrize("name", ["75", "gfx1100"])
def test_a_device_that_no_configuration_is_made_for_is_named(name: str) -> None:
    said = reason(W4, device=Device(name, 40, 65_536))
    assert said is not None
    assert "no configuration of this kernel is made for" in said
    assert name in said


def test_a_device_without_room_is_named_with_what_it_has() -> None:
    said = reason(W4, device=Device("80", 4, 8_192))
    assert said == "no configuration of this kernel for w4a16 has room in 8192 bytes of shared memory"


@pytest.mark.parametrize("scaling", ["tensor", "row"])
def test_zero_points_of_int8_are_refused_whatever_the_device(scaling: str) -> None:
    shifted = Rung("int8", (("scaling", scaling), ("zero_point", True)))
    said = ladder.not_taken(shifted.case(16, 256, 512, switches={}).workload)
    assert said == "roofbench's own kernels take int8 without zero points; leave them out, or take the library"
    assert ladder.not_taken(W4_ZERO.case(16, 256, 512).workload) is None


def test_settings_of_the_libraries_are_not_the_kernels() -> None:
    assert "cuBLAS" in str(reason(W4, switches={"workspace_mib": 64}))
