"""Roofbench's own attention kernels beside torch's and flash-attn-4's: cold, in turns, on copies that rotate.

    python -m tests.peers.attention_kernels --out DIR --seconds 230

A row is one way to compute one attention: its time, its rate and the ratios to cuDNN and to flash-attn-4.  Every way is
checked against float64 on tiles and against cuDNN everywhere.  Rows are printed as they come, the most important cases first;
kernels compile in processes of their own, on all but two cores, ahead of the case that needs them, and are launched once in
another, which is killed where one never ends.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch

from suite.worker.serve import caught, describe
from tests.peers.attention_kernels_builds import GRADIENTS, HOPPER, PORTABLE, Build, compiled
from tests.peers.attention_kernels_cases import DIM, Case, cases
from tests.peers.attention_kernels_inputs import Inputs
from tests.peers.attention_kernels_ours import PARTS, backward_runs, launched_once, ours
from tests.peers.attention_kernels_peers import CUDNN, FLASH4
from tests.peers.attention_kernels_rows import conclusions, row_of
from tests.peers.comparisons import Comparison, Shown, one_by_one
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.rotation import Timed, Way, aside, heat, take_turns, timed_here
from tests.peers.table import NOTHING, number
from tests.peers.trial import Trial

ROUNDS = 7
HEAT_S = 0.7
SETTLE_S = 0.05
RIGHT = {"bf16": 0.006, "fp16": 0.002, "fp8_e4m3": 0.06}  # of the norm, for outputs: rounding P and O to the format
RIGHT_GRADIENT = 0.015
APART = 0.006  # of the norm, from cuDNN's output everywhere
FEWEST_SECONDS = 8.0


def run(session: Session) -> None:
    if not torch.cuda.is_available() or session.tiny:
        session.record.add(PART.without("all", "these kernels need a CUDA device and their full sizes", Verdict.ABSENT))
        return
    from backends.triton.gemm.device import of_torch

    device = of_torch(0)
    ratios: dict[str, list[tuple[float, float]]] = {}
    shown = Shown(session, PART, width=70)
    with Trial() as trial:
        todo = [
            Comparison(
                {build.key: partial(compiled, build, device) for build in case.builds},
                partial(measured, case, device, ratios, trial),
            )
            for case in cases()
        ]
        one_by_one(shown, todo, FEWEST_SECONDS)
    for row in conclusions(ratios):
        shown.show(row)


def measured(case: Case, device: Any, ratios: dict[str, list[tuple[float, float]]], trial: Trial) -> list[Row]:
    """Every way of a case: checked, then timed in turns on a stream of its own; the fastest first."""
    with torch.cuda.stream(aside()):
        return list(_measured(case, device, ratios, trial))


def _measured(case: Case, device: Any, ratios: dict[str, list[tuple[float, float]]], trial: Trial) -> Iterator[Row]:
    runs: list[Build] = []
    ways = list(case.theirs)
    lost: list[Row] = []
    for name, build, make in ours(case, device):
        reason = trial.reason(partial(launched_once, build, device))
        if reason:
            lost.append(PART.without(f"{case.name}: {name}", reason, Verdict.FAILED))
        else:
            runs.append(build)
            ways.append((name, make))
    inputs = Inputs(case.problem)
    found: list[Timed] = []
    expected: list[torch.Tensor] = []
    for name, make in ways:
        if name == FLASH4 and not find_spec("flash_attn"):
            continue
        timed = made(case, inputs, make, expected)
        if isinstance(timed, Timed):
            found.append(timed)
        else:
            lost.append(PART.without(f"{case.name}: {name}", timed, Verdict.FAILED))
    expected.clear()
    if case.backward:
        found += _parts(runs, device, inputs)
    if found:
        heat(found[0], HEAT_S)
    take_turns(found, ROUNDS, SETTLE_S)
    found.sort(key=lambda each: each.median_s)
    bases = [next((each.median_s for each in found if each.way.name == peer), None) for peer in (CUDNN, FLASH4)]
    for each in found:
        yield row_of(case, each, bases)
    yield from lost
    if case.backward:
        yield _sum_of_parts(case, found, bases)
    for kind in (HOPPER, PORTABLE, GRADIENTS):
        best = next((each.median_s for each in found if each.way.name.startswith(kind)), None)
        if best is not None and bases[0] is not None and case.problem.qk_dim == DIM and case.problem.group == 1:
            flash4_ratio = bases[1] / best if bases[1] else float("nan")
            ratios.setdefault(("backward " if case.backward else "forward ") + kind, []).append((bases[0] / best, flash4_ratio))


def _parts(builds: Sequence[Build], device: Any, inputs: Inputs) -> list[Timed]:
    """The launches of every backward pass of ours one by one, each way to cut one once."""
    found: dict[str, Timed] = {}

    def prepare() -> None:
        for build in builds:
            if build.kind != GRADIENTS:
                continue
            runs, _ = backward_runs(build, device, inputs)
            for place, (part, label) in enumerate(zip(PARTS, ("", *(each.label for each in build.config)), strict=True)):
                name = f"part: {part} {label}".strip()
                if name not in found:
                    found[name] = timed_here(Way(name, [each[place] for each in runs]))

    caught(prepare, describe)  # what does not run has said so as a whole
    return list(found.values())


def _sum_of_parts(case: Case, found: Sequence[Timed], bases: Sequence[float | None]) -> Row:
    """What the fastest of each part would take together."""
    best = [next((each for each in found if each.way.name.startswith(f"part: {part}")), None) for part in PARTS]
    if None in best:
        return PART.without(f"{case.name}: best parts", "a part is missing", Verdict.ABSENT)
    time_s = sum(each.median_s for each in best if each)
    ratios = [f"{base / time_s:.3f}" if base else NOTHING for base in bases]
    cells = (number(time_s, 1e6), number(case.problem.backward_flops / time_s, 1e-12), *ratios)
    return Row(f"{case.name}: best parts together", cells, Verdict.INFO, {"time_s": time_s})


def made(case: Case, inputs: Inputs, make: Callable[[Inputs], Way], expected: list[torch.Tensor]) -> Timed | str:
    """A way that is ready to be timed and computes the case, or why there is none; ``expected`` is the first one's output."""
    found: list[Timed] = []
    said: list[str] = []

    def prepare() -> None:
        inputs.o.fill_(float("nan"))
        inputs.lse.fill_(float("nan"))
        way = make(inputs)
        output = way.launches[0]()
        torch.cuda.synchronize()
        said.append(_wrong(case, inputs, output, expected))
        if not said[0]:
            found.append(timed_here(way))

    failure = caught(prepare, describe)
    if failure:
        return failure.reason
    return found[0] if found else said[0]


def _wrong(case: Case, inputs: Inputs, output: Any, expected: list[torch.Tensor]) -> str:
    """What is wrong with a result; empty where nothing is."""
    if case.backward:
        distance = inputs.gradient_distance(output)
        return "" if distance <= RIGHT_GRADIENT else f"its gradients are {distance:.3g} of the norm away"
    out, lse = output if isinstance(output, tuple) else (output, None)
    distance = inputs.distance(out, lse)
    if not distance <= RIGHT[case.problem.format]:
        return f"its result is {distance:.3g} of the norm away on tiles"
    if not expected:
        expected.append(out.clone())
        return ""
    distance = float((out.float() - expected[0].float()).norm() / expected[0].float().norm())
    limit = APART if case.problem.format != "fp8_e4m3" else RIGHT["fp8_e4m3"]
    return "" if distance <= limit else f"its result is {distance:.3g} of the norm away from the first one's"


PART = Part(
    name="attention_kernels",
    shows="roofbench's own attention kernels beside cuDNN's and flash-attn-4's, sustained, in turns",
    headings=("us", "TFLOP/s", "over cuDNN", "over fa4"),
    run=run,
    foot=("The ratios are the peer's time over that of the row, each the median of the rounds.",),
)

if __name__ == "__main__":
    run_as_script(PART)
