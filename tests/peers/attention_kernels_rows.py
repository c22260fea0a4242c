"""Rows of ``attention_kernels``: a way's figures, and the means against their limits."""

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

from tests.peers.attention_kernels_builds import GRADIENTS, HOPPER, PORTABLE
from tests.peers.attention_kernels_cases import Case
from tests.peers.record import Row, Verdict
from tests.peers.rotation import Timed
from tests.peers.table import NOTHING, number


def row_of(case: Case, timed: Timed, bases: Sequence[float | None]) -> Row:
    flops = case.problem.backward_flops if case.backward else case.problem.forward_flops
    time_s = timed.median_s
    if timed.way.name.startswith("part:"):
        figures = {"times_s": timed.times_s, "time_s": time_s}
        return Row(f"{case.name}: {timed.way.name}", (number(time_s, 1e6), *[NOTHING] * 3), Verdict.INFO, figures)
    ratios = [f"{base / time_s:.3f}" if base else NOTHING for base in bases]
    cells = (number(time_s, 1e6), number(flops / time_s, 1e-12), *ratios)
    figures = {"times_s": timed.times_s, "time_s": time_s, "flop_s": flops / time_s}
    return Row(f"{case.name}: {timed.way.name}", cells, Verdict.INFO, figures)


LIMITS = {
    f"forward {HOPPER}": (1.05, 0.97),
    f"forward {PORTABLE}": (0.90, None),
    f"backward {HOPPER}": (0.90, None),
    f"backward {GRADIENTS}": (0.65, None),
}


def conclusions(ratios: dict[str, list[tuple[float, float]]]) -> Iterator[Row]:
    """Geometric means over the cases of the best of ours, against each peer's limit."""
    for name, found in ratios.items():
        means = [geometric_mean([pair[place] for pair in found]) for place in (0, 1)]
        limits = LIMITS[name]
        passed = all(limit is None or mean >= limit or mean != mean for mean, limit in zip(means, limits, strict=True))
        cells = (NOTHING, NOTHING, *(f"{mean:.3f}" if mean == mean else NOTHING for mean in means))
        stated = ", ".join(str(limit) for limit in limits if limit)
        note = f"geometric mean over {len(found)} cases; limits {stated}"
        verdict = Verdict.PASS if passed else Verdict.FAIL
        yield Row(f"= {name}", cells, verdict, {"means": means, "ratios": found, "limits": limits}, note)
