"""Attention of roofbench's own in Triton: prompts, gradients and paged decoding, measured beside the vendors' libraries."""
