"""Seeds of their own for every input set and operand."""

import hashlib


def mixed_seed(seed: int, *streams: int) -> int:
    """A 63-bit seed of its own for each (seed, input set, operand)."""
    text = "/".join(str(number) for number in (seed, *streams))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
