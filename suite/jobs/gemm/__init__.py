"""Matrix products: C[m, n] = A[m, k] B[k, n], in every format a device multiplies in."""

from suite.jobs.gemm.epilogue import EPILOGUES
from suite.jobs.gemm.formats import FORMATS
from suite.jobs.gemm.job import DISTRIBUTIONS, IMPLEMENTATIONS, LAYOUTS, GemmJob, GemmSettings

__all__ = ["DISTRIBUTIONS", "EPILOGUES", "FORMATS", "IMPLEMENTATIONS", "LAYOUTS", "GemmJob", "GemmSettings"]
