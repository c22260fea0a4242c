"""The named models of ``configs/models``: their dimensions, and from those every parameter and every byte of a KV cache.

Counts follow from published configurations and are exact; ``tests/hardware`` compares them with the published totals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from suite.errors import UsageError, nearest
from suite.hardware.catalogue import builtin, read_yaml, yaml_files
from suite.hardware.figure import Source
from suite.hardware.reader import Reader


class Term(NamedTuple):
    """One summand of a parameter count; ``linear`` weights are the ones that a quantised format shrinks."""

    what: str
    arithmetic: str
    parameters: int
    linear: bool


@dataclass(frozen=True, slots=True)
class Attention:
    """``gqa`` caches K and V of ``kv_heads``; ``mla`` caches one latent of ``kv_rank`` and one rotary key of ``rope_dim``."""

    kind: str
    query_heads: int
    kv_heads: int = 0
    head_dim: int = 0
    qkv_bias: bool = False
    q_rank: int = 0
    kv_rank: int = 0
    nope_dim: int = 0
    rope_dim: int = 0
    value_dim: int = 0

    @property
    def cached_per_token(self) -> int:
        """Cached elements per token and layer."""
        return self.kv_rank + self.rope_dim if self.kind == "mla" else 2 * self.kv_heads * self.head_dim


@dataclass(frozen=True, slots=True)
class FeedForward:
    """Gated (three matrices); the first ``dense_layers`` of a mixture of experts have one of ``intermediate_size`` instead."""

    intermediate_size: int
    dense_layers: int = 0
    experts: int = 0
    shared_experts: int = 0
    expert_size: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder with untied embeddings and RMS norms, which all models of the catalogue are."""

    id: str
    name: str
    layers: int
    hidden_size: int
    vocabulary: int
    max_context: int
    attention: Attention
    feed_forward: FeedForward
    source: Source
    note: str = ""

    @property
    def parameters(self) -> int:
        """All parameters."""
        return sum(term.parameters for term in self.terms())

    @property
    def arithmetic(self) -> str:
        """``8,030,261,248 = 2 x 128256 x 4096 + 32 x 4096 x 6144 + ...``."""
        return f"{self.parameters:,} = {' + '.join(term.arithmetic for term in self.terms())}"

    @property
    def kv_arithmetic(self) -> str:
        """``32 layers x 2048 x 2 B = 131,072 B a token``."""
        return f"{self.layers} layers x {self.attention.cached_per_token} x 2 B = {self.kv_bytes_per_token():,} B a token"

    @property
    def linear_parameters(self) -> int:
        """Parameters of the layers' matrices; the rest (embeddings, router, norms, biases) stays in 16 bits in every format."""
        return sum(term.parameters for term in self.terms() if term.linear)

    def kv_bytes_per_token(self, bytes_per_element: int = 2) -> int:
        """KV cache of one token over all layers."""
        return self.layers * self.attention.cached_per_token * bytes_per_element

    def terms(self) -> tuple[Term, ...]:
        """The parameter count as a sum of products of dimensions."""
        h, n = self.hidden_size, self.layers
        embeddings = _term("embedding and output head", (2, self.vocabulary, h), linear=False)
        norms = _term("norms of layers and output", (2 * n + 1, h), linear=False)
        attention = _mla(n, h, self.attention) if self.attention.kind == "mla" else _gqa(n, h, self.attention)
        return (embeddings, *attention, *_feed_forward(n, h, self.feed_forward), norms)


def model_ids() -> tuple[str, ...]:
    """Names of all models, sorted."""
    return tuple(sorted(yaml_files(builtin("models"))))


@cache
def load_model(name: str) -> Model:
    """One model by its id; ``UsageError`` when there is none or its file is broken."""
    files = yaml_files(builtin("models"))
    if name not in files:
        raise UsageError(f"unknown model '{name}'{nearest(name, files)}")
    return parse_model(Reader(read_yaml(files[name]), files[name].name))


def all_models() -> tuple[Model, ...]:
    """Every model, fewest parameters first."""
    return tuple(sorted((load_model(name) for name in model_ids()), key=lambda model: model.parameters))


def parse_model(reader: Reader) -> Model:
    """A model from its YAML mapping; ``UsageError`` names file, key and what is wrong."""
    attention, feed_forward, source = (
        reader.child("attention", True),
        reader.child("feed_forward", True),
        reader.child("source"),
    )
    model = Model(
        id=reader.text("id", required=True),
        name=reader.text("name", required=True),
        layers=_whole(reader, "layers"),
        hidden_size=_whole(reader, "hidden_size"),
        vocabulary=_whole(reader, "vocabulary"),
        max_context=_whole(reader, "max_context"),
        attention=_attention(attention),
        feed_forward=FeedForward(
            _whole(feed_forward, "intermediate_size"),
            *(feed_forward.whole(key) or 0 for key in ("dense_layers", "experts", "shared_experts", "expert_size")),
        ),
        source=Source(source.text("title", required=True), source.text("url") or None),
        note=reader.text("note"),
    )
    for section in (feed_forward, source, reader):
        section.finish()
    return model


def _attention(reader: Reader) -> Attention:
    kind, heads = reader.text("kind", required=True, among=("gqa", "mla")), _whole(reader, "query_heads")
    keys = ("q_rank", "kv_rank", "nope_dim", "rope_dim", "value_dim") if kind == "mla" else ("kv_heads", "head_dim")
    attention = Attention(kind, heads, qkv_bias=reader.flag("qkv_bias"), **{key: _whole(reader, key) for key in keys})
    reader.finish()
    return attention


def _gqa(layers: int, hidden: int, a: Attention) -> Sequence[Term]:
    qkv = (a.query_heads + 2 * a.kv_heads) * a.head_dim
    terms = [
        _term("attention: query, key and value", (layers, hidden, qkv)),
        _term("attention: output", (layers, a.query_heads * a.head_dim, hidden)),
    ]
    return [*terms, _term("attention: biases", (layers, qkv), linear=False)] if a.qkv_bias else terms


def _mla(layers: int, hidden: int, a: Attention) -> Sequence[Term]:
    return [
        _term("attention: query down", (layers, hidden, a.q_rank)),
        _term("attention: query up", (layers, a.q_rank, a.query_heads * (a.nope_dim + a.rope_dim))),
        _term("attention: latent down", (layers, hidden, a.kv_rank + a.rope_dim)),
        _term("attention: latent up", (layers, a.kv_rank, a.query_heads * (a.nope_dim + a.value_dim))),
        _term("attention: output", (layers, a.query_heads * a.value_dim, hidden)),
        _term("attention: norms of the latents", (layers, a.q_rank + a.kv_rank), linear=False),
    ]


def _feed_forward(layers: int, hidden: int, f: FeedForward) -> Sequence[Term]:
    if not f.experts:
        return [_term("feed-forward: gate, up and down", (layers, 3, hidden, f.intermediate_size))]
    sparse = layers - f.dense_layers
    return [
        _term("feed-forward of the dense layers", (f.dense_layers, 3, hidden, f.intermediate_size)),
        _term("experts, shared ones included", (sparse, f.experts + f.shared_experts, 3, hidden, f.expert_size)),
        _term("router with its bias", (sparse, f.experts, hidden + 1), linear=False),
    ]


def _term(what: str, factors: tuple[int, ...], linear: bool = True) -> Term:
    count = 1
    for factor in factors:
        count *= factor
    return Term(what, " x ".join(str(factor) for factor in factors), count, linear)


def _whole(reader: Reader, key: str) -> int:
    return reader.whole(key, required=True) or 0
