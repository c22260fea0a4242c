"""What the kernel of few rows becomes on devices that are not there: the loop goes from memory to the multiplier."""

from pathlib import Path
from typing import Any

import pytest

from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.matrix import compile_apart, is_sound

ROW, ROWS, MOST = "1x8192x8192", "8x28672x8192", "16x8192x8192"
SPECS = [
    f"sm_90/w4/{ROW}",
    f"sm_90/w4zero/{ROWS}",
    f"sm_90/w4/{MOST}",
    f"sm_90/w4/{MOST}/split 2",
    f"sm_90/w4/{ROW}/2 groups",
    f"sm_90/w4/{ROWS}/32 rows",
    f"sm_90/w4zero/{ROWS}/32 rows",
    f"sm_80/w4/{ROWS}",
    f"sm_89/w4/{ROW}",
    f"sm_100/w4/{ROW}",
    f"sm_120/w4/{MOST}",
]


@pytest.fixture(scope="module")
def became(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    cache: Path = tmp_path_factory.mktemp("compiled")
    return compile_apart(names_asked(request), 400.0, str(cache), "tests.backends.triton.compiled_rungs")


@pytest.mark.parametrize("spec", parameters(SPECS, lambda name: not name.startswith(("sm_90/w4zero", "sm_80"))))
def test_weights_go_from_memory_to_the_multiplier(became: dict[str, dict[str, Any]], spec: str) -> None:
    found = became[spec]
    assert is_sound(spec, found), found
    assert found["instructions"] == ["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"]
    assert (found["spilled_bytes"], found["complaints"], found["emulation"]) == (0, [], "")
    assert found["exchanged_in_the_loop"] == []
    # Those of a whole phase, between each one's loads and the wait for them.
    narrow = 2 if "/16x" in spec else 1
    assert found["products_under_way"] == [8 * found["groups"] * found["tiles"] * narrow] * 2
    assert found["wide_loads"] >= 12  # of 16 bytes: words and X of a phase, three times
    assert found["registers"] <= found["allowed_registers"]
    if spec.startswith("sm_90/w4/"):
        assert found["instructions_of_a_phase"] == pytest.approx(found["expected_instructions"], rel=0.06)
