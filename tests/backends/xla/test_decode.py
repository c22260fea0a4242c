"""Decoding through XLA, on JAX's CPU: right from caches of every format, held by a loop, and refused where it is not there."""

import json
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu

from backends.decode_data import LOUD, meeting_columns
from backends.host.arithmetic import lacking
from backends.host.cpuinfo import processors
from backends.jax import decode, program
from backends.jax.data import Operand
from backends.jax.decode.filling import filled
from backends.jax.decode.kernel import DecodeKernel
from backends.jax.decode.paged import block_pages
from backends.jax.decode.preparing import plan_of, step_of
from backends.jax.decode.table import drawn_table
from backends.jax.program import NotALoop
from backends.jax.target import Target
from backends.jax.widening import wide
from backends.xla import XlaBackend
from suite.case import Case, items
from suite.jobs.decode import IMPLEMENTATIONS, DecodeJob, scaling_of, sizes_of
from tests.backends.decode_cases import STORED, decode_case, fresh_verdict
from tests.backends.grid import grid

CPU, TPU, HOPPER = Target("cpu"), Target("tpu"), Target("cuda", (9, 0))
SHAPES: dict[str, dict[str, Any]] = {
    "equal": {},
    "skewed": {"lengths": "skewed"},
    "new_tokens": {"lengths": "uniform", "q_len": 3},
    "shared_prefix": {"shared_prefix": 32},
    "latent": {"heads": "8/1x96/64"},
    "pages_of_one": {"order": "contiguous", "page_size": 1},
    "one_token": {"kv_len": 1},
}
FEW = (
    (("bf16", None), "skewed"),
    (("fp16", None), "new_tokens"),
    (("fp32", None), "shared_prefix"),
    (("fp8_e4m3", "token"), "latent"),
    (("int8", "tensor"), "skewed"),
)


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


def prepared(backend: XlaBackend, case: Case, sets: int = 1) -> DecodeKernel:
    told = backend.supports(case)
    assert told is None, told
    kernel = backend.prepare(case, sets, seed=3)
    assert isinstance(kernel, DecodeKernel)
    return kernel


@grid("stored, shape", STORED, list(SHAPES), few=lambda stored, shape: (stored, shape) in FEW)
def test_every_format_and_shape_is_right(backend: XlaBackend, stored: tuple[str, str | None], shape: str) -> None:
    format_name, scaling = stored
    case = decode_case("naive", format_name, scaling=scaling, backend="xla", **SHAPES[shape])
    result = fresh_verdict(prepared(backend, case), case, seed=5)
    assert result.passed, result.reason


@pytest.mark.thorough
@pytest.mark.parametrize("distribution", ["uniform", "integer", "zeros", "constant", "outliers"])
def test_every_distribution_is_right(backend: XlaBackend, distribution: str) -> None:
    for format_name in ("fp32", "int8"):
        case = decode_case("naive", format_name, distribution=distribution, backend="xla")
        result = fresh_verdict(prepared(backend, case), case, seed=5)
        assert result.passed, result.reason


def test_the_loop_holds_it_and_leaves_right_outputs(backend: XlaBackend) -> None:
    """Pages are gathered in every turn, by the same table, which is handed back as it was."""
    case = decode_case("naive", lengths="skewed", backend="xla")
    kernel = prepared(backend, case, sets=2)
    before = [np.asarray(each.data).copy() for each in kernel.inputs[0]]
    loop = kernel.loop(2)
    assert (loop.tie, loop.audit.hoisted, loop.audit.products) == ("barrier", (), 4)
    kernel.run(loop)
    for kept, now in zip(before, kernel.inputs[0], strict=True):
        np.testing.assert_array_equal(kept, np.asarray(now.data))
    assert fresh_verdict(kernel, case, 8, lambda: kernel.run(loop)).passed


def test_pages_that_are_gathered_once_for_all_turns_are_found_out(backend: XlaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that ties are for: nothing else changes from turn to turn."""
    kernel = prepared(backend, decode_case("naive", lengths="skewed", backend="xla"), sets=2)
    monkeypatch.setattr(program, "TIES", {"nothing": lambda operands, output: (operands, output)})
    with pytest.raises(NotALoop, match=r"tied by nothing, XLA runs .* once, outside the loop"):
        kernel.loop(2)


def test_a_page_table_is_no_measure_of_what_is_too_small_to_be_work() -> None:
    table, q, o = jnp.zeros((3, 2), jnp.int32), jnp.zeros((3, 8)), jnp.zeros((3, 16))
    assert program._smallest([(table, q)], [[o]]) == 24
    assert program._smallest([(jnp.zeros((4, 4), jnp.int8), jnp.float32(1))], [[jnp.zeros((2, 2), jnp.int32)]]) == 4


def test_what_is_described_is_what_was_compiled(backend: XlaBackend) -> None:
    case = decode_case("naive", lengths="skewed", backend="xla")
    kernel = prepared(backend, case)
    described = json.loads(json.dumps(dict(kernel.describe())))
    sizes = sizes_of(case.workload)
    padded = sizes.batch * max(sizes.paging.counts) * sizes.page_size * sizes.num_kv_heads
    assert described["pages_are"].startswith("gathered into one piece of memory")
    assert described["passing_bytes"] >= padded * 2 * sizes.head_dim * 2  # K and V in bf16, each sequence as the longest
    assert kernel.set_bytes == DecodeJob().work(case.workload).compulsory_bytes
    assert described["lengths"] == {"shortest": min(sizes.tokens), "longest": max(sizes.tokens)}
    lacked = lacking(processors().isa).get("bf16", "")
    assert (kernel.execution, lacked in described["emulation"]) == ("emulated" if lacked else "native", True)
    assert prepared(backend, decode_case("naive", "fp32", heads="8/2x64", backend="xla")).execution == "native"
    assert (described["operand_dtype"], described["latest_keys"]) == ("bfloat16", {"columns_of_a_query": 27})


@pytest.mark.parametrize(
    "case",
    [
        decode_case("naive", "fp32", lengths="uniform", q_len=3, kv_len=20),
        decode_case("naive", "int8", scaling="token", kv_len=20, shared_prefix=16),
        decode_case("naive", "fp8_e4m3", heads="4/1x24/16", kv_len=20, lengths="skewed"),
    ],
    ids=["new_tokens", "int8", "latent"],
)
def test_the_reference_is_the_definition(case: Case) -> None:
    """Token by token through the page table: another way than that of the check's reference."""
    step = step_of(case.implementation, case.workload)
    operands = filled(step, "normal", 7)
    formula = plan_of(case.implementation, step).formula
    rows, columns = formula.shape  # type: ignore[attr-defined]
    found = formula.tile(operands, 0, 0, rows, columns)
    np.testing.assert_allclose(found, by_definition(case, operands), atol=1e-12)


def by_definition(case: Case, operands: tuple[Operand, ...]) -> np.ndarray:
    sizes, scaling = sizes_of(case.workload), scaling_of(case.workload)
    table, _, q = (np.asarray(each.data) for each in operands[:3])

    def worth(cache: Operand, sequence: int, token: int, head: int) -> np.ndarray:
        page, place = table[sequence, token // sizes.page_size], token % sizes.page_size
        data = np.asarray(cache.data)
        numbers = wide(np.ascontiguousarray(data[head, page, place]))
        if cache.scale is None:
            return numbers
        scales = np.asarray(cache.scale, dtype=np.float64)
        return numbers * float(scales if scaling == "tensor" else scales[head, page, place])

    out = np.zeros((sizes.batch, sizes.q_len, sizes.num_q_heads, sizes.v_head_dim))
    for sequence, length in enumerate(sizes.tokens):
        for h in range(sizes.num_q_heads):
            head = h // sizes.group
            keys, values = (
                np.stack([worth(cache, sequence, token, head) for token in range(length)])
                for cache in (operands[3], operands[-1])
            )
            for i in range(sizes.q_len):
                seen = length - (sizes.q_len - 1 - i)
                scores = keys[:seen] @ wide(np.ascontiguousarray(q[sequence, i, h])) / sizes.head_dim**0.5
                weights = np.exp(scores - scores.max())
                out[sequence, i, h] = (weights @ values[:seen, : sizes.v_head_dim]) / weights.sum()
    return out.reshape(-1, sizes.v_head_dim)


def test_a_table_names_each_page_once_and_the_spare_one_behind_a_sequences_end() -> None:
    sizes = sizes_of(decode_case("naive", lengths="skewed", batch=5).workload)
    table = drawn_table(sizes, max(sizes.paging.counts) + 3, seed=1)
    spare = sizes.paging.page_count
    used = [row[:count] for row, count in zip(table.entries, sizes.paging.counts, strict=True)]
    assert sorted(np.concatenate(used).tolist()) == list(range(spare))
    assert all((row[count:] == spare).all() for row, count in zip(table.entries, sizes.paging.counts, strict=True))
    assert len(table.unused) + sum(sizes.tokens) == (spare + 1) * sizes.page_size
    assert set(table.latest.tolist()).isdisjoint(table.unused.tolist())
    assert not np.array_equal(table.entries, drawn_table(sizes, table.entries.shape[1], seed=2).entries)


def test_unused_places_are_loud_and_latest_keys_begin_as_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lot of pages they are drawn in."""
    monkeypatch.setattr("backends.jax.decode.filling.CHUNK_NUMBERS", 16 * 2 * 64 * 4)
    case = decode_case("naive", "fp32", lengths="skewed")
    step, sizes = step_of("naive", case.workload), sizes_of(case.workload)
    table, lengths, q, k, v = (np.asarray(each.data) for each in filled(step, "normal", 7))
    assert lengths.tolist() == list(sizes.tokens)
    columns = meeting_columns(sizes, "normal")
    loud = 0
    for sequence, length in enumerate(sizes.tokens):
        page, place = table[sequence, (length - 1) // sizes.page_size], (length - 1) % sizes.page_size
        np.testing.assert_array_equal(k[:, page, place, :columns], q[sequence, -1, :: sizes.group, :columns])
        assert (np.abs(k[:, page, place + 1 :]) == LOUD).all()
        assert (np.abs(v[:, page, place + 1 :]) == LOUD).all()
        loud += k[:, page, place + 1 :].size
    assert (np.abs(k[:, -1]) == LOUD).all()  # the spare page
    assert int((np.abs(k) == LOUD).sum()) == loud + k[:, -1].size
    # Of their signs a key scores highest with the queries' sum.
    sums = q.sum((0, 1)).reshape(sizes.num_kv_heads, sizes.group, -1).sum(1)
    assert (np.einsum("hc,hc->h", sums, k[:, -1, 0]) > 0).all()


def test_numbers_depend_on_seed_and_set(backend: XlaBackend) -> None:
    kernel = prepared(backend, decode_case("naive", lengths="skewed", backend="xla"), sets=2)
    first, second = ([np.asarray(each.data) for each in kernel.inputs[index]] for index in range(2))
    for number in (0, 2, 3, 4):  # lengths stay as they are
        assert not np.array_equal(first[number], second[number])
    assert not np.array_equal(first[3], first[4])
    kernel.refill(4)
    assert not np.array_equal(first[3], np.asarray(kernel.inputs[0][3].data))
    kernel.refill(3)
    assert np.array_equal(first[3], np.asarray(kernel.inputs[0][3].data))


@pytest.mark.parametrize(
    "case",
    [
        decode_case("library_flash", heads="4/2x128", lengths="skewed"),
        pytest.param(decode_case("library_flash", heads="16/2x128", kv_len=700, page_size=64), marks=pytest.mark.thorough),
    ],
    ids=["ragged", "several_blocks"],
)
def test_the_kernel_for_tpus_is_right_where_it_is_interpreted(case: Case) -> None:
    step = step_of("library_flash", case.workload)
    plan, operands = plan_of("library_flash", step), filled(step, "normal", 5)
    with pltpu.force_tpu_interpret_mode():
        output = np.asarray(jax.jit(plan.compute)(*(each.data for each in operands))).astype(np.float64)
    right = plan.formula.tile(operands, 0, 0, *output.shape)
    error = float(np.linalg.norm(output - right) / np.linalg.norm(right))
    assert error <= DecodeJob().tolerance(case.workload, ())


@pytest.mark.parametrize(("kv_len", "page_size"), [(4096, 16), (100, 16), (1, 128), (70, 3)])
def test_the_table_for_tpus_is_of_whole_blocks(kv_len: int, page_size: int) -> None:
    sizes = sizes_of(decode_case("library_flash", heads="4/2x128", kv_len=kv_len, page_size=page_size).workload)
    columns = step_of("library_flash", decode_case("library_flash", kv_len=kv_len, page_size=page_size).workload).columns
    assert columns % block_pages(sizes) == 0
    assert columns > max(sizes.paging.counts)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("target", [CPU, HOPPER, TPU, Target("rocm")], ids=lambda target: target.kind)
def test_every_implementation_of_the_job_runs_or_says_why_not(name: str, target: Target) -> None:
    there = ("naive", "library_flash") if target.kind == "tpu" else ("naive",)
    told = decode.reason(decode_case(name, heads="4/2x128"), target)
    assert (told is None) == (name in there)
    assert told is None or (name in told and "\n" not in told)


@pytest.mark.parametrize(
    ("case", "target", "words"),
    [
        (decode_case("naiv"), CPU, "did you mean 'naive'"),
        (decode_case("triton"), CPU, "decoding through XLA has no implementation triton, only naive, library_flash;"),
        (decode_case("naive", "bf17"), CPU, "did you mean 'bf16'"),
        (decode_case("naive", distribution="norml"), CPU, "did you mean 'normal'"),
        (decode_case("naive", order="randm"), CPU, "did you mean 'random'"),
        (decode_case("naive", semantics={"scaling": "token"}), CPU, "its numbers have no scales"),
        (decode_case("naive", "int8", semantics={"scaling": "row"}), CPU, "choose from: tensor, token"),
        (decode_case("naive", semantics={"accumulate": "fp16"}), CPU, "not in fp16"),
        (decode_case("naive", "int8", activation="fp32"), CPU, "queries are in bf16 or fp16, not in fp32"),
        (replace(decode_case("naive"), switches=items({"tf32": True})), CPU, "no switch 'tf32'"),
        (decode_case("library_flash"), CPU, "the device here is a CPU; take naive, which gathers the pages"),
        (decode_case("library_flash"), HOPPER, "the device here is a CUDA"),
        (decode_case("library_flash", "fp32"), TPU, "multiplies fp32 in bf16"),
        (decode_case("library_flash", "fp16"), TPU, "a cache in bf16 on a TPU, not fp16"),
        (decode_case("library_flash", "int8"), TPU, "a cache in bf16 on a TPU, not int8"),
        (decode_case("library_flash", q_len=2), TPU, "one new token of a sequence, not 2"),
        (decode_case("library_flash", heads="8/1x576/512"), TPU, "not the first columns of the keys (MLA)"),
        (decode_case("library_flash", heads="4/2x64"), TPU, "a multiple of 128, not 64"),
    ],
)
def test_refusals_say_why(case: Case, target: Target, words: str) -> None:
    told = decode.reason(case, target)
    assert told is not None
    assert words in told
    assert "\n" not in told


def test_what_a_host_has_no_room_to_gather_is_refused_before_anything_is_drawn(
    backend: XlaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backends.jax.decode.preparing.memory_available_bytes", lambda: 1 << 10)
    with pytest.raises(MemoryError, match="take smaller batches or kv_lens"):
        backend.prepare(decode_case("naive", backend="xla"), 1, seed=3)
