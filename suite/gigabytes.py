"""Memory as people compare it, in units of 10^9 bytes."""


def gigabytes(size_bytes: float, digits: int = 3) -> str:
    """``0.0312 GB``, ``4.29 GB``, ``10,995 GB``: as many digits as asked for, and never fewer than stand before the point."""
    size = size_bytes / 1e9
    return f"{size:,.0f} GB" if size >= 10 ** (digits - 1) else f"{size:.{digits}g} GB"
