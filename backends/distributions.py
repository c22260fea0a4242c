"""What the distributions of input data are, whatever framework draws them.

``normal`` and ``uniform`` (-1 to 1) need no constant; ``integer`` is -1, 0 and 1 in equal shares.
"""

CONSTANT = 0.5
# One value in 1024 stands far out, as in the activations of language models.  At 64 times, two that meet in a product would
# pass the largest number of fp16 in about one product of 8192 cubed in 90, and a right result would be called wrong.
OUTLIER_SHARE = 1 / 1024
OUTLIER_FACTOR = 32.0
INT8_MAX = 127

# Factors that carry a distribution to the int8 range; what passes it saturates.  At 4 sigma for normal data; outliers
# take the range and leave the body 2 steps wide, which is their point; -1, 0 and 1 stay what they are.
INT8_FACTOR = {"normal": 32.0, "uniform": 127.0, "integer": 1.0, "zeros": 1.0, "constant": 254.0, "outliers": 2.0}

# What a comparison with the reference cannot tell from a right product, because the wrong one has the same numbers.
# Elements that were never written, NaN and infinities show on any data: outputs are poisoned before a check.
BLIND_SPOTS = {
    "zeros": ("operands read in another layout", "results kept from other data", "a wrong scale", "terms left out"),
    "constant": ("operands read in another layout", "results kept from other data"),
}


def largest_product(distribution: str, *, integers: bool) -> float | None:
    """What one term adds to a product of constant data; ``None`` where terms cancel or are all zero."""
    if distribution != "constant":
        return None
    return float(INT8_MAX if integers else CONSTANT) ** 2


def past_the_largest(distribution: str, k: int, term: float | None, largest: float, holder: str = "the output") -> str | None:
    """Why no kernel can be right whose sums of ``k`` terms are above the ``largest`` number of what holds them; ``None`` where
    they are not, and where terms cancel (``term`` is ``None``).
    """
    if term is None or k * term <= largest:
        return None
    adds_up = f"{distribution} data over k={k} adds up to {k * term:.4g}"
    return f"{adds_up}, above the {largest:.4g} that {holder} holds; take a smaller k"
