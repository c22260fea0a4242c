"""Roofbench's own paged decoding beside torch's on contiguous keys and flashinfer's: cold, in turns, with the read bandwidth.

    python -m tests.peers.decode_kernels --out DIR --seconds 200

A row is one way to compute one step: its time, the bytes that the step has to move a second, their share of what a plain kernel
reads of 4 GiB in the same turns, and the ratio to cuDNN on contiguous keys.  Every way is checked against float64 on whole
sequences; ``error`` is the distance from the result without rounding the cache to its format.  Rows are printed as they come,
the most important cases first; kernels compile in processes of their own, ahead of the case that needs them.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch.nn.attention import SDPBackend

from suite.worker.serve import caught, describe
from tests.peers.comparisons import Comparison, Shown, one_by_one
from tests.peers.decode_kernels_cases import Case, Group, groups
from tests.peers.decode_kernels_inputs import DEVICE, Inputs
from tests.peers.decode_kernels_ours import compilations, configs_of, ours
from tests.peers.decode_kernels_peers import CUDNN, FLASH2, FLASHINFER, contiguous, flashinfer, sdpa
from tests.peers.decode_kernels_rows import READ, READ_BYTES, Made, Result, conclusions, read_row, row_of
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.rotation import Timed, Way, aside, heat, take_turns, timed_here

ROUNDS = 7
HEAT_S = 0.5
FEWEST_SECONDS = 10.0


def run(session: Session) -> None:
    if not torch.cuda.is_available() or session.tiny:
        session.record.add(PART.without("all", "these kernels need a CUDA device and their full sizes", Verdict.ABSENT))
        return
    from backends.triton.gemm.device import of_torch

    device = of_torch(0)
    best: dict[tuple[str, str], Result] = {}
    shown = Shown(session, PART, width=100)
    todo = [Comparison(compilations(group, device), partial(measured, group, device, best)) for group in groups()]
    one_by_one(shown, todo, FEWEST_SECONDS)
    for row in conclusions(best):
        shown.show(row)


def measured(group: Group, device: Any, best: dict[tuple[str, str], Result]) -> list[Row]:
    """Every way of a group: checked, then timed in turns on a stream of its own; rows case by case, the fastest first."""
    with torch.cuda.stream(aside()):
        return list(_measured(group, device, best))


def _measured(group: Group, device: Any, best: dict[tuple[str, str], Result]) -> Iterator[Row]:
    found, lost = [_read()], []
    for case in group.cases:
        inputs: list[Inputs] = []
        failure = caught(lambda case=case, inputs=inputs: inputs.append(Inputs(case)), describe)  # type: ignore[misc]
        if failure:
            lost.append(PART.without(f"{group.name}: {case.name}", failure.reason, Verdict.FAILED))
            continue
        for name, make in _ways(inputs[0], device):
            made = _made(case, inputs[0], make)
            if isinstance(made, Made):
                found.append(made)
            else:
                lost.append(PART.without(f"{group.name}: {case.name}: {name}", made, Verdict.FAILED))
    heat(found[0].timed, HEAT_S)
    take_turns([each.timed for each in found], ROUNDS)
    read_s = READ_BYTES / found[0].timed.median_s
    cudnn = next((each.timed.median_s for each in found if each.timed.way.name == CUDNN), None)
    yield read_row(group, found[0])
    for case in group.cases:
        for each in sorted((each for each in found if each.case is case), key=lambda each: each.timed.median_s):
            yield row_of(group, case, each, read_s, cudnn, best)
    yield from lost


def _read() -> Made:
    from backends.triton.read import row_sums

    matrix = torch.ones(READ_BYTES // 4 // 16384, 16384, device=DEVICE)
    sums = torch.empty(len(matrix), device=DEVICE)
    return Made(None, timed_here(Way(READ, [partial(row_sums, matrix, sums)])), READ_BYTES, 0.0)


def _ways(inputs: Inputs, device: Any) -> Iterator[tuple[str, Callable[[], Way]]]:
    case = inputs.case
    for config in configs_of(case, device):
        yield config.label, partial(ours, inputs, config, device)
    if case.theirs:
        copies = contiguous(inputs)
        yield CUDNN, partial(sdpa, CUDNN, SDPBackend.CUDNN_ATTENTION, inputs, copies)
        yield FLASH2, partial(sdpa, FLASH2, SDPBackend.FLASH_ATTENTION, inputs, copies)
        if find_spec("flashinfer"):
            yield FLASHINFER, partial(flashinfer, inputs)


def _made(case: Case, inputs: Inputs, make: Callable[[], Way]) -> Made | str:
    """A way that is ready to be timed and computes the case, or why there is none."""
    found: list[Timed] = []
    said: list[str] = []

    def prepare() -> None:
        inputs.o.fill_(float("nan"))
        inputs.lse.fill_(float("nan"))
        way = make()
        output = way.launches[0]()
        torch.cuda.synchronize()
        out, lse = output if isinstance(output, tuple) else (output, None)
        said.append(inputs.wrong(out, lse))
        if not said[0]:
            found.append(timed_here(way))

    failure = caught(prepare, describe)
    if failure:
        return failure.reason
    return Made(case, found[0], inputs.bytes, inputs.rounding) if found else said[0]


PART = Part(
    name="decode_kernels",
    shows="roofbench's own paged decoding beside cuDNN on contiguous keys and the read bandwidth, sustained, in turns",
    headings=("us", "GB/s", "of read", "over cuDNN", "error"),
    run=run,
    foot=("The ratio is cuDNN's time on contiguous bf16 keys over that of the row, each the median of the turns.",),
)

if __name__ == "__main__":
    run_as_script(PART)
