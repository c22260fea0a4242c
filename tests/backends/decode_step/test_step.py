"""A whole decode step on CPU torch: its buffers, its data, what it says, and what is refused with which reason."""

import json
import math
import weakref
from typing import Any

import pytest
import torch

from backends.torch import jobs
from backends.torch.decode_step.cache import newest
from backends.torch.decode_step.drawing import EMBEDDED_SIZE, LARGEST_STREAM, added_share
from backends.torch.decode_step.kernel import StepKernel, fill
from backends.torch.decode_step.operands import StepBuffers, allocate
from backends.torch.decode_step.stages import COLUMNS
from backends.torch.way import Made
from suite.case import Case, items
from suite.jobs.decode.cache import NUMBER_BYTES
from suite.jobs.decode_step import DISTRIBUTIONS, sizes_of
from suite.jobs.decode_step.job import SCRATCH_BYTES
from suite.jobs.decode_step.tolerance import stage_tolerances
from suite.jobs.decode_step.work import activation_bytes, step_bytes
from tests.backends.cases import any_cpu
from tests.backends.decode_step.cases import JOB, fresh_verdict, prepared, prepared_step, step_case

CPU = torch.device("cpu")


def buffers_of(case: Case, paged: bool) -> StepBuffers:
    each = allocate(case.workload, CPU, paged=paged)
    fill([each], case.workload.distribution, 5)
    return each


def held_bytes(each: StepBuffers) -> int:
    """All memory of a set, places of tokens included."""
    operands = sum(tensor.nbytes for operand in each.operands for tensor in operand.buffers)
    beside = (each.rotation, each.positions, each.table.places, *each.left)
    return operands + sum(tensor.nbytes for tensor in beside)


@pytest.mark.parametrize("more", [{}, {"batches": [1], "kv_lens": [64]}, {"kv_lens": [1]}, {"vocabularies": 17}], ids=str)
def test_memory_is_what_was_planned(more: dict[str, Any]) -> None:
    """A set in pages to a hundredth; in one piece no more than that and what the library has more."""
    case = step_case(format_name="bf16", **more)
    planned = JOB.footprint(case.workload)
    assert planned.scratch_bytes == SCRATCH_BYTES
    paged, whole = (held_bytes(allocate(case.workload, CPU, paged=each)) for each in (True, False))
    in_pages, in_one_piece = (planned.total_bytes(1, implementation=name) - SCRATCH_BYTES for name in ("triton", "library"))
    assert 0.99 * in_pages <= paged <= in_pages
    assert whole + activation_bytes(sizes_of(case.workload), NUMBER_BYTES["bf16"]) <= in_one_piece


def test_pages_and_one_piece_hold_the_same_numbers() -> None:
    case = step_case()
    paged, whole = (buffers_of(case, each) for each in (True, False))
    for one, other in zip(paged.layers, whole.layers, strict=True):
        assert torch.equal(one.qkv.data, other.qkv.data)
        assert torch.equal(newest(one.v), newest(other.v))
        for sequence in range(3):
            assert torch.equal(one.k.worth(sequence, 1)[0:37], other.k.worth(sequence, 1)[0:37])
    assert torch.equal(paged.lm_head.data, whole.lm_head.data)
    assert torch.equal(paged.tokens.data, whole.tokens.data)


def test_new_data_are_new_in_everything_that_a_launch_reads() -> None:
    case = step_case()
    each = buffers_of(case, True)
    before = [tensor.clone() for operand in each.operands for tensor in operand.buffers]
    fill([each], "normal", 6)
    after = [tensor for operand in each.operands for tensor in operand.buffers]
    assert not any(torch.equal(*pair) for pair in zip(before, after, strict=True))


@pytest.mark.parametrize("layers", [1, 8, 32])
def test_every_layer_adds_the_same_share_to_a_stream_that_ends_within_fp16(layers: int) -> None:
    case = step_case(format_name="fp32", layers=layers, hidden_sizes=256, intermediate_sizes=512, heads="8/4x32", batches=[2])
    kernel = prepared_step(case)
    kernel.enqueue(0)
    each = kernel.buffers[0]
    streams = [each.embedded, *(tensor for layer in each.layers for tensor in (layer.mid, layer.out))]
    sizes = [float(stream.square().mean().sqrt()) for stream in streams]
    added = [float((b - a).square().mean().sqrt()) / size for a, b, size in zip(streams, streams[1:], sizes, strict=False)]
    share = added_share(layers)
    assert all(0.5 * share < each < 1.6 * share for each in added), added
    assert sizes[0] == pytest.approx(EMBEDDED_SIZE, rel=0.2)
    assert sizes[-1] < 2 * EMBEDDED_SIZE * LARGEST_STREAM
    assert all(0.7 < float(layer.q.square().mean().sqrt()) < 1.4 for layer in each.layers)


def test_the_newest_value_makes_about_half_of_the_first_head_of_a_group() -> None:
    case = step_case(format_name="fp32", heads="4/2x64", hidden_sizes=256, kv_lens=[1000], batches=[4], layers=1)
    kernel = prepared_step(case)
    kernel.enqueue(0)
    kernel.hand_over([0])
    layer = kernel.buffers[0].layers[0]
    shares = []
    for sequence in range(4):
        for head in (0, 2):
            keys, values = (cache.worth(sequence, head // 2)[0:1000] for cache in (layer.k, layer.v))
            weights = (keys @ layer.q[sequence, 0, head].double() / math.sqrt(64)).softmax(0)
            shares.append(float(weights[-1] * values[-1].norm() / layer.attended[sequence, 0, head].double().norm()))
    assert 0.4 < sum(shares) / len(shares) < 0.9
    assert all(share > 0.1 for share in shares), shares


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("format_name", ["bf16", "fp16", "fp32"])
def test_every_distribution_passes(distribution: str, format_name: str) -> None:
    case = step_case(format_name=format_name, distributions=[distribution], layers=2)
    kernel = prepared(case, sets=2)
    result = fresh_verdict(kernel, case, 6)
    assert result.passed, result.reason
    assert bool(kernel.describe()["check_cannot_see"]) == (distribution == "zeros")


@pytest.mark.parametrize(
    "more",
    [
        {"heads": "4x16"},
        {"heads": "8/1x24"},
        {"kv_lens": [1], "batches": [1]},
        {"kv_lens": [16], "page_sizes": [16]},
        {"vocabularies": 129, "hidden_sizes": 144, "intermediate_sizes": 272},
    ],
    ids=str,
)
def test_sizes_of_every_kind(more: dict[str, Any]) -> None:
    case = step_case(**{"layers": 2, **more})
    result = fresh_verdict(prepared(case), case, 7)
    assert result.passed, result.reason


def test_a_check_sees_every_stage_of_every_layer_and_a_row_for_inputs() -> None:
    kernel = prepared_step(step_case(layers=2))
    names = [stage.name for stage in kernel.stages(0)]
    of_layer = ["q", "k", "v", "attention", "mid", "act", "out"]
    assert names == ["embedding", *(f"layer {number} {name}" for number in (0, 1) for name in of_layer), "logits"]
    # Each row of 64 or 96 numbers is a block, one of 300 logits three; three sequences.
    assert kernel.output_shape == (3 * (1 + 2 * 7 + 3) + 1, COLUMNS)


def test_attention_stays_in_the_librarys_buffers_until_it_is_looked_at() -> None:
    kernel = prepared_step(step_case(layers=1))
    assert kernel.hands_over
    kernel.poison()
    kernel.enqueue(0)
    layer = kernel.buffers[0].layers[0]
    assert not layer.attended.isfinite().any()
    kernel.hand_over([0])
    assert layer.attended.isfinite().all()


def test_what_a_step_returned_is_gone_before_the_next_of_its_set() -> None:
    """Two would be held at once, and room is planned for one."""
    case = step_case(layers=1)
    each, alive = buffers_of(case, paged=False), []

    def launch() -> list[torch.Tensor]:
        assert not [one for one in alive if one() is not None]
        returned = torch.ones_like(each.layers[0].attended)
        alive.append(weakref.ref(returned))
        return [returned]

    parts = stage_tolerances(case.workload), 1, "native", "normal", {}
    kernel = StepKernel([each], Made([launch], {}, returns=True), *parts)
    kernel.enqueue(0)
    kernel.enqueue(0)
    kernel.hand_over([0])
    assert len(alive) == 2
    assert each.layers[0].attended.eq(1).all()


def test_a_poisoned_step_that_is_not_launched_is_found_unwritten() -> None:
    case = step_case(layers=1)
    kernel = prepared(case)
    result = fresh_verdict(kernel, case, 7, run=lambda: None)
    sizes = sizes_of(case.workload)
    left = activation_bytes(sizes, 1) + sizes.batch * sizes.vocabulary
    assert result.unwritten == left


def test_it_says_what_it_moved_where_the_token_stood_and_that_no_token_is_chosen() -> None:
    case = step_case()
    kernel = prepared(case)
    told = json.loads(json.dumps(dict(kernel.describe())))
    assert told["bytes"] == step_bytes(case.workload)._asdict()
    assert told["position"] == 36
    assert "logits" in told["result"]
    assert told["passing_bytes"] == activation_bytes(sizes_of(case.workload), 2)
    assert kernel.set_bytes == JOB.work(case.workload).compulsory_bytes


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (step_case("triton"), "implementation triton runs on GPUs; the device here is a CPU"),
        (step_case("triton_tuned", part="weights"), "implementation triton_tuned runs on GPUs"),
        (step_case("tritn"), "did you mean 'triton'"),
        (Case(step_case().workload, "library", "cpu", step_case().regime, items({"tf32": True})), "no switch 'tf32'"),
    ],
)
def test_what_cannot_run_is_refused_by_name(case: Case, words: str) -> None:
    assert words in (jobs.reason(case, any_cpu()) or "")


def test_closing_gives_the_buffers_back() -> None:
    kernel = prepared_step(step_case(layers=1))
    kernel.enqueue(0)
    kernel.close()
    assert kernel.buffers == ()
