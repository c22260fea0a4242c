"""Parameter counts against published totals, and what fits where."""

import math

import pytest

from suite.errors import UsageError
from suite.hardware.catalogue import load
from suite.hardware.figure import Figure
from suite.hardware.fits import CONTEXTS, RESERVE, WEIGHT_BITS, Fits, fits, weight_bytes
from suite.hardware.models import all_models, load_model, parse_model
from suite.hardware.reader import Reader
from suite.hardware.spec import HardwareSpec, Memory
from suite.jobs.shapes import MODEL_PROJECTIONS

GOOD = {
    **dict.fromkeys(("layers", "hidden_size", "vocabulary", "max_context"), 1),
    **dict.fromkeys(("id", "name"), "m"),
    "attention": {"kind": "gqa", "query_heads": 1, "kv_heads": 1, "head_dim": 1},
    "feed_forward": {"intermediate_size": 1},
    "source": {"title": "t"},
}


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("llama-3-8b", 8_030_261_248),
        ("llama-3.3-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("qwen2.5-72b", 72_706_203_648),
        ("deepseek-v3", 671_026_419_200),
    ],
)
def test_parameters_are_the_published_ones(model: str, parameters: int) -> None:
    assert load_model(model).parameters == parameters


def test_the_dimensions_are_those_that_gemm_measures() -> None:
    """Each projection that gemm knows of a model is one of its matrices."""
    for model in all_models():
        shapes = set(MODEL_PROJECTIONS[model.id])
        a, h = model.attention, model.hidden_size
        if a.kind == "gqa":
            assert (h, (a.query_heads + 2 * a.kv_heads) * a.head_dim) in shapes
            assert (a.query_heads * a.head_dim, h) in shapes
            assert (h, 2 * model.feed_forward.intermediate_size) in shapes
            assert (model.feed_forward.intermediate_size, h) in shapes
        else:
            assert (a.q_rank, a.query_heads * (a.nope_dim + a.rope_dim)) in shapes
            assert (h, a.q_rank + a.kv_rank + a.rope_dim) in shapes
            assert (a.kv_rank, a.query_heads * (a.nope_dim + a.value_dim)) in shapes
            assert (h, 2 * model.feed_forward.expert_size) in shapes


@pytest.mark.parametrize(
    ("model", "kv_bytes"),
    [("llama-3-8b", 131_072), ("llama-3.3-70b", 327_680), ("llama-3.1-405b", 516_096), ("deepseek-v3", 61 * (512 + 64) * 2)],
)
def test_kv_bytes_per_token(model: str, kv_bytes: int) -> None:
    """DeepSeek's latent cache takes half of what an 8B model's KV heads do."""
    assert load_model(model).kv_bytes_per_token() == kv_bytes
    assert load_model(model).kv_bytes_per_token(1) == kv_bytes // 2


def test_weight_bytes_leave_embeddings_norms_and_router_in_16_bits() -> None:
    model = load_model("llama-3-8b")
    other = 2 * 128256 * 4096 + 65 * 4096
    assert model.parameters - model.linear_parameters == other
    assert weight_bytes(model, "bf16") == 2 * model.parameters
    assert weight_bytes(model, "fp8") == model.linear_parameters + 2 * other
    assert weight_bytes(model, "4-bit") == model.linear_parameters * 17 // 32 + 2 * other


def test_the_arithmetic_that_is_shown_is_right() -> None:
    for model in all_models():
        total, sum_of_products = model.arithmetic.split(" = ")
        products = (math.prod(map(int, product.split(" x "))) for product in sum_of_products.split(" + "))
        assert sum(products) == int(total.replace(",", "")) == model.parameters


def found(name: str) -> Fits:
    result = fits(load(name))
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("nvidia-rtx-4090", {"bf16": "llama-3-8b", "fp8": "llama-3-8b", "4-bit": "llama-3-8b"}),
        ("nvidia-h100-sxm5-80gb", {"bf16": "llama-3-8b", "fp8": "llama-3.3-70b", "4-bit": "qwen2.5-72b"}),
        ("amd-mi300x", {"bf16": "qwen2.5-72b", "fp8": "qwen2.5-72b", "4-bit": "qwen2.5-72b"}),
        ("amd-mi355x", {"bf16": "qwen2.5-72b", "fp8": "qwen2.5-72b", "4-bit": "llama-3.1-405b"}),
        ("nvidia-v100-sxm2-16gb", {"bf16": None, "fp8": "llama-3-8b", "4-bit": "llama-3-8b"}),
    ],
)
def test_the_largest_model_by_format(name: str, largest: dict[str, str | None]) -> None:
    result = found(name)
    rows = {format: result.largest(format) for format in WEIGHT_BITS}
    assert {format: row.model.id if row else None for format, row in rows.items()} == largest


@pytest.mark.parametrize("name", ["nvidia-h200-sxm5-141gb", "google-tpu-v2", "amd-mi325x", "nvidia-gb10"])
def test_the_largest_context_fits_and_one_token_more_does_not(name: str) -> None:
    result = found(name)
    assert result.usable_bytes <= result.memory_bytes * (1 - RESERVE)
    for row in result.rows:
        used = row.weight_bytes + row.max_context * row.kv_bytes_per_token
        assert used <= result.usable_bytes or row.max_context == 0
        assert used + row.kv_bytes_per_token > result.usable_bytes
        assert row.contexts == {context: context <= row.max_context for context in CONTEXTS}


def test_an_accelerator_whose_memory_is_unknown_fits_nothing_and_fails_nothing() -> None:
    blank = HardwareSpec("x", "x", "x", "SM", Figure(), Memory(), {})
    assert fits(blank) is None


def test_a_wrong_model_file_or_name_is_one_line() -> None:
    with pytest.raises(UsageError, match="did you mean 'llama-3-8b'"):
        load_model("llama-3-9b")
    with pytest.raises(UsageError, match=r"^m\.yaml: attention\.kind is 'gqq'"):
        parse_model(Reader(GOOD | {"attention": {"kind": "gqq", "query_heads": 1}}, "m.yaml"))
    with pytest.raises(UsageError, match=r"^m\.yaml: layers is 0, not a whole number from 1 up"):
        parse_model(Reader(GOOD | {"layers": 0}, "m.yaml"))
    with pytest.raises(UsageError, match=r"^m\.yaml: layer is not known; did you mean 'layers'"):
        parse_model(Reader(GOOD | {"layer": 1}, "m.yaml"))
