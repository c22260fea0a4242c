"""Grouped matrix products: groups of rows of A, each times a B of its own, as the experts of a mixture are computed."""

from suite.jobs.grouped_gemm.formats import FORMATS
from suite.jobs.grouped_gemm.job import IMPLEMENTATIONS, GroupedGemmJob, GroupedGemmSettings
from suite.jobs.grouped_gemm.sizes import Sizes, sizes_of

__all__ = [
    "FORMATS",
    "IMPLEMENTATIONS",
    "GroupedGemmJob",
    "GroupedGemmSettings",
    "Sizes",
    "sizes_of",
]
