"""Which rate a matrix product runs on, base units, and the way to JSON and back."""

import json

import pytest

from suite.hardware.catalogue import all_specs, load
from suite.hardware.spec import PIPES, RATES, HardwareSpec, Pipe, is_pipe, parse_pipe


def test_matrix_products_take_the_matrix_unit_where_there_is_one() -> None:
    h200, mi300x, a10 = load("nvidia-h200-sxm5-141gb"), load("amd-mi300x"), load("nvidia-a10")
    assert h200.peak_flop_s("fp64") == 67e12 == h200.peaks["fp64_tensor"].value
    assert mi300x.peak_flop_s("fp32") == mi300x.peaks["fp32_matrix"].value
    assert a10.peak_flop_s("fp64") == a10.peaks["fp64"].value, "no fp64 tensor cores: the vector units do it"
    assert h200.peak_flop_s("fp32") == 67e12
    assert load("amd-mi350x").peak_flop_s("tf32") is None, "tf32 never stands in from another pipe"


def test_boost_is_units_times_rate_times_clock() -> None:
    """METHOD: an H200 would do 1070 TFLOP/s at 1980 MHz; the sheet's 989 is at 1830."""
    h200 = load("nvidia-h200-sxm5-141gb")
    assert h200.flop_per_clock("bf16") == 132 * 4096
    assert h200.boost_flop_s("bf16", 1980e6) == pytest.approx(1070.5e12, rel=1e-3)
    assert h200.boost_flop_s("bf16", 1830e6) == pytest.approx(h200.peak_flop_s("bf16"), rel=1e-3)
    assert h200.flop_per_clock("fp64") == 132 * 256


def test_the_last_level_cache_is_the_infinity_cache_where_there_is_one() -> None:
    assert load("amd-mi300x").llc_bytes == 256 * 2**20
    assert load("nvidia-h100-sxm5-80gb").llc_bytes == 50 * 2**20
    assert load("google-tpu-v5e").llc_bytes is None


def test_an_unknown_pipe_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="bf61"):
        load("amd-mi300x").peak_flop_s("bf61")


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.id)
def test_a_spec_survives_json(spec: HardwareSpec) -> None:
    assert HardwareSpec.from_json(json.loads(json.dumps(spec.to_json(), allow_nan=False))) == spec


def test_a_spec_stored_by_another_version_may_hold_more() -> None:
    data = load("nvidia-t4").to_json() | {"invented_later": {"value": 1}}
    assert HardwareSpec.from_json(data) == load("nvidia-t4")


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.id)
def test_no_figure_is_in_the_wrong_unit(spec: HardwareSpec) -> None:
    """Bounds that a slipped factor of a thousand cannot meet."""
    peaks = [peak for pipe in PIPES if (peak := spec.peak_flop_s(pipe)) is not None]
    assert all(1e11 < peak < 1e17 for peak in peaks)
    assert 1e10 < (spec.memory_bytes or 0) < 1e12
    assert spec.bandwidth_bytes_s is None or 1e11 < spec.bandwidth_bytes_s < 1e14
    assert spec.llc_bytes is None or 1e6 < spec.llc_bytes < 1e9
    assert spec.clocks.boost_hz.value is None or 5e8 < spec.clocks.boost_hz.value < 4e9
    assert spec.tdp_w.value is None or 30 < spec.tdp_w.value < 3000


def test_sums_in_fp16_have_their_own_rate_where_the_sheet_lists_one() -> None:
    geforce, h200 = load("nvidia-rtx-4090"), load("nvidia-h200-sxm5-141gb")
    assert geforce.peak_flop_s("fp16_acc_fp16") == 330.3e12
    assert geforce.boost_flop_s("fp16_acc_fp16", 2520e6) == pytest.approx(330.3e12, rel=1e-3)
    assert geforce.peak_flop_s("fp16") == 165.2e12
    for ask in ("peak_flop_s", "flop_per_clock"):
        assert getattr(h200, ask)("fp16_acc_fp16") == getattr(h200, ask)("fp16")
    assert (geforce.lists("fp16_acc_fp16"), h200.lists("fp16_acc_fp16"), h200.lists("fp16")) == (True, False, True)


def test_several_products_share_the_rate_of_their_unit() -> None:
    h200 = load("nvidia-h200-sxm5-141gb")
    assert h200.peak_flop_s("bf16x9") == pytest.approx(h200.peak_flop_s("bf16") / 9)
    assert h200.flop_per_clock("int8x28") == pytest.approx(h200.flop_per_clock("int8") / 28)
    assert load("amd-mi350x").peak_flop_s("tf32x3") is None


def test_every_rate_is_a_pipe_of_one_product() -> None:
    assert {parse_pipe(rate) for rate in RATES} == {Pipe(rate, 1) for rate in RATES}
    assert parse_pipe("fp32_matrixx2") == Pipe("fp32_matrix", 2)
    assert [is_pipe(name) for name in ("bf16x9", "fp16_acc_fp16", "bf16x0", "x9", "", None)] == [True, True, *[False] * 4]
