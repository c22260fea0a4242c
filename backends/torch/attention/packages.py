"""The FlashAttention packages, where they are installed: ``flash-attn`` (FlashAttention-2) and ``flash-attn-4``."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import torch

from backends.torch.attention.operands import Buffers
from backends.torch.attention.way import Task, Way
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.attention import sizes_of


class Package(NamedTuple):
    """``distribution`` is what is installed, ``module`` what has ``flash_attn_func``; ``capability`` the least it runs on.

    ``on_amd`` says whether it is written for AMD's devices too.
    """

    distribution: str
    module: str
    capability: int
    on_amd: bool
    formats: tuple[str, ...] = ("bf16", "fp16")


PACKAGES = {
    "flash_attn": Package("flash-attn", "flash_attn", 80, on_amd=True),
    "flash_attn_4": Package("flash-attn-4", "flash_attn.cute", 90, on_amd=False),
}


def refuses(name: str, workload: Workload, target: Target) -> str | None:
    """What is not installed, and what is known not to be taken; the rest a package says itself."""
    package = PACKAGES[name]
    if target.kind != "cuda":
        return f"{name} runs on CUDA devices; the device here is a {target.kind.upper()}"
    if target.is_amd and not package.on_amd:
        return f"{name} is written for NVIDIA's devices, not for {target.architecture}"
    if installed(package) is None:
        return f"{name} is not installed; pip install {package.distribution}"
    if workload.format not in package.formats:
        return f"{name} takes {' and '.join(package.formats)}, not {workload.format}"
    if target.architecture.startswith("sm_") and int(target.architecture[3:]) < package.capability:
        return f"{name} needs sm_{package.capability}, the device here is {target.architecture}"
    if sizes_of(workload).is_backward:
        return f"the backward pass of {name} runs inside autograd only; library_*, triton and naive have one to launch"
    return None


def installed(package: Package) -> str | None:
    """Its version; ``None`` where it is not."""
    try:
        return version(package.distribution)
    except PackageNotFoundError:
        return None


def make(name: str, task: Task) -> Made:
    """Operands are given as views (batch, rows, heads, columns), as the packages want them."""
    package, sizes = PACKAGES[name], task.sizes
    attend: Callable[..., Any] = import_module(package.module).flash_attn_func
    windowed = {} if sizes.window is None else {"window_size": (sizes.window - 1, 0)}
    options = {"causal": sizes.mask != "full", **windowed}
    launches = [partial(_launch, attend, options, each) for each in task.buffers]
    facts = {"call": f"{package.module}.flash_attn_func", "library": f"{package.distribution} {installed(package)}"}
    return Made(launches, facts, returns=True)


def _launch(attend: Callable[..., Any], options: dict[str, Any], each: Buffers) -> tuple[torch.Tensor, ...]:
    q, k, v = (operand.data.transpose(1, 2) for operand in (each.q, each.k, each.v))
    found = attend(q, k, v, **options)
    output: torch.Tensor = found[0] if isinstance(found, tuple) else found
    return (output.transpose(1, 2),)


def way(name: str) -> Way:
    """The way through one of ``PACKAGES``."""
    return Way(partial(refuses, name), partial(make, name))
