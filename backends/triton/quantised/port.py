"""Cases of the gemm job by the kernels here: which can run, and how their launches are made."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from backends.triton.gemm import config as plain_config
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Load, Loaded, load
from backends.triton.gemm.made import COMPILER_CACHE, Made, tuning_facts
from backends.triton.gemm.port import BUDGET_S, NOT_OURS
from backends.triton.gemm.tuning import Candidate, Refused, search
from backends.triton.quantised import on_hopper, scaled_config, weight_config
from backends.triton.quantised.converted import plain_of
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.product import Product
from backends.triton.version import triton_version


def reason(problem: Problem, switches: Mapping[str, Any], device: Device, gluon: bool = False) -> str | None:
    """Why this product cannot run here, or with ``gluon`` by that kernel; ``None`` when it can."""
    for name, why in NOT_OURS.items():
        if switches.get(name):
            return why
    told = (on_hopper.reason(problem, device) if gluon else None) or problem.refused(device)
    if told is not None:
        return told
    if gluon or _has_room(problem, device):
        return None
    return f"no configuration of this kernel for {problem.format} has room in {device.shared_bytes} bytes of shared memory"


def _has_room(problem: Problem, device: Device) -> bool:
    if problem.is_weight_only:
        return any(True for _ in weight_config.offered(problem, device))
    if problem.format == "mxfp8_e4m3":
        return bool(plain_config.tiles(plain_of(problem), device))
    return bool(scaled_config.candidates(problem, device))


def make(product: Product, config: Any, loaded: Load = load, sets: int | None = None) -> Made:
    """Compile and load for the first ``sets`` input sets, or all; a launch allocates nothing.

    Raises ``Refused`` for a configuration that cannot compute the product.
    """
    unfit = product.unfit(config)
    if unfit is not None:
        raise Refused(unfit)
    began_s = time.perf_counter()
    ready = [[loaded(call) for call in calls] for calls in product.calls(config)[:sets]]
    compile_s = time.perf_counter() - began_s
    *passes, last = ready[0]
    before = {"passes": [each.facts.get("kernel", "") for each in passes]} if passes else {}
    cut = {"library": f"Triton {triton_version()}", **product.describe(config), **before}
    facts = {**cut, **last.facts, "compile_s": compile_s, "compiler_cache": COMPILER_CACHE}
    return Made(tuple(_in_turn(each) for each in ready), facts)


def _in_turn(parts: Sequence[Loaded]) -> Callable[[], Any]:
    launches = tuple(part.launch for part in parts)
    if len(launches) == 1:
        return launches[0]

    def launch() -> None:
        for each in launches:
            each()

    return launch


def make_default(product: Product, loaded: Load = load) -> Made:
    """By the configuration that the model of the device chooses."""
    return make(product, product.configs()[0], loaded).knowing({"chosen_by": "a model of the device"})


def make_tuned(product: Product, trial: Callable[[Any], Candidate], loaded: Load = load, budget_s: float = BUDGET_S) -> Made:
    """By the fastest of several configurations; ``trial`` makes one ready, and refuses what is not right."""
    found = search(product.configs(), trial, budget_s)
    return make(product, found.best, loaded).knowing(tuning_facts(found))


def for_trials(product: Product, loaded: Load, sets: int) -> Callable[[Any], Made]:
    """``make`` for configurations of one product, on its first ``sets`` input sets."""
    return partial(make, product, loaded=loaded, sets=sets)
