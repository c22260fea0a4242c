"""What NCCL and RCCL say about themselves with ``NCCL_DEBUG=INFO``: version, choices, cost matrix, graphs."""
