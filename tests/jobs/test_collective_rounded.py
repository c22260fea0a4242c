"""What is said of message sizes that are measured as others, or become one case with others."""

from importlib import resources
from typing import Any

import pytest

from suite.collectives.message import LARGEST_BYTES, SMALLEST_BYTES
from suite.commands.plan import remarks
from suite.errors import UsageError
from suite.jobs.collective import CollectiveJob, CollectiveSettings
from suite.jobs.collective.rounded import lines
from suite.jobs.collective.sizes import parse_size, size_text
from suite.settings import RunConfig

JOB = CollectiveJob()


def said(**axes: Any) -> list[str]:
    settings = CollectiveSettings(**axes)
    JOB.check(settings)
    return list(lines(settings))


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        ({}, []),
        ({"ops": ["all_reduce"], "sizes": ["12", "1KiB"], "world_sizes": [3]}, []),
        (
            {"ops": ["all_reduce"], "sizes": ["1B", "7B", "9B", "12B"]},
            ["rounded to whole elements of 4 B (all_reduce; fp32): 1 B and 7 B become 4 B, one case; 9 B becomes 8 B"],
        ),
        (
            {"ops": ["all_gather"], "sizes": ["8"], "world_sizes": [3], "formats": ["fp32", "fp64"]},
            [
                "rounded to whole elements of 4 B on each of 3 ranks (all_gather; fp32): 8 B becomes 12 B",
                "rounded to whole elements of 8 B on each of 3 ranks (all_gather; fp64): 8 B becomes 24 B",
            ],
        ),
        (
            {"ops": ["all_to_all", "all_reduce"], "sizes": ["1KiB"], "world_sizes": [3], "formats": ["fp32"]},
            ["rounded to whole elements of 4 B on each of 3 ranks (all_to_all; fp32): 1 KiB becomes 1020 B"],
        ),
        (
            {"ops": ["all_reduce"], "sizes": ["5", "6", "7", "4"]},
            ["rounded to whole elements of 4 B (all_reduce; fp32): 4 B to 7 B (4 sizes) become 4 B, one case"],
        ),
        ({"ops": ["all_reduce"], "sizes": ["4", "4B"]}, []),  # the same size twice is no rounding
        (
            {"ops": ["all_reduce", "broadcast"], "sizes": ["3"], "formats": ["bf16", "fp16", "int8"]},
            ["rounded to whole elements of 2 B (all_reduce, broadcast; bf16, fp16): 3 B becomes 2 B"],
        ),
    ],
)
def test_what_is_measured_as_another_size_is_said_once(axes: dict[str, Any], told: list[str]) -> None:
    assert said(**axes) == told


def test_plan_and_run_say_it_of_a_run_of_collectives() -> None:
    (line,) = remarks(RunConfig(jobs={"collective": CollectiveSettings(ops=["all_gather"], sizes=["8"], world_sizes=[3])}))
    assert line == "rounded to whole elements of 4 B on each of 3 ranks (all_gather; fp32): 8 B becomes 12 B"


def test_many_worlds_and_sizes_are_named_in_part() -> None:
    found = said(ops=["all_gather"], sizes=[str(size) for size in range(5, 400, 7)], world_sizes=[2, 3, 4, 5, 6])
    assert len(found) == 4
    assert found[-1] == "rounded likewise in 2 more combinations of operation, format and ranks"
    assert all(len(line) < 300 for line in found)
    assert found[0].endswith(" more")


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("op", CollectiveSettings().ops)
def test_what_is_said_is_what_is_planned(op: str, ranks: int) -> None:
    """Sizes of which nothing is said are those of the cases."""
    for size in (1, 7, 8, 12, 15, 30, 1000):
        settings = CollectiveSettings(ops=[op], sizes=[str(size)], world_sizes=[ranks])
        (workload,) = JOB.workloads(settings)
        became = int(workload.param("message_bytes"))
        (line,) = list(lines(settings)) or [""]
        assert line.endswith(f": {size} B becomes {size_text(became)}") is (became != size)


def test_the_limits_are_the_same_in_text_and_code() -> None:
    text = (resources.files("configs") / "job" / "collective.yaml").read_text()
    assert f"receives: {SMALLEST_BYTES}B to {size_text(LARGEST_BYTES).replace(' ', '')}\n" in text
    assert parse_size(str(SMALLEST_BYTES)) == SMALLEST_BYTES
    with pytest.raises(UsageError, match="sizes go from 1 B to 8 GiB"):
        parse_size(str(SMALLEST_BYTES - 1))


@pytest.mark.parametrize(
    ("size", "text"), [(1, "1 B"), (1020, "1020 B"), (2**16, "64 KiB"), (3 * 2**20, "3 MiB"), (2**30 + 1, "1073741825 B")]
)
def test_a_size_is_said_exactly(size: int, text: str) -> None:
    assert size_text(size) == text
    assert parse_size(text) == size
