"""Roofbench's own ways of ``attention_kernels``: forward, backward, and the parts of backward."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from suite.worker.serve import caught, describe
from tests.peers.attention_kernels_builds import GRADIENTS, HOPPER, HOPPER_GRADIENTS, PORTABLE, Build, calls_of
from tests.peers.attention_kernels_cases import Case
from tests.peers.attention_kernels_inputs import Inputs, Tensors
from tests.peers.rotation import Way

PARTS = ("preparation", "keys", "queries")


def ours(case: Case, device: Any) -> Iterator[tuple[str, Build, Callable[[Inputs], Way]]]:
    """The name of each way of ours, what it launches and how it is made."""
    for build in case.builds:
        if build.kind == HOPPER_GRADIENTS:
            name = f"{HOPPER_GRADIENTS} {build.config.label}"
            yield name, build, partial(_backward_ways, name, build, device)
        elif case.backward:
            labels = [each.label for each in build.config]
            name = f"{GRADIENTS} keys {labels[0]}; queries {labels[1]}"
            yield name, build, partial(_backward_ways, name, build, device)
        else:
            name = f"{build.kind} {build.config.label}"
            yield name, build, partial(ready, name, build, device=device)


def launched_once(build: Build, device: Any) -> str:
    """Why a build cannot be launched, or nothing: for a process of its own, as it may never end."""

    def launch() -> None:
        inputs = Inputs(build.problem)
        if build.kind in (HOPPER, PORTABLE):
            ready("", build, inputs, device).launches[0]()
        else:
            for run_ in backward_runs(build, device, inputs)[0][0]:
                run_()
        torch.cuda.synchronize()

    failure = caught(launch, describe)
    return failure.reason if failure else ""


def ready(name: str, build: Build, inputs: Inputs, device: Any) -> Way:
    """A forward of ours, loaded; it returns the output."""
    from backends.triton.gemm.launch import load

    def launch(run: Callable[[], Any]) -> tuple[torch.Tensor, torch.Tensor]:
        run()
        return inputs.o, inputs.lse

    calls = [calls_of(build, each, inputs.o, inputs.lse, inputs.scales, device)[0] for each in inputs.copies]
    return Way(name, [partial(launch, load(call).launch) for call in calls])


def _backward_ways(name: str, build: Build, device: Any, inputs: Inputs) -> Way:
    """Ours, after a forward of ours; it returns the gradients."""
    runs, gradients = backward_runs(build, device, inputs)

    def launch(each: Sequence[Callable[[], Any]]) -> tuple[torch.Tensor, ...]:
        for run_ in each:
            run_()
        return gradients["dq"], gradients["dk"], gradients["dv"]

    return Way(name, [partial(launch, each) for each in runs])


def backward_runs(build: Build, device: Any, inputs: Inputs) -> tuple[list[list[Callable[[], Any]]], Tensors]:
    """The three launches of each copy, on the output of a forward pass, and what they write."""
    from backends.triton.attention.config import Config
    from backends.triton.gemm.launch import load

    gradients = {f"d{key}": torch.full_like(inputs.copies[0][key], float("nan")) for key in "qkv"}
    gradients["delta"] = torch.full_like(inputs.lse, float("nan"))
    forward = Build(PORTABLE, build.problem, Config(128, 64, 8, 2))
    load(calls_of(forward, inputs.copies[0], inputs.o, inputs.lse, inputs.scales, device)[0]).launch()  # copies are equal
    calls = [
        calls_of(build, {**tensors, **gradients}, inputs.o, inputs.lse, inputs.scales, device) for tensors in inputs.copies
    ]
    return [[load(call).launch for call in each] for each in calls], gradients
