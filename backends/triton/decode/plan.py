"""Which tokens of which sequence a program goes through: split so that all that run at once end together."""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# In tokens of one head's keys and values: what a program waits for before its first, and what another split costs the one that
# puts them together.  Reckoned, not measured: 5 us and 0.5 us where a thousand programs share 4.6 TB/s of Llama's bf16.
START_COST, MERGE_COST = 48, 4
FEWEST_TOKENS = 128  # of a split
MOST_TURNS = 6  # of the programs that run at once: more of them end no sooner
ITEM_NUMBERS = 8  # int32 an item takes on the device: the six of ``Item``, and two for its alignment


class Item(NamedTuple):
    """Tokens from ``begin`` to before ``end`` of a sequence of ``kv_len``: split ``split`` of ``splits``."""

    sequence: int
    begin: int
    end: int
    split: int
    splits: int
    kv_len: int


class Plan(NamedTuple):
    """The items in the order in which programs take them, each for every KV head."""

    items: tuple[Item, ...]
    most_splits: int

    @property
    def numbers(self) -> list[list[int]]:
        """What the kernels read."""
        return [[*item, *[0] * (ITEM_NUMBERS - len(item))] for item in self.items]


def planned(lengths: Sequence[int], block: int, heads: int, slots: int) -> Plan:
    """The plan by which the last of ``slots`` programs at once ends first, by a count of tokens.

    ``lengths`` are of the sequences, in tokens; ``heads`` is how many programs each item has; splits are whole blocks but at a
    sequence's end.  The same everywhere: a plan depends on nothing but these.
    """
    whole = _split(lengths, block, max(*lengths, 1))
    most = max(MOST_TURNS * slots, 2 * len(whole.items) * heads)
    plans = [whole]
    for limit in _limits(max(lengths), block):
        plan = _split(lengths, block, limit)
        if len(plan.items) * heads > most:
            break
        plans.append(plan)
    return min(plans, key=lambda plan: _longest(plan, heads, slots))


def _limits(longest: int, block: int) -> Iterator[int]:
    """Most tokens of a split, from halves of the longest sequence to the shortest that are worth a program."""
    fewest = max(block, FEWEST_TOKENS)
    last = longest
    pieces = 2
    while last > fewest:
        limit = max(fewest, -(-longest // pieces // block) * block)
        if limit < last:
            yield limit
            last = limit
        pieces += 1 if pieces < 16 else pieces // 8


def _split(lengths: Sequence[int], block: int, limit: int) -> Plan:
    """Each sequence in as many equal splits as none is longer than ``limit``, give or take a block."""
    items = [item for sequence, length in enumerate(lengths) for item in _of_sequence(sequence, length, block, limit)]
    # Longest first, so that short ones fill the end; the same part of several sequences together, for prefixes they share.
    items.sort(key=lambda item: (item.begin - item.end, item.split, item.sequence))
    return Plan(tuple(items), max(item.splits for item in items))


def _of_sequence(sequence: int, length: int, block: int, limit: int) -> Iterator[Item]:
    blocks = -(-length // block)
    splits = max(1, min(blocks, -(-length // limit)))
    for split in range(splits):
        begin, end = (min(length, blocks * place // splits * block) for place in (split, split + 1))
        yield Item(sequence, begin, end, split, splits, length)


def _longest(plan: Plan, heads: int, slots: int) -> int:
    """When the last program ends: each slot takes the next item as it gets free."""
    ends = [0] * min(slots, len(plan.items) * heads)
    for item in plan.items:
        merge = MERGE_COST * item.splits if item.splits > 1 else 0
        for _ in range(heads):
            heapq.heapreplace(ends, ends[0] + START_COST + item.end - item.begin + merge)
    return max(ends)
