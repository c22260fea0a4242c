"""What is refused, and how what is taken is cut."""

import pytest

from backends.triton.decode.config import REGISTERS, STAGED, candidates, default, shared_bytes
from backends.triton.decode.problem import Problem, reason
from backends.triton.gemm.device import Device
from tests.backends.triton.compiled import DEVICES

LLAMA = Problem("bf16", 32, 8, 128, 16)
MLA = Problem("bf16", 128, 1, 512, 64, tail=64, shared_values=True)
FP8 = LLAMA._replace(format="fp8_e4m3", scales="token")
FP32 = LLAMA._replace(format="fp32")
H200 = DEVICES["sm_90"]


@pytest.mark.parametrize(
    ("problem", "named"),
    [
        (LLAMA._replace(format="fp4"), "choose from: fp32"),
        (LLAMA._replace(scales="token"), "8-bit numbers have"),
        (FP8._replace(scales="none"), "8-bit numbers have"),
        (LLAMA._replace(kv_heads=5), "32 query heads are no multiple of 5"),
        (LLAMA._replace(q_len=9), "1 to 8"),
        (LLAMA._replace(page_size=24), "page_size=24"),
        (LLAMA._replace(page_size=256), "up to 128"),
        (LLAMA._replace(width=96), "heads of 96 columns"),
        (MLA._replace(shared_values=False), "64 columns behind the first 512"),
    ],
)
def test_a_refusal_names_what_was_given_and_the_limit(problem: Problem, named: str) -> None:
    assert named in str(reason(problem, H200))


@pytest.mark.parametrize("problem", [LLAMA, MLA, FP8, FP8._replace(format="int8", scales="tensor", q_len=8)])
def test_what_models_have_is_not_refused(problem: Problem) -> None:
    assert reason(problem, H200) is None


@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)
@pytest.mark.parametrize("problem", [LLAMA, MLA, FP8, LLAMA._replace(width=256), LLAMA._replace(kv_heads=1, q_len=8), FP32])
def test_every_candidate_has_room_for_its_pipeline(problem: Problem, device: Device) -> None:
    found = candidates(problem, device)
    assert all(shared_bytes(each, problem, device) <= device.shared_bytes for each in found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", [name for name, device in DEVICES.items() if not device.is_amd])
def test_latents_in_fp32_have_room_on_nvidia(name: str) -> None:
    device, problem = DEVICES[name], MLA._replace(format="fp32")
    assert all(shared_bytes(each, problem, device) <= device.shared_bytes for each in candidates(problem, device))


def test_eight_bits_go_through_registers_where_a_warp_holds_them() -> None:
    assert default(FP8, H200).kernel == REGISTERS
    assert default(FP8._replace(width=256), H200).kernel == STAGED
    assert default(FP8, DEVICES["gfx942"]).kernel == STAGED
    assert default(LLAMA, H200).kernel == STAGED


@pytest.mark.parametrize(("kv_heads", "q_len", "rows"), [(32, 1, 1), (8, 1, 4), (8, 2, 8), (1, 1, 16), (1, 8, 16)])
def test_fp32_has_no_more_rows_than_a_group_where_no_instruction_wants_them(kv_heads: int, q_len: int, rows: int) -> None:
    fp32 = FP32._replace(kv_heads=kv_heads, q_len=q_len)
    assert {each.rows for each in candidates(fp32, H200)} == {rows}
    assert default(fp32, DEVICES["gfx942"]).rows >= 16


@pytest.mark.parametrize(("q_len", "kv_heads", "rows"), [(1, 8, 8), (2, 8, 8), (3, 8, 16), (8, 8, 16), (1, 32, 8)])
def test_a_product_has_the_fewest_rows_that_hold_a_group(q_len: int, kv_heads: int, rows: int) -> None:
    assert default(FP8._replace(q_len=q_len, kv_heads=kv_heads), H200).rows == rows
