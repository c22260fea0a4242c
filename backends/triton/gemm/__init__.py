"""Matrix products of roofbench's own in Triton, measured beside the vendors' libraries."""
