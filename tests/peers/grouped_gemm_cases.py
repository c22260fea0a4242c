"""The products of ``grouped_gemm``, and what their sides took."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from suite.jobs.grouped_gemm import GroupedGemmSettings
from suite.plan import plan
from suite.planned import PlannedCase
from suite.settings import MeasureSettings, RunConfig
from tests.peers.bench import COLD, Bench, Measured, batches_s

FORMATS = ("bf16", "fp8_e4m3")
DEEPSEEK = {"groups": ["4x8192", "8x4096"], "shapes": ["6144x7168", "7168x3072", "4096x4096", "4096x2048"]}
EXPERTS = "256/8x7168x2048"
SMALL = {"groups": ["3x16", "4x8"], "shapes": ["64x128"]}
SMALL_EXPERTS = "8/2x128x64"


class Product(NamedTuple):
    """One grouped product, as settings of the job that plan nothing else."""

    name: str
    settings: GroupedGemmSettings

    def sides(self, bench: Bench, implementations: Sequence[str]) -> list[PlannedCase]:
        """Cold, by each implementation."""
        job = replace(self.settings, implementations=list(implementations))
        config = RunConfig(jobs={job.name: job}, measure=replace(MeasureSettings(), regimes=[COLD.label]), oversize="record")
        return list(plan(config, [bench.slot], calibrated={0}))


def products(tiny: bool = False) -> Iterator[Product]:
    """Format by format: even groups, then the experts of a prefill of 4096 tokens and of a step of 64."""
    sizes, experts = (SMALL, SMALL_EXPERTS) if tiny else (DEEPSEEK, EXPERTS)
    for format_name in FORMATS:
        for groups in sizes["groups"]:
            for shape in sizes["shapes"]:
                even = GroupedGemmSettings(formats=[format_name], groups=[groups], shapes=[shape])
                yield Product(f"{format_name} {groups}, {shape}", even)
    for format_name in FORMATS:
        for tokens, spread in ((4096, "skewed"), (64, "balanced")):
            for name in ("gate_up", "down"):
                routed = GroupedGemmSettings(
                    formats=[format_name],
                    groups=[],
                    shapes=[],
                    moe=[experts],
                    tokens=[tokens // 64 if tiny else tokens],
                    products=[name],
                    spreads=[spread],
                )
                yield Product(f"{format_name} {experts}, {routed.tokens[0]} tokens {spread}, {name}", routed)


def square(side: int, scaling: str) -> Product:
    """One group of fp8."""
    settings = GroupedGemmSettings(formats=["fp8_e4m3"], groups=[f"1x{side}"], shapes=[f"{side}x{side}"], scaling=scaling)
    return Product(f"fp8_e4m3 {scaling}, {side}x{side}x{side}", settings)


class Result(NamedTuple):
    """A product by each side that was measured, or why it was not begun."""

    product: Product
    sides: Mapping[str, Measured] = {}
    absent: str = ""

    def flop_s(self, side: str) -> float | None:
        measured = self.sides.get(side)
        return measured.summary.flop_s if measured is not None and measured.summary is not None else None

    def ratios(self, ours: str, theirs: str) -> list[float]:
        """Their time over ours, round by round; empty where a side has none."""
        medians = [self._medians_s(side) for side in (theirs, ours)]
        return [one / other for one, other in zip(*medians, strict=True)] if all(medians) else []

    def _medians_s(self, side: str) -> list[float]:
        measured = self.sides.get(side)
        if measured is None or measured.summary is None or measured.measurement is None or measured.measurement.samples is None:
            return []
        return [median(batch) for batch in batches_s(measured.measurement.samples)]
