"""Low-precision number formats: rounding to them, what they store, and how far off they can be."""
