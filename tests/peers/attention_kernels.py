"""Roofbench's own attention kernels beside torch's and flash-attn-4's: cold, in turns, on copies that rotate.

    python -m tests.peers.attention_kernels --out DIR --seconds 230

A row is one way to compute one attention: its time, its rate and the ratios to cuDNN and to flash-attn-4.  Every way is
checked against float64 on tiles and against cuDNN everywhere.  Rows are printed as they come, the most important cases first;
kernels compile in processes of their own, on all but two cores, ahead of the case that needs them.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from backends.triton.attention.problem import FULL, LOG2_E, Problem, causal
from suite.worker.serve import caught, describe
from tests.peers.bench import NO_TIME
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number

DEVICE = "cuda"
TOKENS, HEADS, DIM = 16384, 16, 128
ROUNDS = 7
GRAPH_S = 15e-3
HEAT_S = 0.7
COLD_BYTES = 320e6  # several times any last-level cache
RIGHT = {"bf16": 0.006, "fp16": 0.002, "fp8_e4m3": 0.06}  # of the norm, for outputs: rounding P and O to the format
RIGHT_GRADIENT = 0.015
APART = 0.006  # of the norm, from cuDNN's output everywhere
CHECKED_HEADS, CHECKED_ROWS = 6, 64
FEWEST_SECONDS = 8.0
COMPILE_S = 120.0
CUDNN, FLASH4, FLASH2 = "cuDNN", "flash-attn-4", "SDPA flash"
HOPPER, PORTABLE, GRADIENTS = "Gluon", "Triton", "Gradients"

Tensors = dict[str, torch.Tensor]


class Way(NamedTuple):
    """One way to compute a case; ``launches`` has one for each copy of the inputs and returns what it computes."""

    name: str
    launches: Sequence[Callable[[], Any]]


class Timed:
    """A graph of launches over the copies, in rotation, for about ``GRAPH_S``.

    It is made with the stream current that the way was made on: a backward pass runs on the stream of its forward pass.
    """

    def __init__(self, way: Way) -> None:
        self.way = way
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._stream = torch.cuda.current_stream()
        for launch in way.launches:
            launch()
        torch.cuda.synchronize()
        copies = len(way.launches)
        self._capture(copies)
        self.time_s()
        self._capture(copies * max(1, round(GRAPH_S / self.time_s() / copies)))
        self.time_s()
        self.times_s: list[float] = []

    def _capture(self, count: int) -> None:
        self._count = count
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=self._stream):
            for index in range(count):
                self.way.launches[index % len(self.way.launches)]()

    def time_s(self) -> float:
        """Seconds of one launch, over one replay."""
        self._start.record()
        self._graph.replay()
        self._end.record()
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) * 1e-3 / self._count

    @property
    def median_s(self) -> float:
        return float(median(self.times_s))


# --- inputs and reference


class Inputs:
    """Copies of Q, K, V and dO of one problem, (batch, heads, rows, columns), and what our kernels write."""

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        self.problem = problem
        torch.manual_seed(seed)
        made = {name: torch.randn(shape, device=DEVICE) for name, shape in _shapes(problem).items()}
        self.scales: tuple[torch.Tensor | None, ...] = (None, None, None)
        if problem.format == "fp8_e4m3":
            kv_scale = torch.ones(problem.batch, problem.kv_heads, device=DEVICE)
            self.scales = (torch.ones(problem.batch, problem.q_heads, device=DEVICE), kv_scale, kv_scale.clone())
        kind = dtype_of(problem)
        first = {name: tensor.to(kind if name != "do" else torch.bfloat16) for name, tensor in made.items()}
        size = sum(tensor.nbytes for tensor in first.values())
        self.copies = [first]
        for _ in range(max(1, -int(-COLD_BYTES // size) - 1)):
            self.copies.append({name: tensor.clone() for name, tensor in first.items()})
        out = torch.float16 if problem.format == "fp16" else torch.bfloat16
        rows = (problem.batch, problem.q_heads, problem.q_len)
        self.o = torch.empty(*rows, problem.v_dim, device=DEVICE, dtype=out)
        self.lse = torch.empty(rows, device=DEVICE)
        generator = torch.Generator().manual_seed(seed)
        self.places = [
            (
                int(torch.randint(problem.batch, (), generator=generator)),
                int(torch.randint(problem.q_heads, (), generator=generator)),
            )
            for _ in range(CHECKED_HEADS)
        ]

    def distance(self, output: torch.Tensor, lse: torch.Tensor | None = None) -> float:
        """From float64, relative to its norm, on tiles of rows; the largest of them."""
        problem, found = self.problem, [0.0]
        q, k, v = (self.copies[0][name] for name in "qkv")
        middle = problem.q_len // 2 - CHECKED_ROWS // 2 - 3
        for batch, head in self.places:
            keys, values = (each[batch, head // problem.group].double() for each in (k, v))
            for start in dict.fromkeys((0, max(0, middle), max(0, problem.q_len - CHECKED_ROWS))):
                rows = slice(start, min(problem.q_len, start + CHECKED_ROWS))
                scores = _scores(problem, q[batch, head, rows].double() @ keys.t(), start)
                right = scores.softmax(1) @ values
                seen = output[batch, head, rows].double()
                found.append(float((seen - right).norm() / right.norm()))
                if lse is not None:
                    found.append(float((lse[batch, head, rows].double() - scores.logsumexp(1)).abs().max()))
        return max(found, key=lambda each: (each != each, each))  # NaN is the largest

    def gradient_distance(self, gradients: Sequence[torch.Tensor]) -> float:
        """The same for dQ, dK and dV, of whole heads in fp32."""
        problem, found = self.problem, [0.0]
        for batch, kv_head in {(batch, head // problem.group) for batch, head in self.places[:2]}:
            heads = slice(kv_head * problem.group, (kv_head + 1) * problem.group)
            q = self.copies[0]["q"][batch, heads].float()
            do = self.copies[0]["do"][batch, heads].float()
            k, v = (self.copies[0][name][batch, kv_head].float() for name in "kv")
            right = [torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)]
            for member in range(problem.group):
                for start in range(0, problem.q_len, 2048):
                    rows = slice(start, start + 2048)
                    _add_gradients(problem, right, member, rows, start, q, k, v, do)
            seen = (gradients[0][batch, heads], gradients[1][batch, kv_head], gradients[2][batch, kv_head])
            found += [float((a.float() - b).norm() / b.norm()) for a, b in zip(seen, right, strict=True)]
        return max(found, key=lambda each: (each != each, each))


def _add_gradients(
    problem: Problem, right: list[torch.Tensor], member: int, rows: slice, start: int, q: Any, k: Any, v: Any, do: Any
) -> None:
    weights = _scores(problem, q[member, rows] @ k.t(), start).softmax(1)
    above = do[member, rows]
    slopes = above @ v.t()
    right[2] += weights.t() @ above
    slopes = weights * (slopes - (weights * slopes).sum(1, keepdim=True)) * (problem.scale_log2 / LOG2_E)
    right[0][member, rows] = slopes @ k
    right[1] += slopes.t() @ q[member, rows]


def _scores(problem: Problem, products: torch.Tensor, start: int) -> torch.Tensor:
    """Scaled and masked; ``products`` are of the queries from ``start`` on."""
    scores = products * (problem.scale_log2 / LOG2_E)
    i = torch.arange(start, start + len(scores), device=DEVICE)[:, None]
    apart = torch.arange(problem.kv_len, device=DEVICE)[None, :] - i
    first, last = problem.mask
    if first is not None:
        scores = scores.masked_fill(apart < first, float("-inf"))
    return scores if last is None else scores.masked_fill(apart > last, float("-inf"))


def _shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    of_q, of_k = (problem.batch, problem.q_heads, problem.q_len), (problem.batch, problem.kv_heads, problem.kv_len)
    shapes = {"q": (*of_q, problem.qk_dim), "k": (*of_k, problem.qk_dim), "v": (*of_k, problem.v_dim)}
    return {**shapes, "do": (*of_q, problem.v_dim)}


def dtype_of(problem: Problem) -> torch.dtype:
    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8_e4m3": torch.float8_e4m3fn}[problem.format]


# --- ours


class Build(NamedTuple):
    """One of our kernels for a problem; ``kind`` says which, ``config`` how it is cut."""

    kind: str
    problem: Problem
    config: Any

    @property
    def key(self) -> tuple[Any, ...]:
        """Builds with equal keys compile to the same kernel: lengths are arguments, unless one is ragged."""
        p = self.problem
        shape = (p.format, p.group > 1, p.qk_dim, p.v_dim, p.v_transposed)
        mask = (p.mask.first is not None, p.mask.last is not None)
        ragged = (p.q_len % 128, p.kv_len % 128)
        return (self.kind, shape, mask, ragged, self.config)


def calls_of(build: Build, tensors: Tensors, o: Any, lse: Any, scales: Sequence[Any], device: Any) -> list[Any]:
    """The launches of a build, in order, for one copy."""
    from backends.triton.attention.call import Gradients, Operands, backward_calls, forward_call, hopper_call

    problem = build.problem
    v = tensors["v"].transpose(2, 3).contiguous() if problem.v_transposed else tensors["v"]
    operands = Operands(tensors["q"], tensors["k"], v, o, lse, *scales)
    if build.kind == HOPPER:
        return [hopper_call(problem, build.config, device, operands)]
    if build.kind == PORTABLE:
        return [forward_call(problem, build.config, device, operands)]
    given = Gradients(tensors["do"], *(tensors[name] for name in ("dq", "dk", "dv", "delta")))
    of_keys, of_queries = build.config
    return list(backward_calls(problem, of_keys, of_queries, device, operands, given))


def compiled(build: Build, device: Any) -> str:
    """In a process of its own: put the kernels into Triton's cache.  Tensors without memory stand for the real ones."""
    problem = build.problem
    kinds = {name: torch.bfloat16 if name == "do" else dtype_of(problem) for name in _shapes(problem)}
    tensors = {name: torch.empty(shape, dtype=kinds[name], device="meta") for name, shape in _shapes(problem).items()}
    tensors |= {f"d{name}": tensors[name] for name in "qkv"}
    rows = torch.empty(problem.batch, problem.q_heads, problem.q_len, device="meta")
    tensors["delta"] = rows
    o = torch.empty(
        *rows.shape, problem.v_dim, dtype=torch.float16 if problem.format == "fp16" else torch.bfloat16, device="meta"
    )
    scales = (rows, rows, rows) if problem.format == "fp8_e4m3" else (None, None, None)

    def all_of_them() -> None:
        for call in calls_of(build, tensors, o, rows, scales, device):
            call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)

    failure = caught(all_of_them, describe)
    return failure.reason if failure else ""


class Compiler:
    """Compiles builds ahead, each key once, in the order in which they are asked for."""

    def __init__(self, device: Any) -> None:
        self._device = device
        workers = max(1, (os.cpu_count() or 2) - 2)
        self._pool = ProcessPoolExecutor(workers, get_context("spawn"))
        self._found: dict[tuple[Any, ...], Future[str]] = {}

    def ask(self, builds: Sequence[Build]) -> None:
        for build in builds:
            if build.key not in self._found:
                self._found[build.key] = self._pool.submit(compiled, build, self._device)

    def wait(self, builds: Sequence[Build]) -> None:
        """Until they are in the cache, or have failed: then the case's own attempt says why."""
        wait([self._found[build.key] for build in builds], timeout=COMPILE_S)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def ready(name: str, build: Build, inputs: Inputs, device: Any) -> Way:
    """A forward of ours, loaded; it returns the output."""
    from backends.triton.gemm.launch import load

    def launch(run: Callable[[], Any]) -> tuple[torch.Tensor, torch.Tensor]:
        run()
        return inputs.o, inputs.lse

    calls = [calls_of(build, each, inputs.o, inputs.lse, inputs.scales, device)[0] for each in inputs.copies]
    return Way(name, [partial(launch, load(call).launch) for call in calls])


# --- theirs


def sdpa(name: str, backend: Any, inputs: Inputs) -> Way:
    problem = inputs.problem
    options = {"is_causal": problem.mask.last is not None, "enable_gqa": problem.group > 1}

    def launch(tensors: Tensors) -> torch.Tensor:
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(tensors["q"], tensors["k"], tensors["v"], **options)

    return Way(name, [partial(launch, each) for each in inputs.copies])


def flash4(inputs: Inputs) -> Way:
    """flash-attn-4 takes (batch, rows, heads, columns): copies of its own in that order."""
    flash_attn_func = import_module("flash_attn.cute").flash_attn_func
    is_causal = inputs.problem.mask.last is not None
    turned = [{name: each[name].transpose(1, 2).contiguous() for name in "qkv"} for each in inputs.copies]

    def launch(tensors: Tensors) -> torch.Tensor:
        found = flash_attn_func(tensors["q"], tensors["k"], tensors["v"], causal=is_causal)
        output: torch.Tensor = found[0] if isinstance(found, tuple) else found
        return output.transpose(1, 2)

    return Way(FLASH4, [partial(launch, each) for each in turned])


def backward_of(name: str, inputs: Inputs, attend: Callable[[Any, Any, Any], torch.Tensor], turned: bool) -> Way:
    """The backward pass of a differentiable attention, by autograd on a graph that is kept."""

    def launch(out: torch.Tensor, leaves: Sequence[torch.Tensor], above: torch.Tensor) -> Any:
        found = torch.autograd.grad(out, leaves, above, retain_graph=True)
        return tuple(each.transpose(1, 2) for each in found) if turned else found

    launches = []
    for tensors in inputs.copies:
        laid = {key: each.transpose(1, 2).contiguous() if turned else each for key, each in tensors.items()}
        leaves = [laid[key].detach().requires_grad_() for key in "qkv"]
        launches.append(partial(launch, attend(*leaves), leaves, laid["do"]))
    return Way(name, launches)


# --- cases


class Case(NamedTuple):
    """A problem with everything that computes it; ``limits`` are of the best of ours over the peer's rate."""

    name: str
    problem: Problem
    builds: Sequence[Build]
    theirs: Sequence[tuple[str, Callable[[Inputs], Way]]]
    backward: bool = False


def _theirs(problem: Problem, backward: bool) -> list[tuple[str, Callable[[Inputs], Way]]]:
    is_causal = problem.mask.last is not None
    if not backward:
        found: list[tuple[str, Callable[[Inputs], Way]]] = [
            (CUDNN, lambda inputs: sdpa(CUDNN, SDPBackend.CUDNN_ATTENTION, inputs)),
            (FLASH4, flash4),
            (FLASH2, lambda inputs: sdpa(FLASH2, SDPBackend.FLASH_ATTENTION, inputs)),
        ]
        return found

    def by(backend: Any) -> Callable[[Any, Any, Any], torch.Tensor]:
        def attend(q: Any, k: Any, v: Any) -> torch.Tensor:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

        return attend

    def cute(q: Any, k: Any, v: Any) -> torch.Tensor:
        out = import_module("flash_attn.cute").flash_attn_func(q, k, v, causal=is_causal)
        output: torch.Tensor = out[0] if isinstance(out, tuple) else out
        return output

    return [
        (CUDNN, lambda inputs: backward_of(CUDNN, inputs, by(SDPBackend.CUDNN_ATTENTION), False)),
        (FLASH4, lambda inputs: backward_of(FLASH4, inputs, cute, True)),
        (FLASH2, lambda inputs: backward_of(FLASH2, inputs, by(SDPBackend.FLASH_ATTENTION), False)),
    ]


def problem_of(q_len: int, is_causal: bool, dim: int = DIM, format_name: str = "bf16", **changes: Any) -> Problem:
    """16k tokens in total, hidden 2048."""
    heads = HEADS * DIM // dim
    mask = causal(q_len, q_len) if is_causal else FULL
    return Problem(format_name, TOKENS // q_len, heads, heads, q_len, q_len, dim, dim, mask)._replace(**changes)


def cases() -> Iterator[Case]:
    """What a limit is given for first."""
    from backends.triton.attention.config import BackwardConfig, Config, HopperConfig

    hopper = [
        HopperConfig(),
        HopperConfig(resident=False),
        HopperConfig(ordered=False),
        HopperConfig(stages=3, own_output=False),
        HopperConfig(stages=2, own_output=False, resident=False),
    ]
    portable = [
        Config(128, 128, 4, 2, apart=True),
        Config(128, 64, 4, 2, apart=True),
        Config(128, 64, 8, 2),
        Config(128, 128, 8, 2),
        Config(128, 64, 4, 2),
        Config(64, 64, 4, 2),
        Config(128, 64, 8, 3),
    ]

    def forward(name: str, problem: Problem, ours: Sequence[Any], flash: bool = True) -> Case:
        builds = [Build(HOPPER if isinstance(each, HopperConfig) else PORTABLE, problem, each) for each in ours]
        return Case(name, problem, builds, _theirs(problem, False) if flash else ())

    for q_len in (4096, 16384, 1024):
        for is_causal in (False, True):
            yield forward(_title(q_len, is_causal), problem_of(q_len, is_causal), [*hopper, *portable])
    of_keys = [BackwardConfig(64, 128, 8, 2), BackwardConfig(32, 128, 8, 3), BackwardConfig(64, 64, 4, 2)]
    of_queries = [BackwardConfig(128, 64, 8, 2), BackwardConfig(128, 128, 8, 2), BackwardConfig(64, 64, 4, 2)]
    for q_len in (4096, 16384, 1024):
        for is_causal in (False, True):
            problem = problem_of(q_len, is_causal)
            pairs = zip(of_keys, of_queries, strict=True)
            builds = [Build(GRADIENTS, problem, pair) for pair in pairs]
            yield Case(f"backward {_title(q_len, is_causal)}", problem, builds, _theirs(problem, True), backward=True)
    for is_causal in (False, True):
        wide = problem_of(4096, is_causal, 256)
        narrow = problem_of(4096, is_causal, 64)
        yield forward(
            f"d256 {_title(4096, is_causal)}",
            wide,
            [HopperConfig(block=64, own_output=False), Config(128, 64, 8, 2), Config(128, 32, 8, 3)],
        )
        yield forward(
            f"d64 {_title(4096, is_causal)}",
            narrow,
            [HopperConfig(), HopperConfig(stages=3), Config(128, 64, 4, 2), portable[0]],
        )
    grouped = problem_of(4096, True, q_heads=32, kv_heads=8)
    yield forward("GQA 32/8 " + _title(4096, True), grouped, [HopperConfig(), portable[0], portable[2]])
    deep = problem_of(4096, True, batch=1, q_heads=64, kv_heads=64, qk_dim=192)
    yield forward(
        "MLA 192/128, 64 heads " + _title(4096, True), deep, [Config(128, 64, 8, 2), Config(128, 64, 4, 2, apart=True)]
    )
    fp8 = problem_of(4096, False, format_name="fp8_e4m3", v_transposed=True)
    eight = [Config(128, 128, 8, 2), Config(128, 128, 4, 2, apart=True), Config(128, 64, 8, 3), Config(128, 128, 8, 3)]
    yield forward("fp8, V transposed, " + _title(4096, False), fp8, eight, flash=False)


def _title(q_len: int, is_causal: bool) -> str:
    return f"{'causal' if is_causal else 'full'} {q_len // 1024}k"


# --- running


def run(session: Session) -> None:
    if not torch.cuda.is_available() or session.tiny:
        session.record.add(PART.without("all", "these kernels need a CUDA device and their full sizes", Verdict.ABSENT))
        return
    from backends.triton.gemm.device import of_torch

    device = of_torch(0)
    todo = list(cases())
    compiler = Compiler(device)
    for case in todo:
        compiler.ask(case.builds)
    ratios: dict[str, list[tuple[float, float]]] = {}
    try:
        for case in todo:
            if session.deadline.left_s() < FEWEST_SECONDS:
                _show(session, PART.without("the rest", NO_TIME, Verdict.ABSENT))
                break
            began_s = time.monotonic()
            compiler.wait(case.builds)
            waited_s = time.monotonic() - began_s
            for row in measured(case, device, ratios):
                _show(session, row)
            torch.cuda.empty_cache()
            print(f"    {time.monotonic() - began_s:.1f} s, {waited_s:.1f} of them for the compiler", flush=True)
    finally:
        compiler.close()
    for row in conclusions(ratios):
        _show(session, row)


def measured(case: Case, device: Any, ratios: dict[str, list[tuple[float, float]]]) -> list[Row]:
    """Every way of a case: checked, then timed in turns on a stream of its own; the fastest first."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        return list(_measured(case, device, ratios))


def _measured(case: Case, device: Any, ratios: dict[str, list[tuple[float, float]]]) -> Iterator[Row]:
    inputs = Inputs(case.problem)
    found: list[Timed] = []
    lost: list[Row] = []
    expected: list[torch.Tensor] = []
    for name, make in [*case.theirs, *_ours(case, device)]:
        if name == FLASH4 and not find_spec("flash_attn"):
            continue
        timed = made(case, inputs, make, expected)
        if isinstance(timed, Timed):
            found.append(timed)
        else:
            lost.append(PART.without(f"{case.name}: {name}", timed, Verdict.FAILED))
    expected.clear()
    if case.backward:
        found += _parts(case, device, inputs)
    if found:
        _heat(found[0])
    for turn in range(ROUNDS):
        for each in found if turn % 2 else reversed(found):
            each.times_s.append(each.time_s())
    found.sort(key=lambda each: each.median_s)
    bases = [next((each.median_s for each in found if each.way.name == peer), None) for peer in (CUDNN, FLASH4)]
    for each in found:
        yield _row(case, each, bases)
    yield from lost
    if case.backward:
        yield _sum_of_parts(case, found, bases)
    for kind in (HOPPER, PORTABLE, GRADIENTS):
        best = next((each.median_s for each in found if each.way.name.startswith(kind)), None)
        if best is not None and bases[0] is not None and case.problem.qk_dim == DIM and case.problem.group == 1:
            flash4_ratio = bases[1] / best if bases[1] else float("nan")
            ratios.setdefault(("backward " if case.backward else "forward ") + kind, []).append((bases[0] / best, flash4_ratio))


def _ours(case: Case, device: Any) -> Iterator[tuple[str, Callable[[Inputs], Way]]]:
    for build in case.builds:
        if case.backward:
            labels = [each.label for each in build.config]
            name = f"{GRADIENTS} keys {labels[0]}; queries {labels[1]}"
            yield name, partial(_backward_ways, name, build, device)
        else:
            name = f"{build.kind} {build.config.label}"
            yield name, partial(ready, name, build, device=device)


def _backward_ways(name: str, build: Build, device: Any, inputs: Inputs) -> Way:
    """Ours, after a forward of ours; it returns the gradients."""
    runs, gradients = _backward_runs(build, device, inputs)

    def launch(each: Sequence[Callable[[], Any]]) -> tuple[torch.Tensor, ...]:
        for run_ in each:
            run_()
        return gradients["dq"], gradients["dk"], gradients["dv"]

    return Way(name, [partial(launch, each) for each in runs])


def _backward_runs(build: Build, device: Any, inputs: Inputs) -> tuple[list[list[Callable[[], Any]]], Tensors]:
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


PARTS = ("preparation", "keys", "queries")


def _parts(case: Case, device: Any, inputs: Inputs) -> list[Timed]:
    """The launches of every backward pass of ours one by one, each way to cut one once."""
    found: dict[str, Timed] = {}

    def prepare() -> None:
        for build in case.builds:
            runs, _ = _backward_runs(build, device, inputs)
            for place, (part, label) in enumerate(zip(PARTS, ("", *(each.label for each in build.config)), strict=True)):
                name = f"part: {part} {label}".strip()
                if name not in found:
                    found[name] = Timed(Way(name, [each[place] for each in runs]))

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
            found.append(Timed(way))

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


def _heat(timed: Timed) -> None:
    """So that the clock is that of work that goes on."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < HEAT_S:
        timed.time_s()


def _row(case: Case, timed: Timed, bases: Sequence[float | None]) -> Row:
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


def _show(session: Session, row: Row) -> None:
    session.record.add(row)
    print("  ".join([f"{row.name:<70}", *(f"{cell:>9}" for cell in row.cells), row.verdict.value, row.note]), flush=True)


PART = Part(
    name="attention_kernels",
    shows="roofbench's own attention kernels beside cuDNN's and flash-attn-4's, sustained, in turns",
    headings=("us", "TFLOP/s", "over cuDNN", "over fa4"),
    run=run,
    foot=("The ratios are the peer's time over that of the row, each the median of the rounds.",),
)

if __name__ == "__main__":
    run_as_script(PART)
