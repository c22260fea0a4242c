"""Cases of about a quarter of a gigabyte, and draws of 2^26 numbers, whose memory is looked at from outside the process."""

from typing import NamedTuple

from suite.case import Case, Regime, Workload, items
from tests.backends.cases import gemm_case


class Draw(NamedTuple):
    """Numbers to be drawn."""

    dtype: str
    distribution: str
    shape: tuple[int, int] = (1 << 13, 1 << 13)


def _calibration(op: str, size_bytes: int) -> Case:
    workload = Workload("calibration", "fp32", items({"op": op, "bytes": size_bytes}))
    return Case(workload, "library", "xla", Regime("cold", "sustained", "device"))


_FORMATS = ("fp32", "bf16", "fp8_e4m3", "int8")
CASES = {
    **{op: _calibration(op, 1 << 28) for op in ("read", "copy", "triad")},
    **{name: gemm_case(name, 64, 1 << 13, 1 << 13, backend="xla") for name in _FORMATS},
}
SMALL = {
    **{op: _calibration(op, 1 << 24) for op in ("read", "copy", "triad")},
    **{name: gemm_case(name, 64, 1 << 10, 1 << 10, backend="xla") for name in _FORMATS},
}
DRAWS = {
    f"{dtype} {distribution}": Draw(dtype, distribution)
    for dtype, distribution in (
        ("float32", "normal"),
        ("float32", "outliers"),
        ("float32", "integer"),
        ("bfloat16", "normal"),
        ("bfloat16", "outliers"),
        ("float8_e4m3fn", "normal"),
        ("int8", "normal"),
    )
}
