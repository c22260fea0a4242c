"""What the streaming kernel becomes on devices that are not there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from backends.triton.streaming.config import MULTIPLIER, REGISTERS, RESIDENT, Config, candidates
from backends.triton.streaming.port import emulation
from tests.backends.triton import apart
from tests.backends.triton.compiled import DEVICES
from tests.backends.triton.streaming.llama import problem

NAMES = ("sm_80", "sm_90", "sm_100", "gfx90a", "gfx942", "gfx950")
# A part of the name of the matrix instruction.
NATIVE = {
    "sm_80": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "sm_90": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16",
    "gfx942": "v_mfma_f32_16x16x16_bf16",
}


def _candidates(name: str, kind: str) -> Sequence[Config]:
    return candidates(problem(kind, 1), DEVICES[name])


ONE_ROW = [f"{name}/bf16/o/1" for name in NAMES]
EIGHT_ROWS = [f"{name}/bf16/o/8" for name in ("sm_80", "sm_90", "gfx942")]  # the others with every product
QUICK = [*ONE_ROW, *EIGHT_ROWS, "sm_90/bf16/qkv/1"]
STAYING = [
    f"{name}/bf16/{kind}/1/{next(number for number, each in enumerate(_candidates(name, kind)) if each.kernel == RESIDENT)}"
    for name, kind in (("sm_80", "down"), ("sm_90", "qkv"), ("sm_100", "gate_up"))
]
QUICK += STAYING
KINDS = ("qkv", "gate_up", "down", "lm_head")
EVERY = [f"{name}/bf16/{kind}/{rows}" for name in NAMES for kind in KINDS for rows in (1, 8, 64)]
OTHERS = [
    f"sm_90/{format_name}/{kind}/{rows}/{number}"
    for format_name, kind, rows in (("bf16", "qkv", 1), ("bf16", "down", 1), ("bf16", "gate_up", 8), ("bf16", "qkv", 64))
    for number in range(len(candidates(problem(kind, rows), DEVICES["sm_90"])))
] + ["sm_90/fp16/qkv/1", "sm_90/fp32/o/1", "sm_90/fp32/o/8"]


def narrowest(kind: str, rows: int) -> str:
    """The spec of the candidate that holds the least in registers, in fp32."""
    found = candidates(problem(kind, rows, "fp32"), DEVICES["sm_90"])
    number = min(range(len(found)), key=lambda each: (found[each].block_k, found[each].rows / found[each].warps))
    return f"sm_90/fp32/{kind}/{rows}/{number}"


# Behind a norm, which holds the most: at both ends of each width of X.
NARROWEST = [narrowest(kind, rows) for kind in ("qkv", "gate_up", "lm_head") for rows in (2, 8, 16, 17, 32, 33, 64)]
QUICK += [narrowest("gate_up", 16), narrowest("gate_up", 33)]

Found = dict[str, dict[str, Any]]


def compiled(specs: list[str], cache: Path) -> Found:
    return apart.compiled("tests.backends.triton.streaming.compiled", specs, cache)


@pytest.fixture(scope="module")
def became(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return compiled(QUICK, tmp_path_factory.mktemp("compiled"))


def is_sound(spec: str, found: dict[str, Any]) -> None:
    """It compiled, has room, and nothing of it goes through memory but what is streamed."""
    name = spec.partition("/")[0]
    assert "failed" not in found, (spec, found)
    assert found["shared_bytes"] <= found["expected_shared_bytes"] <= DEVICES[name].shared_bytes, (spec, found)
    assert found["spilled_bytes"] == 0, (spec, found)
    depends = name in ("sm_90", "sm_100")
    assert (found["waits"], found["triggers"]) == (depends, depends), (spec, found)
    assert found["loads_before_the_wait"] == 0, (spec, found)  # of what the launch before it may still write


@pytest.mark.parametrize("spec", QUICK)
def test_it_compiles_without_spilling_on_every_device(became: Found, spec: str) -> None:
    is_sound(spec, became[spec])


@pytest.mark.parametrize("spec", ONE_ROW)
def test_one_row_is_multiplied_where_its_weights_are_loaded_by_16_bytes(became: Found, spec: str) -> None:
    """Eight rows of weights and X: a load of 16 bytes each, and no copy through shared memory."""
    found = became[spec]
    assert found["kernel"] == REGISTERS
    assert found["instructions"] == []
    assert found["copies"] == 0
    assert found["wide_loads"] >= 9
    if spec.startswith("sm_"):
        assert found["wide_loads"] == 9


def test_a_product_behind_a_norm_reads_no_more_than_sums_of_squares_beside(became: Found) -> None:
    """A quarter of 1024 of them with each block of K, by 8 bytes."""
    assert became["sm_90/bf16/qkv/1"]["wide_loads"] == 9


@pytest.mark.parametrize("spec", EIGHT_ROWS)
def test_eight_rows_go_to_the_multiplier_of_the_format(became: Found, spec: str) -> None:
    found, name = became[spec], spec.partition("/")[0]
    assert found["kernel"] == MULTIPLIER
    assert found["instructions"]
    assert all(NATIVE[name] in each for each in found["instructions"])
    assert (found["copies"] > 0) == name.startswith("sm_")


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_every_product_of_a_step_compiles_for_every_device(name: str, tmp_path: Path) -> None:
    specs = [spec for spec in EVERY if spec.startswith(f"{name}/")]
    for spec, found in compiled(specs, tmp_path).items():
        is_sound(spec, found)
        assert bool(found["instructions"]) == (found["kernel"] == MULTIPLIER), (spec, found)
        assert emulation(found, "bf16") == "", (spec, found)


@pytest.mark.thorough
def test_every_candidate_compiles_for_the_device_whose_steps_are_measured(tmp_path: Path) -> None:
    for spec, found in compiled(OTHERS, tmp_path).items():
        is_sound(spec, found)


@pytest.mark.thorough
def test_some_candidate_spills_nothing_in_fp32_whatever_the_rows(tmp_path: Path) -> None:
    for spec, found in compiled(NARROWEST, tmp_path).items():
        is_sound(spec, found)


@pytest.mark.parametrize("spec", STAYING)
def test_programs_that_stay_copy_ahead_from_one_tile_into_the_next(became: Found, spec: str) -> None:
    """The compiler leaves copies out without a word where it finds something in the loop that it does not take."""
    found = became[spec]
    assert found["kernel"] == RESIDENT
    assert found["copies"] > 0
    assert found["wide_loads"] == (0 if "down" in spec else 2)  # sums of squares, before the loop
    assert found["shared_bytes"] > 2 * 8 * 1024 * 2  # two blocks of weights at least
