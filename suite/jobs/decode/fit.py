"""Which sizes of a decoding step go together: whole pages are shared, and a sequence has the tokens that it decodes."""

from typing import NamedTuple

from suite.jobs.decode.sizes import Sizes


class Misfit(NamedTuple):
    """``what`` was asked for, ``why`` there is no such step, and what may be asked for in its place."""

    what: str
    why: str
    instead: str


def misfit(sizes: Sizes) -> Misfit | None:
    """Why there is no step of these sizes; ``None`` where there is one."""
    shared, page, shortest = sizes.shared_prefix, sizes.page_size, min(sizes.tokens)
    sequences = f"kv_lens={sizes.kv_len}, lengths={sizes.lengths}"
    whole = min(-(-shared // page), (shortest - 1) // page) * page
    if shared % page:
        what = f"shared_prefixes={shared} in page_sizes={page} of {sequences}"
        return Misfit(what, "whole pages are shared, and no sequence is all shared", f"shared_prefixes=[{whole}]")
    if shared >= shortest:
        what = f"shared_prefixes={shared} of {sequences}"
        return Misfit(what, "some sequence is no longer than that", f"shared_prefixes=[{whole}], or longer kv_lens")
    if sizes.q_len > shortest:
        what = f"q_lens={sizes.q_len} of {sequences}"
        return Misfit(what, "some sequence has fewer tokens", f"q_lens=[{shortest}], or longer kv_lens")
    return None
