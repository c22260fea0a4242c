"""Attention through XLA, on JAX's CPU: right in every shape, held by a loop, and refused in words where it is not there."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
import torch
from jax.experimental.pallas import tpu as pltpu

from backends.jax import attention
from backends.jax.attention.executed import executed
from backends.jax.attention.kernel import RowwiseKernel
from backends.jax.attention.layout import HEADS_FIRST, ROWS_FIRST, Layout, output_shape
from backends.jax.attention.passing import passing
from backends.jax.attention.preparing import plan_of
from backends.jax.attention.reference import Attention
from backends.jax.data import Operand, drawn
from backends.jax.hlo import Audit, parse
from backends.jax.program import _fault
from backends.jax.target import Target
from backends.torch.attention import reference as of_torch
from backends.torch.data import Operand as TorchOperand
from backends.xla import XlaBackend
from suite.case import Case, items
from suite.jobs.attention import IMPLEMENTATIONS, AttentionJob, Sizes, sizes_of
from tests.backends.attention_cases import attention_case, fresh_verdict
from tests.backends.grid import grid

FORMATS = ("fp32", "bf16", "fp16")
HEADS = ("4/2x64", "2x192/128", "4/1x128", "2x256")
MASKS = ("full", "causal", "sliding_window")
DIRECTIONS = ("forward", "backward")
HERE = ("naive", "library_math")
FEW = (
    ("naive", "fp32", "4/2x64", "causal", "forward"),
    ("naive", "bf16", "2x192/128", "causal", "forward"),
    ("naive", "fp16", "4/1x128", "sliding_window", "forward"),
    ("naive", "bf16", "4/2x64", "causal", "backward"),
    ("naive", "fp32", "2x192/128", "full", "backward"),
    ("library_math", "bf16", "4/2x64", "sliding_window", "forward"),
    ("library_math", "fp32", "4/2x64", "causal", "backward"),
)
CPU, TPU, HOPPER, AMPERE = Target("cpu"), Target("tpu"), Target("cuda", (9, 0)), Target("cuda", (8, 0))


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


def prepared(backend: XlaBackend, case: Case, sets: int = 1) -> RowwiseKernel:
    told = backend.supports(case)
    assert told is None, told
    kernel = backend.prepare(case, sets, seed=3)
    assert isinstance(kernel, RowwiseKernel)
    return kernel


@grid(
    "implementation, format_name, heads, mask, direction",
    HERE,
    FORMATS,
    HEADS,
    MASKS,
    DIRECTIONS,
    few=lambda *values: values in FEW,
)
def test_every_shape_is_right_or_says_why_not(
    backend: XlaBackend, implementation: str, format_name: str, heads: str, mask: str, direction: str
) -> None:
    case = attention_case(implementation, format_name, heads, length=72, mask=mask, direction=direction, backend="xla")
    if told := backend.supports(case):
        assert implementation == "library_math"
        assert ("columns of V" in told) == (heads == "2x192/128" and format_name != "fp16")
        return
    result = fresh_verdict(prepared(backend, case), case, seed=5)
    assert result.passed, result.reason
    assert result.error_rel is not None
    assert result.error_rel < {"fp32": 1e-6, "bf16": 4e-3, "fp16": 5e-4}[format_name]  # computed in no less than it says


@pytest.mark.parametrize("implementation", HERE)
def test_the_loop_holds_it_and_leaves_right_outputs(backend: XlaBackend, implementation: str) -> None:
    """What ``jax.nn`` transposes in a launch it transposes in a turn: no fault of the loop."""
    case = attention_case(implementation, length=72, backend="xla")
    kernel = prepared(backend, case, sets=2)
    loop = kernel.loop(2)
    assert (loop.tie, loop.audit.hoisted, loop.audit.products) == ("barrier", (), 4)
    assert fresh_verdict(kernel, case, 8, lambda: kernel.run(loop)).passed


def test_only_what_a_loop_copies_beside_its_launches_is_its_fault() -> None:
    found = Audit(loops=1, hoisted=(), copied_bytes=100, doubled="", products=2)
    assert _fault(found, 2, own_bytes=100) == ""
    assert "copies 1 bytes in every turn of the loop beside" in _fault(found, 2, own_bytes=99)
    assert "copies 100 bytes in every turn of the loop" in _fault(found, 2, own_bytes=0)


def test_what_is_described_is_what_was_compiled(backend: XlaBackend) -> None:
    case = attention_case("naive", "fp32", length=72, backend="xla")
    described = json.loads(json.dumps(dict(prepared(backend, case).describe())))
    sizes = sizes_of(case.workload)
    assert (described["output"], described["layout"]) == ("O", "batch, heads, rows, columns")
    assert described["emulation"] == ""
    assert described["passing_bytes"] >= 2 * 4 * sizes.pairs  # scores and weights, both in fp32
    assert described["cost_analysis"]["flops"] >= AttentionJob().work(case.workload).flops
    converted = prepared(backend, attention_case("library_math", length=72, direction="backward", backend="xla")).describe()
    assert converted["output"] == "dQ, dK and dV, one after the other"
    assert (converted["layout"], converted["emulation"]) == ("batch, rows, heads, columns", "XLA multiplies bf16, f32")
    assert converted["call"] == "jax.nn.dot_product_attention, implementation xla"


PRODUCTS = """HloModule m
ENTRY %main (a: bf16[8,8], b: {other}[8,8]) -> f32[8,8] {{
  %a = bf16[8,8]{{1,0}} parameter(0)
  %b = {other}[8,8]{{1,0}} parameter(1)
  ROOT %d = f32[8,8]{{1,0}} dot(%a, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


@pytest.mark.parametrize(
    ("other", "stored", "execution"),
    [
        ("bf16", "", "native"),
        ("f32", "", "emulated"),
        ("s8", "int8", "native"),
        ("bf16", "bf16", "native"),  # a cache of the queries' own type is none beside it
        ("s8", "bf16", "emulated"),
        ("f32", "int8", "emulated"),
    ],
)
def test_products_are_native_where_each_takes_the_format_or_what_the_cache_is_stored_in(
    other: str, stored: str, execution: str
) -> None:
    told = executed(parse(PRODUCTS.format(other=other)), "bf16", CPU, opaque=False, stored=stored)
    assert told["execution"] == execution
    assert bool(told["emulation"]) == (execution == "emulated")
    assert "executed_pipe" not in told  # one of them is in bf16


def test_a_cpu_without_instructions_for_a_format_converts_what_xla_multiplies_as_it_is_stored() -> None:
    lacking = Target("cpu", lacking=(("bf16", "the CPU has no bf16 arithmetic"),))
    told = executed(parse(PRODUCTS.format(other="bf16")), "bf16", lacking, opaque=False)
    assert (told["execution"], told["executed_pipe"]) == ("emulated", "fp32")
    assert told["emulation"] == "converted to fp32: the CPU has no bf16 arithmetic"


def test_products_that_a_library_has_are_native() -> None:
    nothing = "HloModule m\nENTRY %main (a: f32[8]) -> f32[8] {\n  ROOT %a = f32[8]{0} parameter(0)\n}\n"
    assert executed(parse(nothing), "bf16", HOPPER, opaque=True)["execution"] == "native"
    assert "does not show" in executed(parse(nothing), "bf16", HOPPER, opaque=False)["emulation"]


ENTRY = """HloModule m
ENTRY %main (a: f32[8,8], o: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8]{1,0} parameter(0)
  %o = f32[8,8]{1,0} parameter(1)
  %b = f32[8,4]{1,0} fusion(%a), kind=kLoop, calls=%f
  %c = f32[4,8]{1,0} bitcast(%b)
  %d = (f32[8,8]{1,0}, s8[64]{0}) custom-call(%c, %a), custom_call_target="__cublas$gemm"
  %e = f32[8,8]{1,0} get-tuple-element(%d), index=0
  ROOT %g = f32[8,8]{1,0} fusion(%e, %b), kind=kLoop, calls=%f
}
"""


def test_what_passes_through_memory_is_what_one_step_writes_and_another_reads() -> None:
    """Neither what a launch is given nor what it gives, once whoever reads it, and through the names that it goes by."""
    assert passing(parse(ENTRY), "cuda") == {"passing_bytes": 8 * 4 * 4 + 8 * 8 * 4}
    assert passing(parse(ENTRY), "tpu") == {}


def stored(sizes: Sizes, layout: Layout) -> tuple[list[Operand], list[TorchOperand]]:
    """The same numbers for both: heads first for torch."""
    random = np.random.default_rng(1)
    shapes = {
        "q": (sizes.batch, sizes.num_q_heads, sizes.q_len, sizes.head_dim),
        "k": (sizes.batch, sizes.num_kv_heads, sizes.kv_len, sizes.head_dim),
        "v": (sizes.batch, sizes.num_kv_heads, sizes.kv_len, sizes.v_head_dim),
        "o": (sizes.batch, sizes.num_q_heads, sizes.q_len, sizes.v_head_dim),
    }
    numbers = [random.standard_normal(shapes[name]).astype(np.float32) for name in ("qkvo" if sizes.is_backward else "qkv")]
    mine = [each if layout.heads_axis == 1 else np.ascontiguousarray(each.swapaxes(1, 2)) for each in numbers]
    return [Operand(jax.numpy.asarray(each)) for each in mine], [TorchOperand(torch.from_numpy(each)) for each in numbers]


@pytest.mark.parametrize("layout", [HEADS_FIRST, ROWS_FIRST], ids=["heads_first", "rows_first"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("heads", "mask"), [("4/2x64", "causal"), ("2x24/16", "sliding_window"), ("2/1x8", "full")])
def test_the_reference_means_what_torchs_means(
    monkeypatch: pytest.MonkeyPatch, heads: str, mask: str, direction: str, layout: Layout
) -> None:
    """Tile by tile, projection and sizes of rows, with blocks so small that there are several."""
    monkeypatch.setattr("backends.jax.attention.reference.BLOCK_SCORES", 300)
    sizes = sizes_of(attention_case("naive", "fp32", heads, length=50, mask=mask, direction=direction).workload)
    mine, theirs = stored(sizes, layout)
    formula, other = Attention(sizes, layout), of_torch.Attention(sizes)
    rows, columns = output_shape(sizes, layout)
    signs = np.random.default_rng(2).choice([-1.0, 1.0], columns)
    found = formula.look(mine, signs, [(0, 0, rows, columns), (rows - 7, columns - 3, 7, 3)])
    whole = other.tile(theirs, 0, 0, rows, columns).numpy()
    projection, norms = (each.numpy() for each in other.look(theirs, torch.from_numpy(signs)))
    order = in_order(sizes, layout)
    np.testing.assert_allclose(found.tiles[0], whole[order], atol=1e-12)
    np.testing.assert_allclose(found.projection, projection[order], atol=1e-11)
    np.testing.assert_allclose(found.norms, norms[order], atol=1e-12)
    np.testing.assert_array_equal(found.tiles[1], found.tiles[0][-7:, -3:])
    np.testing.assert_array_equal(formula.tile(mine, 3, 1, 5, 4), found.tiles[0][3:8, 1:5])
    np.testing.assert_array_equal(formula.project(mine, signs), found.projection)


def in_order(sizes: Sizes, layout: Layout) -> np.ndarray:
    """Which row of torch's output each row is."""
    from backends.jax.attention.layout import places_of, result_names

    theirs, mine = places_of(sizes, HEADS_FIRST), places_of(sizes, layout)
    swap = layout.heads_axis == 2
    parts = [(theirs[name].swapaxes(1, 2) if swap else theirs[name], mine[name]) for name in result_names(sizes)]
    order = np.empty(sum(each.size for _, each in parts), dtype=np.int64)
    for their, own in parts:
        order[own.ravel()] = np.ascontiguousarray(their).ravel()
    return order


@pytest.mark.parametrize(("heads", "mask"), [("2x128", "full"), ("1x64", "causal")])
def test_the_kernel_for_tpus_is_right_where_it_is_interpreted(heads: str, mask: str) -> None:
    case = attention_case("library_flash", heads=heads, length=256, mask=mask, batch=1)
    plan = plan_of("library_flash", "bf16", sizes_of(case.workload))
    operands = [drawn(shape, dtype, "normal", number) for number, (shape, dtype) in enumerate(plan.operands)]
    with pltpu.force_tpu_interpret_mode():
        output = np.asarray(jax.jit(plan.compute)(*(each.data for each in operands))).astype(np.float64)
    rows, columns = output.shape
    right = plan.formula.tile(operands, 0, 0, rows, columns)
    error = float(np.linalg.norm(output - right) / np.linalg.norm(right))
    assert error <= AttentionJob().tolerance(case.workload, ())


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("target", [CPU, HOPPER, TPU, Target("rocm")], ids=lambda target: target.kind)
def test_every_implementation_of_the_job_runs_or_says_why_not(name: str, target: Target) -> None:
    there = {"cpu": HERE, "cuda": (*HERE, "library_cudnn"), "tpu": (*HERE, "library_flash"), "rocm": HERE}
    told = attention.reason(attention_case(name, heads="4x128", length=256), target)
    assert (told is None) == (name in there[target.kind])
    assert told is None or (name in told and "\n" not in told)


@pytest.mark.parametrize(
    ("case", "target", "words"),
    [
        (attention_case("naiv"), CPU, "did you mean 'naive'"),
        (attention_case("triton"), CPU, "attention through XLA has no implementation triton, only naive, library_math"),
        (attention_case("naive", "bf17"), CPU, "did you mean 'bf16'"),
        (attention_case("naive", "fp8_e4m3"), CPU, "takes fp32, bf16, fp16, not fp8_e4m3"),
        (attention_case("naive", distribution="norml"), CPU, "did you mean 'normal'"),
        (attention_case("naive", semantics={"accumulate": "fp16"}), CPU, "not in fp16"),
        (attention_case("naive", semantics={"scaling": "head"}), CPU, "its numbers have no scales"),
        (attention_case("naive", semantics={"hadamard": True}), CPU, "not for bf16"),
        (replace(attention_case("naive"), switches=items({"tf32": True})), CPU, "no switch 'tf32'"),
        (attention_case("naive", direction="backward", distribution="constant"), CPU, "cannot be checked"),
        (attention_case("naive", direction="backward", distribution="outliers"), CPU, "cannot be checked"),
        (attention_case("naive", direction="backward", mask="sliding_window", window=1), CPU, "a window of 1 token cannot be"),
        (attention_case("library_math", "fp16"), CPU, "does not offer on a CPU; take naive, or bf16"),
        (attention_case("library_math", "fp16"), TPU, "does not offer on a TPU"),
        (attention_case("library_math", heads="2x192/128"), HOPPER, "as many columns of V as of K, not 128 beside 192"),
        (attention_case("library_cudnn"), CPU, "for NVIDIA GPUs; the device here is a CPU; take library_math"),
        (attention_case("library_cudnn"), Target("rocm"), "the device here is a ROCM"),
        (attention_case("library_cudnn", "fp32"), HOPPER, "takes bf16 and fp16, not fp32"),
        (attention_case("library_cudnn", direction="backward"), HOPPER, "running its forward pass again"),
        (attention_case("library_cudnn", heads="2x256"), AMPERE, "head_dim of up to 128 at compute capability 8.0, not 256"),
        (attention_case("library_cudnn"), Target("cuda", (7, 5)), "needs compute capability 8.0, this device has 7.5"),
        (attention_case("library_flash"), CPU, "Pallas kernel for TPUs; the device here is a CPU; take library_math"),
        (attention_case("library_flash"), HOPPER, "take library_cudnn or library_math"),
        (attention_case("library_flash", "fp32"), TPU, "multiplies fp32 in bf16"),
        (attention_case("library_flash", "fp16"), TPU, "load no fp16"),
        (attention_case("library_flash", direction="backward"), TPU, "running the forward pass again"),
        (attention_case("library_flash", heads="4/2x64"), TPU, "as many heads of K and V as of Q, not 2 beside 4"),
        (attention_case("library_flash", heads="2x192/128"), TPU, "as many columns of V as of K"),
        (attention_case("library_flash", heads="2x192"), TPU, "up to 128 or a multiple of it, not 192"),
        (attention_case("library_flash", heads="2x64", mask="sliding_window"), TPU, "no mask sliding_window"),
        (attention_case("library_flash", heads="2x64", length=200), TPU, "a multiple of 128, not 200 and 200"),
    ],
)
def test_refusals_say_why(case: Case, target: Target, words: str) -> None:
    told = attention.reason(case, target)
    assert told is not None
    assert words in told
    assert "\n" not in told


def test_what_cudnn_takes_is_not_refused() -> None:
    assert attention.reason(attention_case("library_cudnn", heads="2x256"), HOPPER) is None
    assert attention.reason(attention_case("library_cudnn", "fp16", mask="sliding_window"), AMPERE) is None
    assert attention.reason(attention_case("library_math", "fp16"), HOPPER) is None
    assert attention.reason(attention_case("library_cudnn"), Target("cuda")) is None  # a device whose driver is silent


def test_scores_that_a_host_has_no_room_for_are_refused_before_anything_is_drawn(
    backend: XlaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backends.jax.attention.preparing.memory_available_bytes", lambda: 1 << 20)
    with pytest.raises(MemoryError, match="take fewer tokens or heads"):
        backend.prepare(attention_case("naive", length=512, backend="xla"), 1, seed=3)
