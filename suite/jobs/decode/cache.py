"""How a KV cache is stored, and what decoding one step from it has to move and to compute."""

from collections.abc import Mapping
from typing import NamedTuple

from suite.jobs.decode.pages import Pages, Paging

NUMBER_BYTES: Mapping[str, int] = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8_e4m3": 1, "int8": 1}
SCALE_BYTES, ENTRY_BYTES, LENGTH_BYTES = 4, 4, 4  # fp32, and int32 twice
SCALES = ("none", "tensor", "token")
SPARE_PAGES = 1  # behind those that are used: what an entry behind a sequence's last page names
SPARE_ENTRIES = 1  # of each sequence in the table, likewise


class Heads(NamedTuple):
    """Heads of attention: ``width`` columns of values, as many of keys and ``tail`` more.

    With ``shared_values`` (MLA: latent 512, tail 64) the values are the first columns of the keys and are stored once.
    """

    q_heads: int
    kv_heads: int
    width: int
    tail: int = 0
    shared_values: bool = False

    @property
    def stored_columns(self) -> int:
        """Numbers of one token and KV head in the cache."""
        return self.width + self.tail + (0 if self.shared_values else self.width)

    @property
    def stored_tensors(self) -> int:
        return 1 if self.shared_values else 2


class Bytes(NamedTuple):
    """What one step moves at least, every piece once: the roofline's bytes, part by part."""

    kv: int
    scales: int
    table: int
    queries: int
    output: int

    @property
    def total(self) -> int:
        return sum(self)


def compulsory_bytes(heads: Heads, pages: Pages | Paging, format_name: str, scales: str, q_len: int, q_bytes: int = 2) -> Bytes:
    """K and V once for each KV head and token in the cache (a shared page once, the rest of a last page not at all), scales,
    entries of the table and lengths, queries and output (``q_bytes`` a number).

    Scales are fp32: of each token and KV head for ``token``, of each stored tensor for ``tensor``.
    """
    return _bytes(heads, pages, format_name, scales, q_len, q_bytes, pages.unique_tokens)


def separate_bytes(heads: Heads, pages: Pages | Paging, format_name: str, scales: str, q_len: int, q_bytes: int = 2) -> Bytes:
    """The same where every sequence reads its own prefix: what goes to memory when no cache holds a shared one."""
    return _bytes(heads, pages, format_name, scales, q_len, q_bytes, sum(pages.lengths))


def _bytes(heads: Heads, pages: Pages | Paging, format_name: str, scales: str, q_len: int, q_bytes: int, tokens: int) -> Bytes:
    assert scales in SCALES, scales
    batch = len(pages.lengths)
    token_scales = tokens * heads.kv_heads if scales == "token" else 1 if scales == "tensor" else 0
    rows = batch * q_len * heads.q_heads
    return Bytes(
        kv=tokens * heads.kv_heads * heads.stored_columns * NUMBER_BYTES[format_name],
        scales=token_scales * heads.stored_tensors * SCALE_BYTES,
        table=pages.entries * ENTRY_BYTES + batch * LENGTH_BYTES,
        queries=rows * (heads.width + heads.tail) * q_bytes,
        output=rows * heads.width * q_bytes,
    )


def flops(heads: Heads, lengths: tuple[int, ...], q_len: int) -> int:
    """2 (d_qk + d_v) for each query head and pair of a query and a key it sees.

    The last of ``q_len`` new tokens stands at the sequence's last key, each earlier one a key before; those that would stand
    before the first see nothing.
    """
    pairs = sum(max(0, length - back) for length in lengths for back in range(q_len))
    return 2 * (2 * heads.width + heads.tail) * heads.q_heads * pairs


def cache_bytes(heads: Heads, pages: Pages | Paging, format_name: str, scales: str) -> int:
    """Memory of the whole cache, whole pages and their scales, without spare ones."""
    of_tensors = heads.stored_tensors * SCALE_BYTES if scales == "tensor" else 0
    return pages.page_count * page_bytes(heads, pages.page_size, format_name, scales) + of_tensors


def page_bytes(heads: Heads, page_size: int, format_name: str, scales: str) -> int:
    """Memory of one page, with the scales of its tokens."""
    of_token = heads.stored_columns * NUMBER_BYTES[format_name]
    if scales == "token":
        of_token += heads.stored_tensors * SCALE_BYTES
    return page_size * heads.kv_heads * of_token


def spare_bytes(heads: Heads, pages: Pages | Paging, format_name: str, scales: str) -> int:
    """Memory that no step has to read: the spare page, and what a table of equal rows has beside entries for a page."""
    entries = len(pages.lengths) * (max(pages.counts) + SPARE_ENTRIES) - pages.entries
    return SPARE_PAGES * page_bytes(heads, pages.page_size, format_name, scales) + entries * ENTRY_BYTES
