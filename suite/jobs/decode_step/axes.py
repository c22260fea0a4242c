"""The axes of the decode_step job: which parts a format has, which sizes are asked for, and what no step here has."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Protocol

from suite.jobs.axes import listed
from suite.jobs.decode.sizes import HEAD_DIMS, LARGEST_LENGTH, LARGEST_PAGE
from suite.jobs.decode_step.formats import FORMATS
from suite.jobs.decode_step.models import decoder
from suite.jobs.decode_step.sizes import OF_A_STEP, STEP, Sizes
from suite.jobs.heads import Heads, HeadsAxis, Values

LARGEST_BATCH = 512
HEADS = HeadsAxis("decode_step", HEAD_DIMS, Values.AS_KEYS, "32x128 or 32/8x128")
COUNTED = {
    "batches": range(1, LARGEST_BATCH + 1),
    "kv_lens": range(1, LARGEST_LENGTH + 1),
    "page_sizes": range(1, LARGEST_PAGE + 1),
}
# Sizes that may stand in the place of a model's own, by setting: the field, and what it may be.  Widths are whole units of 16
# bytes in every format.
SIZED = {
    "layers": ("layers", range(1, 1025)),
    "hidden_sizes": ("hidden_size", range(16, 65_537, 16)),
    "intermediate_sizes": ("intermediate_size", range(16, 262_145, 16)),
    "vocabularies": ("vocabulary", range(16, 1_048_577)),
}


class Axes(Protocol):
    """The settings that are read here."""

    parts: list[str]
    models: list[str]
    batches: list[int]
    kv_lens: list[int]
    page_sizes: list[int]
    heads: Any


def parts_of(settings: Axes, format_name: str) -> list[str]:
    """Those asked for that have the format."""
    return [part for part in dict.fromkeys(settings.parts) if format_name in FORMATS[part]]


def sizes_asked(settings: Axes, part: str) -> Iterator[Sizes]:
    """Models outermost, then their own sizes or those in their place, batches, contexts."""
    models = [decoder(name, part) for name in dict.fromkeys(settings.models)]
    axes = [list(dict.fromkeys(listed(getattr(settings, axis)))) for axis in SIZED]
    heads = [None if text is None else HEADS.parse(text) for text in dict.fromkeys(listed(settings.heads))]
    batches, kv_lens, page_sizes = (list(dict.fromkeys(getattr(settings, axis))) for axis in COUNTED)
    of_cache = product(kv_lens, page_sizes) if part == STEP else [(0, 0)]
    found = (
        _replaced(model, dict(zip((name for name, _ in SIZED.values()), given, strict=True)), of_heads)
        for model, of_heads, *given in product(models, heads, *axes)
    )
    yield from (
        sizes._replace(batch=batch, **dict(zip(OF_A_STEP, cached, strict=True)))
        for sizes, batch, cached in product(dict.fromkeys(found), batches, list(of_cache))
    )


def _replaced(model: Sizes, given: dict[str, Any], heads: Heads | None) -> Sizes:
    """Sizes in the place of a model's own; with other widths it is that model no more, with fewer layers a part of it."""
    changed = {name: value for name, value in given.items() if value is not None}
    if heads is not None:
        changed |= {"num_q_heads": heads.num_q_heads, "num_kv_heads": heads.num_kv_heads, "head_dim": heads.head_dim}
    replaced = model._replace(**changed)
    of_widths = replaced._replace(layers=model.layers)
    return replaced if of_widths == model else replaced._replace(model="")
