"""Cases of the attention job by the kernels here: which can run, and how their launches are made."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from backends.seeds import mixed_seed
from backends.torch.attention.operands import Buffers, ScaledOperand
from backends.torch.attention.way import Task
from backends.torch.way import Made as MadeReady
from backends.triton.attention.call import Gradients, Operands, backward_calls, forward_call, hopper_call
from backends.triton.attention.choices import (
    HOPPER,
    Choice,
    choices_of_forward,
    choices_of_keys,
    choices_of_queries,
    hopper_backward_choices,
    hopper_choices,
    spared_words,
)
from backends.triton.attention.config import BackwardConfig, Config, HopperConfig
from backends.triton.attention.hopper_backward_call import SPARED_WORDS, hopper_backward_calls, room_for
from backends.triton.attention.problem import Mask, Problem
from backends.triton.gemm.call import Call
from backends.triton.gemm.comparison import Comparison
from backends.triton.gemm.device import Device
from backends.triton.gemm.fitting import first_fitting, refuse_spills
from backends.triton.gemm.launch import Load, load
from backends.triton.gemm.made import COMPILER_CACHE, Made, tuning_facts
from backends.triton.gemm.port import emulation
from backends.triton.gemm.trials import SETS_AT_MOST
from backends.triton.gemm.tuning import search
from backends.triton.version import triton_version
from suite.case import Workload
from suite.jobs.attention import sizes_of

LONGEST = 1 << 30  # positions within a head are 32-bit, and the last tile passes the edge
MOST_PROGRAMS = 2**31 - 1
NARROWEST, WIDEST = 16, 256  # columns of one product
HOPPER_DIMS, HOPPER_BACKWARD_DIMS = (64, 128, 256), (64, 128)
FP8_ROWS = 16  # of V transposed, in bytes: what TMA wants of the step from one row to the next
BUDGET_S = 60.0
GLUON = "gluon"


def reason(name: str, workload: Workload, device: Device) -> str | None:
    """Why this attention cannot run here; ``None`` when it can.  Its format is one that the kernels take."""
    return refused(name, problem_of(workload), device, backward=sizes_of(workload).is_backward)


def refused(name: str, problem: Problem, device: Device, *, backward: bool) -> str | None:
    """The same of a problem as the kernels see it."""
    if name == GLUON:
        return _hopper_reason(problem, device, backward)
    if device.unknown:
        return device.unknown
    if problem.format == "fp8_e4m3" and not device.has_fp8:
        return f"{device.name} does not multiply fp8_e4m3 as the OCP defines it; take bf16"
    return _sizes_reason(problem, device)


def problem_of(workload: Workload) -> Problem:
    """As the kernels see a workload; V of fp8 is given transposed, as their products want it."""
    sizes = sizes_of(workload)
    heads = (sizes.batch, sizes.num_q_heads, sizes.num_kv_heads, sizes.q_len, sizes.kv_len, sizes.head_dim, sizes.v_head_dim)
    transposed = workload.format == "fp8_e4m3"
    return Problem(workload.format, *heads, Mask(*sizes.bounds), v_transposed=transposed)


def make(name: str, task: Task, device: Device, loaded: Load = load, cuda: Any = torch.cuda) -> MadeReady:
    """Compile and load; launches write into the results of their set and allocate nothing.

    Raises ``NotImplementedError`` where every configuration spills registers or does not fit.
    """
    problem = problem_of(task.workload)
    arguments = [_operands(problem, each) for each in task.buffers]
    spared = partial(spared_words, problem, device)
    forward = Maker(lambda config, operands: [_forward(problem, config, device, operands)], arguments, loaded, spared)
    choices = hopper_choices(problem) if name == GLUON else choices_of_forward(problem, device)
    if task.sizes.is_backward and name == GLUON:
        portable = Maker(lambda config, operands: [forward_call(problem, config, device, operands)], arguments, loaded, spared)
        return _hopper_gradients(task, problem, device, portable, loaded)
    if task.sizes.is_backward:
        return _gradients(task, problem, device, (forward, choices), loaded, cuda, tuned=name == "triton_tuned")
    made = forward.first(choices)
    if name == "triton_tuned":
        _fill(task)
        made = _tuned(forward, made, choices, task.buffers[0].output, cuda)
    return MadeReady(made.launches, _said(made, device), emulation=emulation(made.facts, problem.format))


class Maker:
    """Makes a configuration's launches for each input set; ``calls`` are launched one after the other."""

    def __init__(
        self,
        calls: Callable[[Any, Any], Sequence[Call]],
        arguments: Sequence[Any],
        loaded: Load,
        spared_words: Callable[[Any], int] = lambda _: 0,
    ) -> None:
        self._calls, self.arguments, self._loaded, self._spared_words = calls, arguments, loaded, spared_words
        self.best: Any = None

    def make(self, config: Any, arguments: Sequence[Any]) -> Made:
        """Raises ``Refused`` for a configuration that spills: what it moves through memory is no attention's."""
        began_s = time.perf_counter()
        ready = [[self._loaded(call) for call in self._calls(config, each)] for each in arguments]
        facts = merged([dict(each.facts) for each in ready[0]])
        refuse_spills(facts, self._spared_words(config))
        compile_s = time.perf_counter() - began_s
        told = {**facts, "tiles": config.label, "compile_s": compile_s, "compiler_cache": COMPILER_CACHE}
        return Made(tuple(in_order([each.launch for each in launches]) for launches in ready), told)

    def first(self, choices: Sequence[Choice]) -> Made:
        """See ``first_fitting``."""
        self.best, made = first_fitting(choices, lambda config: self.make(config, self.arguments))
        return made


def in_order(launches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
    """One launch of several kernels."""
    return launches[0] if len(launches) == 1 else partial(_launch_all, tuple(launches))


def merged(facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of kernels that are launched one after the other: the most registers and shared memory, all spills and instructions."""
    if len(facts) == 1:
        return facts[0]
    return {
        "kernel": ", ".join(each["kernel"] for each in facts),
        "registers": max(each["registers"] for each in facts),
        "spilled_words": sum(each["spilled_words"] for each in facts),
        "shared_bytes": max(each["shared_bytes"] for each in facts),
        "instructions": sorted({name for each in facts for name in each["instructions"]}),
    }


def _tuned(maker: Maker, first: Made, choices: Sequence[Choice], output: torch.Tensor, cuda: Any) -> Made:
    """The fastest of the choices, each held against the first one's result on the filled buffers."""
    assert maker.best is not None
    order = [maker.best, *(each for each in choices if each != maker.best)]
    trial = Comparison(lambda config: maker.make(config, maker.arguments[:SETS_AT_MOST]), output, cuda)
    found = search(order, trial, BUDGET_S)
    made = first if found.best == maker.best else maker.make(found.best, maker.arguments)
    maker.best = found.best
    return made.knowing(tuning_facts(found))


def _gradients(
    task: Task,
    problem: Problem,
    device: Device,
    forward: tuple[Maker, Sequence[Choice]],
    loaded: Load,
    cuda: Any,
    tuned: bool,
) -> MadeReady:
    """Three kernels: sums of rows, gradients of keys and values, gradients of queries; the last two are cut on their own.

    What they are given of a forward pass comes from the portable kernel here, launched whenever the data is new.
    """
    maker, choices = forward
    saved = maker.first(choices)
    arguments = [(operands, _given(each)) for operands, each in zip(maker.arguments, task.buffers, strict=True)]
    small = BackwardConfig(16, 16, 4, 1)  # of the kernel that is not launched
    by_keys = Maker(lambda config, each: backward_calls(problem, config, small, device, *each)[:2], arguments, loaded)
    by_queries = Maker(lambda config, each: backward_calls(problem, small, config, device, *each)[2:], arguments, loaded)
    of_keys, of_queries = choices_of_keys(problem, device), choices_of_queries(problem, device)
    keys, queries = by_keys.first(of_keys), by_queries.first(of_queries)
    if tuned:
        _fill(task)
        for launch in saved.launches:
            launch()
        for launch in keys.launches:  # the sums of rows, which the gradients of queries need
            launch()
        output = task.buffers[0].output
        split = task.buffers[0].results[0].numel() // output.shape[1]  # rows of the gradients of queries
        keys = _tuned(by_keys, keys, of_keys, output[split:], cuda)
        queries = _tuned(by_queries, queries, of_queries, output[:split], cuda)
    launches = [in_order(pair) for pair in zip(keys.launches, queries.launches, strict=True)]
    parts = {"keys_and_values": dict(keys.facts), "queries": dict(queries.facts), "forward": dict(saved.facts)}
    facts = merged([parts["keys_and_values"], parts["queries"]])
    told = {**facts, "parts": parts, "chosen_by": keys.facts["chosen_by"]}
    ready = Made(tuple(launches), told)
    return MadeReady(launches, _said(ready, device), renewals=saved.launches, emulation=emulation(facts, problem.format))


def _hopper_gradients(task: Task, problem: Problem, device: Device, portable: Maker, loaded: Load) -> MadeReady:
    """Sums of rows, all gradients in one kernel, and dQ rounded from its sums.

    What it is given of a forward pass comes from the portable kernel.
    """
    saved = portable.first(choices_of_forward(problem, device))
    arguments = [
        (operands, _given(each), room_for(problem, operands.q.device))
        for operands, each in zip(portable.arguments, task.buffers, strict=True)
    ]
    maker = Maker(lambda config, each: hopper_backward_calls(problem, config, *each), arguments, loaded, lambda _: SPARED_WORDS)
    made = maker.first(hopper_backward_choices())
    told = made.knowing({"parts": {"gradients": dict(made.facts), "forward": dict(saved.facts)}})
    return MadeReady(
        told.launches, _said(told, device), renewals=saved.launches, emulation=emulation(made.facts, problem.format)
    )


def _forward(problem: Problem, config: Config | HopperConfig, device: Device, operands: Operands) -> Call:
    if isinstance(config, HopperConfig):
        return hopper_call(problem, config, device, operands)
    return forward_call(problem, config, device, operands)


def _operands(problem: Problem, each: Buffers) -> Operands:
    """The tensors of a set; V of fp8 in a buffer of its own, transposed after each refill."""
    v = each.v.data
    if problem.v_transposed:
        assert isinstance(each.v, ScaledOperand)
        v = torch.empty_like(v.transpose(2, 3), memory_format=torch.contiguous_format)
        each.v.arrangements.append(partial(_transpose, each.v.data, v))
    scales = [operand.scales for operand in (each.q, each.k, each.v) if isinstance(operand, ScaledOperand)]
    return Operands(each.q.data, each.k.data, v, each.o, each.lse, *scales)


def _transpose(rows: torch.Tensor, columns: torch.Tensor) -> None:
    columns.view(torch.uint8).copy_(rows.view(torch.uint8).transpose(2, 3))


def _given(each: Buffers) -> Gradients:
    """What a backward pass is given beside the operands, what it writes, and room for its sums of rows."""
    assert each.do is not None
    dq, dk, dv = each.results
    return Gradients(each.do.data, dq, dk, dv, torch.empty_like(each.lse))


def _launch_all(launches: Sequence[Callable[[], Any]]) -> None:
    for launch in launches:
        launch()


def _fill(task: Task) -> None:
    """With the data that the case begins with: configurations are tried on numbers, not on what memory held before."""
    for set_index, each in enumerate(task.buffers):
        for operand_index, operand in enumerate(each.operands):
            operand.refill(task.workload.distribution, mixed_seed(task.seed, set_index, operand_index))


def _said(made: Made, device: Device) -> Mapping[str, Any]:
    loads = "tensor descriptors" if device.has_descriptors else f"pointers: {device.name} has no tensor descriptors"
    transposed = {"v_layout": "batch, heads, columns, rows: written so before the timed launch"}
    of_fp8 = transposed if any("e4m3" in each or "f8f6f4" in each for each in made.facts["instructions"]) else {}
    return {"library": f"Triton {triton_version()}", "loads": loads, **made.facts, **of_fp8}


def _sizes_reason(problem: Problem, device: Device) -> str | None:
    for name, width in (("head_dim", problem.width), ("head_dim", problem.tail), ("v_head_dim", problem.v_dim)):
        if width and (width & (width - 1) or not NARROWEST <= width <= WIDEST):
            whole = problem.qk_dim if name == "head_dim" else problem.v_dim
            allowed = f"a power of two from {NARROWEST} to {WIDEST}" + (", or the sum of two" if name == "head_dim" else "")
            return f"this kernel takes a {name} that is {allowed}, not {whole}"
    longest = max(problem.q_len, problem.kv_len)
    if longest > LONGEST:
        return f"this kernel takes sequences up to {LONGEST}, not {longest}"
    programs = -(-longest // NARROWEST) * problem.batch * problem.q_heads
    if programs > MOST_PROGRAMS:
        return f"this kernel takes up to {MOST_PROGRAMS} tiles of {NARROWEST} queries, not {programs}"
    if problem.v_transposed and device.has_descriptors and problem.kv_len % FP8_ROWS:
        padded = -(-problem.kv_len // FP8_ROWS) * FP8_ROWS
        return (
            f"{device.name} copies rows of V transposed in multiples of {FP8_ROWS} bytes, not {problem.kv_len}; pad to {padded}"
        )
    return None


def _hopper_reason(problem: Problem, device: Device, backward: bool) -> str | None:
    if device.architecture != HOPPER:
        return f"gluon is written for sm_90, the device here is {device.name}; triton is portable"
    if problem.format not in ("bf16", "fp16"):
        return f"gluon takes bf16 and fp16, not {problem.format}; triton takes fp8"
    dims = HOPPER_BACKWARD_DIMS if backward else HOPPER_DIMS
    if problem.qk_dim != problem.v_dim or problem.qk_dim not in dims:
        taken = ", ".join(map(str, dims))
        way = "gluon backward" if backward else "gluon"
        found = f"{problem.qk_dim} and {problem.v_dim}"
        return f"{way} takes one head_dim of {taken} for Q, K and V, not {found}; triton takes others"
    return _sizes_reason(problem, device)
