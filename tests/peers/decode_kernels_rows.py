"""Rows of ``decode_kernels``: a way's figures, the read beside them, and the best of ours against their limits."""

from collections.abc import Iterator
from typing import NamedTuple

from tests.peers.decode_kernels_cases import Case, Group
from tests.peers.decode_kernels_peers import CUDNN, FLASH2, FLASHINFER
from tests.peers.record import Row, Verdict
from tests.peers.rotation import Timed
from tests.peers.table import NOTHING, number

READ, READ_BYTES = "read of 4 GiB", 4 << 30


class Result(NamedTuple):
    """One way of a case; ``time_s`` beside that of reading 4 GiB and of cuDNN in the same turns."""

    time_s: float
    bytes_s: float
    of_read: float
    over_cudnn: float | None


class Made(NamedTuple):
    """A way that is timed, and the case it is of; ``None`` for reading alone."""

    case: Case | None
    timed: Timed
    bytes: int
    rounding: float


def read_row(group: Group, made: Made) -> Row:
    time_s = made.timed.median_s
    cells = (number(time_s, 1e6), number(READ_BYTES / time_s, 1e-9), "1", NOTHING, NOTHING)
    return Row(f"{group.name}: {READ}", cells, Verdict.INFO, {"times_s": made.timed.times_s})


def row_of(
    group: Group, case: Case, made: Made, read_s: float, cudnn: float | None, best: dict[tuple[str, str], Result]
) -> Row:
    time_s, name = made.timed.median_s, made.timed.way.name
    result = Result(time_s, made.bytes / time_s, made.bytes / time_s / read_s, cudnn / time_s if cudnn else None)
    if name not in (CUDNN, FLASH2, FLASHINFER):
        best.setdefault((group.name, case.name), result)  # rows come fastest first
    cells = (
        number(time_s, 1e6),
        number(result.bytes_s, 1e-9),
        f"{result.of_read:.3f}",
        f"{result.over_cudnn:.3f}" if result.over_cudnn else NOTHING,
        f"{made.rounding:.1e}",
    )
    figures = {**result._asdict(), "times_s": made.timed.times_s, "bytes": made.bytes, "rounding": made.rounding}
    return Row(f"{group.name}: {case.name}: {name}", cells, Verdict.INFO, figures)


# Of the best of ours: least ratio to cuDNN, least share of the read bandwidth, least speed beside bf16's, by length and format.
LIMITS: dict[tuple[str, str], tuple[float | None, float | None, float | None]] = {
    ("32k", "bf16"): (0.97, None, None),
    ("32k", "fp8_e4m3"): (None, 0.88, None),
    ("32k", "int8"): (None, 0.86, None),
    ("4k", "bf16"): (0.95, None, None),
    ("4k", "fp8_e4m3"): (None, 0.68, 1.6),
    ("4k", "int8"): (None, 0.68, 1.5),
}


def conclusions(best: dict[tuple[str, str], Result]) -> Iterator[Row]:
    """The best of ours for each case that has a limit."""
    for (group, case), result in best.items():
        limits = next((each for (length, name), each in LIMITS.items() if _is(group, length, case, name)), None)
        if limits is None:
            continue
        wide = best.get((group, "bf16"))
        found = (result.over_cudnn, result.of_read, wide.time_s / result.time_s if wide else None)
        held = [(value, limit) for value, limit in zip(found, limits, strict=True) if limit is not None]
        passed = all(value is not None and value >= limit for value, limit in held)
        names = ("over cuDNN", "of the read bandwidth", "times as fast as bf16")
        note = ", ".join(
            f"{NOTHING if value is None else f'{value:.3f}'} {name} (limit {limit})"
            for name, value, limit in zip(names, found, limits, strict=True)
            if limit is not None
        )
        cells = (
            number(result.time_s, 1e6),
            number(result.bytes_s, 1e-9),
            f"{result.of_read:.3f}",
            f"{result.over_cudnn:.3f}" if result.over_cudnn else NOTHING,
            NOTHING,
        )
        figures = {"found": found, "limits": limits}
        yield Row(f"= {group}: {case}", cells, Verdict.PASS if passed else Verdict.FAIL, figures, note)


def _is(group: str, length: str, case: str, name: str) -> bool:
    return group == f"32/8 d128, page 16, batch 32, {length}" and case.partition(",")[0] == name
