"""Decoding over a paged KV cache: few queries a sequence against keys and values that are read once and never again."""
