"""Matrix products on quantised operands: weights converted on their way to the multiplier, and scales applied to sums."""
