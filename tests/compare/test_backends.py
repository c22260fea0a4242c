"""Runs of two backends on one machine: who a line is of, and which devices either run has results of."""

import pytest

from suite.compare import words
from suite.compare.comparison import Comparison, compare
from suite.compare.markdown import render_markdown
from suite.compare.pairing import pair
from suite.compare.repeats import Known
from suite.compare.side import Side
from suite.show.comparison import comparison_lines
from suite.show.screen import Screen
from tests.compare.builders import entry, looked, side
from tests.report.builders import failed

CPU = {"backend": "cpu", "device": "EPYC", "device_uid": "a1"}
XLA = {**CPU, "backend": "xla", "device_slot": 1}


def of_two(a: Side, b: Side) -> Comparison:
    return compare(a, b, pair(a, b), (looked(a), looked(b)), Known({}, {}), 0.01)


@pytest.fixture
def found() -> Comparison:
    """Torch and JAX against torch alone, with a case that torch has in the first run only."""
    return of_two(side(entry(**XLA), entry(**CPU), entry(512, **XLA), entry(512, **CPU)), side(entry(**CPU), run="b"))


def test_the_header_names_every_device_that_either_run_has_results_of(found: Comparison) -> None:
    """Those of the compared cases alone would make a run on two backends read as one of torch."""
    told = words.joined_by(found)
    assert told.endswith("not the same devices on both sides, cpu EPYC and xla EPYC against cpu EPYC")
    assert told in render_markdown(found)
    assert told in " ".join(" ".join(comparison_lines(found, Screen(80))).split())


def test_devices_of_two_runs_alike_are_named_once() -> None:
    both = [side(entry(**CPU), entry(**XLA), run=run) for run in ("a", "b")]
    assert words.joined_by(of_two(*both)).endswith("two runs of the same devices, cpu EPYC and xla EPYC")


def test_lines_of_what_is_not_compared_say_of_which_backend_it_is(found: Comparison) -> None:
    titles = [title for _, group in words.uncompared(found) for title in group]
    case = "bf16 library cold/sustained/device"
    assert sorted(titles) == [
        f"gemm 4096x4096x4096 {case} xla device 1",
        f"gemm 512x4096x4096 {case} cpu",
        f"gemm 512x4096x4096 {case} xla device 1",
    ]


def test_lines_of_what_is_compared_do_too(found: Comparison) -> None:
    (case,) = found.cases
    assert words.title(case, found.has_several_backends).endswith("cold/sustained/device cpu")
    for shown in (render_markdown(found), "\n".join(comparison_lines(found, Screen(200)))):
        assert "gemm 4096x4096x4096 bf16 library cold/sustained/device cpu" in shown


def test_where_there_is_one_backend_nothing_repeats_it() -> None:
    one = of_two(side(entry(**CPU), entry(512, **CPU)), side(entry(**CPU), run="b"))
    assert not one.has_several_backends
    assert [title for _, group in words.uncompared(one) for title in group] == [
        "gemm 512x4096x4096 bf16 library cold/sustained/device"
    ]


def test_reasons_name_backends_where_one_implementation_is_of_several() -> None:
    a = side(entry(implementation="math", **CPU))
    b = side(*(_lost(**each) for each in (CPU, XLA)), run="b")
    whys = [each.why for each in pair(a, b).uncompared]
    assert "B has no time of it: library (cpu) unsupported, library (xla) unsupported" in whys


def _lost(**fields: object):
    made = entry(**fields)
    return made._replace(row=failed("unsupported", "no", case_key=made.row.case_key, **fields))
