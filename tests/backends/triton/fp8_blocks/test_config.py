"""How one product is cut for Hopper, and what the kernel does not take."""

from dataclasses import replace
from typing import Any

import pytest

from backends.torch.gemm import reason as reason_of
from backends.triton import ladder
from backends.triton.fp8_blocks.hopper_config import shared_bytes
from backends.triton.gemm.device import Device
from backends.triton.quantised.on_hopper import CONFIGS, candidates
from backends.triton.quantised.problem import Problem
from tests.backends.cases import any_cpu
from tests.backends.triton.compiled import DEVICES
from tests.backends.triton.rungs import BLOCKS, FP8_ROW, MX8, W4, Rung

HOPPER = DEVICES["sm_90"]
OTHERS = "gluon takes fp8_e4m3 with scales of blocks (scaling=block); triton takes others"


def reason(rung: Rung, *sizes: int, device: Device = HOPPER, switches: dict[str, Any] | None = None) -> str | None:
    case = rung.case(*(sizes or (16, 256, 512)), switches=switches)
    return ladder.reason(ladder.problem_of(case), dict(case.switches), device, gluon=True)


@pytest.mark.parametrize("sizes", [(4096, 4096, 4096), (1000, 1536, 512), (1, 8, 128), (16, 136, 256)])
def test_it_takes_fp8_in_blocks_of_any_size_on_hopper(sizes: tuple[int, ...]) -> None:
    assert reason(BLOCKS, *sizes) is None


@pytest.mark.parametrize(
    ("rung", "sizes", "device", "said"),
    [
        (FP8_ROW, (16, 256, 512), HOPPER, OTHERS),
        (MX8, (16, 256, 512), HOPPER, OTHERS),
        (W4, (16, 256, 512), HOPPER, OTHERS),
        (BLOCKS, (16, 256, 192), HOPPER, "this kernel takes fp8_e4m3 by 128 numbers along K, and k=192 is no multiple"),
        (BLOCKS, (16, 130, 512), HOPPER, "gluon copies by tensor descriptors, and rows of C have 260 bytes, no multiple of 16"),
        (BLOCKS, (2**30 + 16, 8, 128), HOPPER, "gluon takes up to 1073741824 rows of A, not 1073741840; triton takes more"),
        (BLOCKS, (16, 256, 512), HOPPER._replace(shared_bytes=99_000), "no configuration of gluon has room in 99000 bytes"),
        *((BLOCKS, (16, 256, 512), device, "gluon is written for sm_90") for device in DEVICES.values() if device != HOPPER),
    ],
)
def test_what_it_does_not_take_is_refused_with_a_reason(rung: Rung, sizes: tuple[int, ...], device: Device, said: str) -> None:
    assert (reason(rung, *sizes, device=device) or "").startswith(said)


def test_settings_of_the_libraries_are_not_its() -> None:
    assert "cuBLAS" in str(reason(BLOCKS, switches={"workspace_mib": 64}))


@pytest.mark.parametrize("problem", [(4096, 4096, 4096), (8192, 8192, 8192), (16, 8192, 8192), (1, 8, 128)])
def test_every_configuration_is_tried_where_it_has_room(problem: tuple[int, int, int]) -> None:
    found = candidates(Problem("fp8_e4m3", *problem), HOPPER)
    assert set(found) == set(CONFIGS)
    assert all(shared_bytes(config) <= HOPPER.shared_bytes for config in found)
    less = candidates(Problem("fp8_e4m3", *problem), HOPPER._replace(shared_bytes=200_000))
    assert [config.stages for config in less] == [config.stages for config in found if shared_bytes(config) <= 200_000]
    assert less


def test_large_products_take_wide_tiles_and_few_tiles_narrow_ones() -> None:
    assert candidates(Problem("fp8_e4m3", 4096, 4096, 4096), HOPPER)[0].block_n == 256
    assert candidates(Problem("fp8_e4m3", 16, 8192, 8192), HOPPER)[0].block_n == 64


def test_the_job_says_why_a_case_cannot_run() -> None:
    case = replace(BLOCKS.case(16, 256, 512, backend="cpu"), implementation="gluon")
    assert reason_of(case, any_cpu()) == "implementation gluon runs on GPUs; the device here is a CPU"
    other = replace(Rung("bf16").case(16, 256, 512), implementation="gluon")
    assert reason_of(other, any_cpu()) == "implementation gluon takes fp8_e4m3, not bf16"
