"""The cells of a table as numbers in SI units, and what they say of each other."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from suite.case import Items, items
from suite.collectives.number_format import format_of_tests
from suite.importers.rows import Checked, CollectiveRow, IterationTimes

US, GB, PERCENT = 1e-6, 1e9, 1e-2
_MS_PER_US = 1000
_DESCRIBING = ("size", "count", "type", "redop", "root")
# What nccl-tests up to 2.10 take as the largest difference of a right result.
_LARGEST_DELTA = {"fp64": 1e-12, "fp32": 1e-5, "fp16": 1e-2, "bf16": 1e-2}


class Judged(NamedTuple):
    """What an error cell says."""

    wrong: int | None
    error_delta: float | None
    checked: Checked


def row_of(described: Mapping[str, str], half: Mapping[str, str], in_place: bool) -> CollectiveRow:
    """A row without operation and ranks, which the table alone does not say; times of milliseconds are told by their rate."""
    fmt = format_of_tests(described["type"])
    judged = judge(half, fmt)
    size = int(described["size"])
    time, algbw = _number(half.get("time", half.get("cputime", "N/A"))), _number(half["algbw"])
    unit = US * _MS_PER_US if in_milliseconds(size, time, algbw) else US
    root = described.get("root")
    return CollectiveRow(
        op=None,
        format=fmt,
        size_bytes=size,
        count=int(described["count"]),
        redop=described.get("redop"),
        root=int(root) if root else None,
        in_place=in_place,
        ranks=None,
        time_s=None if time is None else time * unit,
        algbw_bytes_s=_scaled(algbw, GB),
        busbw_bytes_s=_scaled(_number(half["busbw"]), GB),
        wrong=judged.wrong,
        error_delta=judged.error_delta,
        checked=judged.checked,
        iterations=_iterations(half),
        extra=_extra(described, half),
    )


def judge(half: Mapping[str, str], fmt: str) -> Judged:
    """``#wrong`` counts elements; ``error`` is a difference, marked with ``*`` where the tool took it for too large."""
    text = half.get("#wrong", half.get("error", "N/A"))
    value = _number(text.rstrip("*"))
    if value is None:
        return Judged(None, None, Checked.UNCHECKED)
    if "#wrong" in half:
        return Judged(int(value), None, Checked.BAD if value else Checked.GOOD)
    bad = text.endswith("*") or value > _LARGEST_DELTA.get(fmt, 0.0)
    return Judged(None, value, Checked.BAD if bad else Checked.GOOD)


def in_milliseconds(size: int, time: float | None, algbw: float | None) -> bool:
    """Whether size over time gives the printed rate only if the time is in milliseconds, as it was in 2018."""
    if not time or not algbw or algbw < 1:
        return False
    return abs(size / (time * US * _MS_PER_US) / (algbw * GB) - 1) < 0.01 + 0.5 / (time * 1000)


def rate_error(row: CollectiveRow) -> float:
    """How far size over time is from the printed rate, relatively, beyond what rounding explains; 0 where it cannot be told."""
    if not row.time_s or not row.algbw_bytes_s or row.algbw_bytes_s < GB:
        return 0.0
    rounding = 0.005 * GB / row.algbw_bytes_s + 0.005 * US / row.time_s
    return max(0.0, abs(row.size_bytes / row.time_s / row.algbw_bytes_s - 1) - rounding - 0.01)


def _iterations(half: Mapping[str, str]) -> IterationTimes | None:
    found = [_number(half.get(name, "N/A")) for name in ("i_min", "i_max", "i_p99", "i_cv%")]
    least, most, p99, cv = found
    if least is None or most is None or p99 is None or cv is None:
        return None
    return IterationTimes(least * US, most * US, p99 * US, cv * PERCENT)


def _extra(described: Mapping[str, str], half: Mapping[str, str]) -> Items:
    kept = {name: value for name, value in described.items() if name not in _DESCRIBING}
    kept |= {name: half[name] for name in ("hipevt",) if name in half}
    return items(kept | ({"time": "cputime"} if "cputime" in half else {}))


def _number(text: str) -> float | None:
    """``None`` for ``N/A`` and for what is not finite: nothing was measured there."""
    if text == "N/A":
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit
