"""Named models as decoders of equal layers, and which of them are none."""

from typing import TYPE_CHECKING

from suite.errors import UsageError, nearest
from suite.jobs.decode_step.sizes import STEP, Sizes

if TYPE_CHECKING:  # plans of other jobs read no model's file
    from suite.hardware.models import Model


def decoder(name: str, part: str) -> Sizes:
    """The sizes of a named model, for one sequence without a context.

    Raises ``UsageError`` for a model that is not in the catalogue, or whose layers are not what this job computes.
    """
    from suite.hardware.models import load_model, model_ids

    if name not in model_ids():
        raise UsageError(f"unknown model '{name}' in jobs.decode_step.models{nearest(name, model_ids())}")
    model = load_model(name)
    told = _other_layers(model, part)
    if told:
        raise UsageError(f"jobs.decode_step.models has {name}, {told}; leave it out")
    attention = model.attention
    heads = (attention.query_heads, attention.kv_heads, attention.head_dim)
    width = model.feed_forward.intermediate_size
    return Sizes(part, 1, model.layers, model.hidden_size, *heads, width, model.vocabulary, model=name)


def _other_layers(model: "Model", part: str) -> str:
    """What a model has that is not computed here; empty where there is nothing."""
    if model.attention.kind != "gqa":
        return f"whose attention is {model.attention.kind.upper()}; layers with heads of K and V are computed here"
    if model.feed_forward.experts:
        return "whose layers have experts; one gated feed-forward is computed here"
    if model.attention.qkv_bias and part == STEP:
        return "whose q, k and v have biases, which this step does not add; parts=[weights] takes it"
    return ""
