"""Cases of the job by the port, launched by Triton's interpreter: made ready, checked, and found incorrect where planted."""

from typing import Any

import pytest

from backends.triton.decode import port
from backends.triton.decode.plan import planned
from backends.triton.gemm.device import Device
from tests.backends.decode_bugs import BUGS, Bug
from tests.backends.decode_cases import decode_case
from tests.backends.triton import apart
from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.decode import prepared
from tests.backends.triton.decode.prepared import BROKEN, SOUND, Spec

Found = dict[str, dict[str, Any]]
HOPPER = Device("90", 132, 232_448)
DESCRIBED = ("many splits",)
SPECS = parameters(SOUND, {spec.name for spec in SOUND if spec.thorough}.__contains__)


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> Found:
    verdicts: Found = apart.interpreted(prepared.__name__, names_asked(request, DESCRIBED))
    return verdicts


@pytest.mark.parametrize("spec", SPECS)
def test_it_passes_the_check_of_the_job(found: Found, spec: Spec) -> None:
    assert found[spec.name]["passed"], found[spec.name]["reason"]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bugs_fail_it(found: Found, bug: Bug) -> None:
    assert found[BROKEN.name][bug.name]


def test_it_says_how_it_was_cut_and_what_passes_between_splits(found: Found) -> None:
    described = found["many splits"]["described"]
    splits = described["splits"]["most_of_a_sequence"]
    assert splits > 1
    assert described["passing_bytes"] == splits * 4 * (32 + 1) * 4  # one sequence, 4 query heads
    assert described["configuration"]
    assert described["chosen_by"] == "the first of a table that fits"


def test_only_splits_of_a_sequence_pass_anything() -> None:
    problem = port.problem_of(decode_case("triton", heads="8/2x64").workload)
    plan = planned((4096, 16), 32, 2, 16)
    assert {item.splits for item in plan.items if item.sequence == 1} == {1}
    split = sum(item.sequence == 0 for item in plan.items)
    assert port.passing_bytes(problem, plan) == split * 8 * (64 + 1) * 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"page_size": 24}, "a power of two"),
        ({"heads": "4x96"}, "heads of 96 columns"),
        ({"heads": "8/1x96/64"}, ""),
        ({"heads": "128/1x576/512", "page_size": 64}, ""),
        ({"q_len": 8}, ""),
    ],
)
def test_sizes_that_the_kernels_do_not_take_are_refused_by_name(options: dict[str, Any], words: str) -> None:
    told = port.reason(decode_case("triton", **options).workload, HOPPER)
    assert (words in (told or "")) if words else told is None


def test_fp8_is_refused_where_no_instruction_converts_it() -> None:
    case = decode_case("triton", "fp8_e4m3")
    assert "sm_89" in (port.reason(case.workload, Device("80", 108, 166_912)) or "")
    assert port.reason(case.workload, HOPPER) is None
