"""Gradients for Hopper: what surrounds the kernel is right, and the kernel compiles to what it is meant to be."""

from pathlib import Path
from typing import Any

import pytest

from backends.triton.attention.hopper_backward_call import SPARED_WORDS
from backends.triton.attention.port import refused
from backends.triton.attention.problem import FULL, Problem
from backends.triton.gemm.device import Device
from suite.jobs.attention import AttentionJob
from tests.backends.attention_cases import attention_case
from tests.backends.triton import apart
from tests.backends.triton.attention import hopper_ends
from tests.backends.triton.compiled import DEVICES

HOPPER = DEVICES["sm_90"]
PLAIN = Problem("bf16", 1, 16, 16, 4096, 4096, 128, 128, FULL)


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, float]]:
    distances: dict[str, dict[str, float]] = apart.interpreted(hopper_ends.__name__)
    return distances


@pytest.mark.parametrize("name", hopper_ends.PROBLEMS)
def test_what_comes_before_and_after_fits_the_kernel(found: dict[str, dict[str, float]], name: str) -> None:
    assert set(found[name]) == {"dq", "dk", "dv"}
    assert all(each <= 1e-3 for each in found[name].values()), found[name]


SPECS = ("full/bf16/128", "causal/bf16/128", "ragged-window/fp16/128", "causal/fp16/64")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    cache: Path = tmp_path_factory.mktemp("compiled")
    asked = [f"sm_90/hopper_gradients/{spec}" for spec in SPECS]
    lines = apart.compiled("tests.backends.triton.attention.compiled", asked, cache)
    return {name.removeprefix("sm_90/hopper_gradients/"): line for name, line in lines.items()}


@pytest.mark.parametrize("spec", SPECS)
def test_the_kernel_multiplies_by_warp_groups_and_keeps_its_sums_in_registers(
    compiled: dict[str, dict[str, Any]], spec: str
) -> None:
    became = compiled[spec]
    _, kind, width = spec.replace("fp16", "f16").split("/")
    assert became["spilled_bytes"] <= SPARED_WORDS * 4, became
    wanted = {f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{kind}.{kind}" for n in ("64", width)}
    assert set(became["instructions"]) == wanted


@pytest.mark.parametrize(
    ("device", "changes", "said"),
    [
        (HOPPER, {}, None),
        (HOPPER, {"qk_dim": 64, "v_dim": 64, "format": "fp16"}, None),
        (HOPPER, {"qk_dim": 256, "v_dim": 256}, "gluon backward takes one head_dim of 64, 128"),
        (HOPPER, {"qk_dim": 192}, "not 192 and 128"),
        (HOPPER, {"format": "fp8_e4m3"}, "bf16 and fp16"),
        (DEVICES["sm_100"], {}, "written for sm_90"),
    ],
)
def test_what_it_cannot_take_is_said(device: Device, changes: dict[str, object], said: str | None) -> None:
    reason = refused("gluon", PLAIN._replace(**changes), device, backward=True)  # type: ignore[arg-type]
    assert reason is None if said is None else said in (reason or "")


def test_the_room_for_its_sums_is_reckoned_with() -> None:
    workload = attention_case("gluon", "bf16", "16x128", direction="backward", batch=2, length=100).workload
    footprint = AttentionJob().footprint(workload)
    rows = 2 * 16 * 128
    assert footprint.total_bytes(3, False, "gluon") - footprint.total_bytes(3, False, "triton") == 3 * 4 * rows * (128 + 2)
