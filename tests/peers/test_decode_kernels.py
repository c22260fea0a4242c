"""The comparison of decoding kernels, as far as it goes without a device: inputs, references, limits."""

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend

from tests.peers import decode_kernels_inputs, decode_kernels_peers, decode_kernels_rows
from tests.peers.decode_kernels_cases import LLAMA, Case, formats_of, groups
from tests.peers.decode_kernels_inputs import Inputs
from tests.peers.decode_kernels_peers import contiguous, sdpa
from tests.peers.decode_kernels_rows import LIMITS, Result, conclusions
from tests.peers.record import Verdict

SMALL = LLAMA._replace(q_heads=4, kv_heads=2, width=32, page_size=4)


@pytest.fixture(autouse=True)
def _on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (decode_kernels_inputs, decode_kernels_peers):
        monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(decode_kernels_inputs, "COLD_BYTES", 1e5)


@pytest.mark.parametrize("tokens_first", [False, True])
def test_contiguous_keys_give_the_same_result_and_a_stale_page_does_not(tokens_first: bool) -> None:
    inputs = Inputs(Case("small", SMALL, (67, 67), tokens_first=tokens_first))
    way = sdpa("math", SDPBackend.MATH, inputs, contiguous(inputs))
    assert len(way.launches) == len(inputs.copies) > 1
    assert all(not inputs.wrong(launch(), None) for launch in way.launches)
    k, *_ = inputs.copies[0]
    k[int(inputs.table[1, 3])] = k[int(inputs.table[0, 3])]
    stale = sdpa("math", SDPBackend.MATH, inputs, contiguous(inputs)).launches[0]()
    assert "of the norm away" in inputs.wrong(stale, None)


def test_a_result_that_is_not_finite_is_wrong_wherever_it_stands() -> None:
    inputs = Inputs(Case("small", SMALL, (9,) * 8))
    (launch, *_) = sdpa("math", SDPBackend.MATH, inputs, contiguous(inputs)).launches
    out = launch().clone()
    unchecked = next(place for place in range(8) if place not in inputs.checked)
    out[unchecked, 0, 0, 0] = float("nan")
    assert "not finite" in inputs.wrong(out, None)


def test_more_bits_of_a_cache_are_a_smaller_error() -> None:
    errors = {label: Inputs(Case(label, problem, (120, 50))).rounding for label, problem in formats_of(SMALL)}
    assert errors["bf16"] == 0.0
    assert 0.0 < errors["int8, token scales"] < errors["fp8_e4m3, token scales"] < 0.1
    assert errors["fp8_e4m3, tensor scales"] < 0.1


def test_every_limit_is_of_a_case_that_is_measured_and_those_come_first() -> None:
    found = list(groups())
    for length, name in LIMITS:
        held = [
            place
            for place, group in enumerate(found)
            for case in group.cases
            if decode_kernels_rows._is(group.name, length, case.name, name)
        ]
        assert held
        assert max(held) < 2
    names = [(group.name, case.name) for group in found for case in group.cases]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("of_read", "speed", "verdict"), [(0.7, 1.7, Verdict.PASS), (0.6, 1.7, Verdict.FAIL), (0.7, 1.4, Verdict.FAIL)]
)
def test_a_conclusion_holds_each_limit(of_read: float, speed: float, verdict: Verdict) -> None:
    group = next(group.name for group in groups() if group.name.endswith(" 4k"))
    best: dict[tuple[str, str], Any] = {
        (group, "bf16"): Result(1.0, 1e12, 0.8, 0.96),
        (group, "fp8_e4m3, token scales"): Result(1 / speed, 1e12, of_read, 2.0),
    }
    rows = list(conclusions(best))
    assert [row.verdict for row in rows] == [Verdict.PASS, verdict]
    assert f"{speed:.3f} times as fast as bf16 (limit 1.6)" in rows[1].note


def test_without_cudnn_its_limit_is_not_met() -> None:
    group = next(group.name for group in groups() if group.name.endswith(" 32k"))
    (row,) = conclusions({(group, "bf16"): Result(1.0, 4e12, 0.95, None)})
    assert row.verdict is Verdict.FAIL


def test_a_cache_is_of_one_type_with_scales_for_what_it_says() -> None:
    (k, _, k_scale, _), *_ = Inputs(Case("int8", SMALL._replace(format="int8", scales="token"), (30,))).copies
    assert k.dtype is torch.int8
    assert k_scale is not None
    assert k_scale.shape == k.shape[:3]
    assert int(k.abs().amax()) == 127
