"""The check catches every planted bug of a decode step in whichever layer it is, and never an unbroken step."""

from collections.abc import Iterator

import pytest
import torch

from backends.torch.decode_step.kernel import StepKernel
from backends.torch.decode_step.operands import allocate
from suite.case import Case
from suite.measure.verify import Expected, check, expect
from suite.measurement import Check
from tests.backends.decode_step.cases import JOB, fresh_verdict, prepared, probes_of, run_all, step_case
from tests.backends.decode_step.flawed import AT_THE_ENDS, IN_A_LAYER, Flawed, flawed, kernel_of

FORMATS = ("bf16", "fp16", "fp32")
LAYERS = 3
OVERWRITES = ("a weight overwritten", "appended twice", "appended to the next sequence", "appended a place before")
DEEP = {"layers": 40, "hidden_sizes": 128, "heads": "8/2x16", "intermediate_sizes": 256, "batches": [2], "kv_lens": [100]}


class Bench:
    """One step's buffers, whose data stay the same for one flaw after the other."""

    def __init__(self, case: Case, seed: int = 10) -> None:
        self.case, self._seed = case, seed
        each = allocate(case.workload, torch.device("cpu"), paged=True)
        self.launch = Flawed(each)
        self.kernel: StepKernel = kernel_of(case, [each], [self.launch])
        self._fill()

    def _fill(self) -> None:
        self.kernel.refill(self._seed)
        self._expected: Expected = expect(self.kernel, probes_of(self.kernel, self._seed))

    def verdict(self, name: str, layer: int = 0) -> Check:
        self.launch.name, self.launch.layer = name, layer
        found = check(self.kernel, self._expected, JOB.tolerance(self.case.workload, ()), lambda: run_all(self.kernel))
        if name in OVERWRITES:
            self._fill()
        return found


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield Bench(step_case("library"))
    torch.set_num_threads(before)


@pytest.mark.parametrize(("layer", "name"), [(place % LAYERS, name) for place, name in enumerate(IN_A_LAYER)])
def test_each_flaw_of_a_layer_is_caught(bench: Bench, layer: int, name: str) -> None:
    assert not bench.verdict(name, layer).passed


@pytest.mark.parametrize("name", [name for name in AT_THE_ENDS if name != "results of other data"])
def test_each_flaw_before_and_behind_the_layers_is_caught(bench: Bench, name: str) -> None:
    assert not bench.verdict(name).passed


def test_without_a_flaw_the_same_bench_passes(bench: Bench) -> None:
    found = bench.verdict("")
    assert found.passed, found.reason


def test_results_that_were_right_for_other_data_are_caught() -> None:
    """Consistent with each other from the embedding to the logits, so that only fresh data tells."""
    case = step_case("library", layers=2)
    kernel = flawed(case, "results of other data")
    assert [fresh_verdict(kernel, case, seed).passed for seed in (10, 11)] == [True, False]


def test_what_a_launch_writes_where_it_has_to_read_is_named_by_the_row_behind_all_stages(bench: Bench) -> None:
    found = bench.verdict("a weight overwritten", 2)
    assert not found.passed
    assert found.error_rel is not None
    assert found.error_rel < found.tolerance  # every stage is right, and the row of changed inputs is not
    assert found.projection_error == pytest.approx(1.0)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("implementation", ["library", "by the book"])
def test_sound_steps_never_fail(implementation: str, format_name: str) -> None:
    case = step_case("library", format_name, layers=2, batches=[2])
    kernel = flawed(case) if implementation == "by the book" else prepared(case)
    failed = [result.reason for seed in range(4) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


def test_depth_adds_nothing_to_what_a_sound_step_is_off() -> None:
    """Many layers are held to the same tolerance as one: a stage inherits no error."""
    case = step_case("library", **{**DEEP, "layers": 12, "kv_lens": [20]})
    result = fresh_verdict(prepared(case), case, 5)
    assert result.passed, result.reason
    assert JOB.tolerance(case.workload, ()) == JOB.tolerance(step_case("library", **{**DEEP, "layers": 1}).workload, ())


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("more", [{}, {"heads": "4x16"}, {"heads": "8/1x32"}, {"kv_lens": [1]}, {"kv_lens": [200]}], ids=str)
def test_sound_steps_never_fail_over_many_seeds(more: dict, format_name: str) -> None:
    case = step_case("library", format_name, **more)
    kernel = prepared(case)
    failed = [result.reason for seed in range(50) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", FORMATS)
def test_each_flaw_is_caught_in_every_layer_and_format(format_name: str) -> None:
    found = Bench(step_case("library", format_name), seed=21)
    missed = [(name, layer) for name in IN_A_LAYER for layer in range(LAYERS) if found.verdict(name, layer).passed]
    assert missed == []


@pytest.mark.thorough
def test_each_flaw_is_caught_in_the_last_of_forty_layers() -> None:
    found = Bench(step_case("library", **DEEP), seed=31)
    assert [name for name in IN_A_LAYER if found.verdict(name, 39).passed] == []
