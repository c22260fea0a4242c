"""Decoding over a paged KV cache: lengths, page tables and bytes, counted without a framework."""
