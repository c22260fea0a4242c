"""Which tile of queries a program takes, and which keys that tile sees; for Triton and Gluon alike.

A query ``i`` sees the keys ``j`` with ``first <= j - i <= last``; ``LEFT`` and ``RIGHT`` say which of the two bounds there is.
"""

import triton
import triton.language as tl

VARIED = ("chunk", "first", "last")  # arguments that are compiled into nothing, whatever their value

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def tile_of(number, tiles, heads, chunk, RIGHT: tl.constexpr):
    """Tile of queries and head (over all sequences) of a program.

    Heads are taken ``chunk`` at a time: their keys and values stay in the cache while every tile of theirs passes.  Where late
    queries see more keys they come first, so that the short tiles fill the device's last turn.
    """
    chunk_tiles = chunk * tiles
    first_head = number // chunk_tiles * chunk
    width = min(chunk, heads - first_head)
    within = number % chunk_tiles
    tile = within // width
    if RIGHT:
        tile = tiles - 1 - tile
    return tile, first_head + within % width


@triton.jit
def share_of(program, programs, total):
    """How many of ``total`` tiles a program goes through: turn by turn one each, every other turn in reverse.

    Tiles get shorter in the order of their numbers, so that who has the longest of one turn has the shortest of the next.
    """
    whole = total // programs
    left = total - whole * programs
    return whole + (number_of(whole, program, programs) - whole * programs < left).to(tl.int32)


@triton.jit
def number_of(turn, program, programs):
    """The tile that a program takes in a turn."""
    return turn * programs + tl.where(turn % 2 == 1, programs - 1 - program, program)


@triton.jit
def keys_of(row, first, last, kv_len, ROWS: tl.constexpr, BLOCK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """Keys that some of ``ROWS`` queries from ``row`` on see, and those that all of them see, in whole blocks.

    Returns ``begin, whole_begin, whole_end, end``: blocks start at multiples of ``BLOCK``, and only those from ``whole_begin``
    to before ``whole_end`` need no mask.
    """
    begin = 0
    end = kv_len
    whole_end = kv_len // BLOCK * BLOCK
    if RIGHT:
        end = min(end, row + ROWS + last)
        whole_end = min(whole_end, max(0, row + last + 1) // BLOCK * BLOCK)
    whole_begin = 0
    if LEFT:
        begin = max(0, row + first) // BLOCK * BLOCK
        whole_begin = tl.cdiv(max(0, row + ROWS - 1 + first), BLOCK) * BLOCK
        whole_end = max(whole_end, begin)
        whole_begin = min(whole_begin, whole_end)
    return begin, whole_begin, whole_end, max(begin, end)
