"""Roofbench's own paged decoding beside torch's on contiguous keys and flashinfer's: cold, in turns, with the read bandwidth.

    python -m tests.peers.decode_kernels --out DIR --seconds 200

A row is one way to compute one step: its time, the bytes that the step has to move a second, their share of what a plain kernel
reads of 4 GiB in the same turns, and the ratio to cuDNN on contiguous keys.  Every way is checked against float64 on whole
sequences; ``error`` is the distance from the result without rounding the cache to its format.  Rows are printed as they come,
the most important cases first; kernels compile in processes of their own, ahead of the case that needs them.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any, NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from backends.triton.decode.problem import LOG2_E, Problem
from suite.jobs.decode.cache import Heads, compulsory_bytes
from suite.jobs.decode.lengths import lengths
from suite.jobs.decode.pages import Pages, paged
from suite.worker.serve import caught, describe
from tests.peers.attention_kernels import Timed, Way
from tests.peers.bench import NO_TIME
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number

DEVICE = "cuda"
ROUNDS = 7
HEAT_S = 0.5
COLD_BYTES = 1e9  # of all copies of the cache: an order of magnitude above any last-level cache
READ_BYTES = 4 << 30
FEWEST_SECONDS, COMPILE_S = 10.0, 120.0
RIGHT = 0.006  # of the norm, for outputs: rounding weights and output to the format
RIGHT_LSE = 0.01
CHECKED = 3  # sequences
PARTS = 8  # in which a cache is drawn and rounded
LARGEST = {"fp8_e4m3": 448.0, "int8": 127.0}
DTYPES = {"bf16": torch.bfloat16, "fp8_e4m3": torch.float8_e4m3fn, "int8": torch.int8}
READ, CUDNN, FLASH2, FLASHINFER = "read of 4 GiB", "cuDNN, contiguous", "SDPA flash, contiguous", "flashinfer"

Launch = Callable[[], Any]


class Case(NamedTuple):
    """One step.  ``tried`` is how many of our configurations; ``theirs`` whether others compute it too."""

    name: str
    problem: Problem
    lengths: tuple[int, ...]
    order: str = "random"
    shared_tokens: int = 0
    tokens_first: bool = False
    tried: int = 2
    theirs: bool = False

    @property
    def heads(self) -> Heads:
        p = self.problem
        return Heads(p.q_heads, p.kv_heads, p.width, p.tail, p.shared_values)

    def pages(self) -> Pages:
        return paged(self.lengths, self.problem.page_size, shared_tokens=self.shared_tokens, order=self.order, seed=1)


class Group(NamedTuple):
    """Cases that are measured in turns with each other, and are held against each other."""

    name: str
    cases: tuple[Case, ...]


# --- inputs and reference


def rounded(numbers: torch.Tensor, format_name: str, scale: torch.Tensor | None) -> torch.Tensor:
    """Numbers in the cache's format, ``scale`` (to be broadcast) taken out."""
    if scale is None:
        return numbers.to(DTYPES[format_name])
    scaled = (numbers.float() / scale).clamp(-LARGEST[format_name], LARGEST[format_name])
    return (scaled.round() if format_name == "int8" else scaled).to(DTYPES[format_name])


class Inputs:
    """One case's queries and copies of its cache, with the results of ``CHECKED`` sequences in float64."""

    def __init__(self, case: Case) -> None:
        p, pages = case.problem, case.pages()
        self.case, self.pages = case, pages
        self.table = torch.from_numpy(pages.table).to(DEVICE)
        generator = torch.Generator(DEVICE).manual_seed(5)
        batch = len(pages.lengths)
        shape = (batch, p.q_len, p.q_heads, p.width + p.tail)
        self.q = torch.randn(shape, device=DEVICE, generator=generator).to(torch.bfloat16)
        self.o = torch.empty(*shape[:3], p.width, device=DEVICE, dtype=torch.bfloat16)
        self.lse = torch.empty(shape[:3], device=DEVICE)
        self.checked = sorted({0, batch // 2, batch - 1})[:CHECKED]
        wanted = [self._entries(sequence) for sequence in self.checked]
        k, k_scale, k_exact = self._cache(generator, wanted)
        v, v_scale, v_exact = (k, k_scale, k_exact) if p.shared_values else self._cache(generator, wanted)
        self.right = [self._right(sequence, *self._dequantised(k, v, k_scale, v_scale, sequence)) for sequence in self.checked]
        exact = [self._right(*each) for each in zip(self.checked, k_exact, v_exact, strict=True)]
        self.rounding = max(_distance(a, b) for (a, _), (b, _) in zip(self.right, exact, strict=True))
        self.copies = [(k, v, k_scale, v_scale)]
        size = sum(each.nbytes for each in (k, v, k_scale, v_scale) if each is not None)
        for _ in range(max(0, -int(-COLD_BYTES // size) - 1)):
            twice = [None if each is None else each.clone() for each in (k, k_scale, v_scale)]
            self.copies.append((twice[0], twice[0] if p.shared_values else v.clone(), twice[1], twice[2]))

    def _entries(self, sequence: int) -> torch.Tensor:
        return self.table[sequence, : -(-self.pages.lengths[sequence] // self.pages.page_size)].long()

    def _cache(self, generator: Any, wanted: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Any, list[torch.Tensor]]:
        """A cache of normal numbers, its scales, and what the pages ``wanted`` had before they were rounded."""
        p, count = self.case.problem, self.pages.page_count
        shape = (count, p.page_size, p.kv_heads) if self.case.tokens_first else (count, p.kv_heads, p.page_size)
        cache = torch.empty(*shape, p.width + p.tail, device=DEVICE, dtype=DTYPES[p.format])
        cache = cache.transpose(1, 2) if self.case.tokens_first else cache
        scale = torch.empty(count, p.kv_heads, p.page_size, device=DEVICE) if p.scales == "token" else None
        exact = [torch.empty(len(each), *cache.shape[1:], device=DEVICE, dtype=torch.bfloat16) for each in wanted]
        step = -(-count // PARTS)
        one_scale = None
        for first in range(0, count, step):
            size = (min(step, count - first), *cache.shape[1:])
            numbers = torch.randn(size, device=DEVICE, generator=generator, dtype=torch.bfloat16)
            for pages, kept in zip(wanted, exact, strict=True):
                here = (pages >= first) & (pages < first + size[0])
                kept[here] = numbers[pages[here] - first]
            largest = None if p.scales == "none" else numbers.abs().amax(3 if p.scales == "token" else None).float()
            if scale is not None and largest is not None:
                scale[first : first + size[0]] = largest / LARGEST[p.format]
            elif largest is not None and one_scale is None:  # the first part's largest number stands for all of them
                one_scale = largest.reshape(1) / LARGEST[p.format]
            taken = one_scale if scale is None else scale[first : first + size[0], ..., None]
            cache[first : first + size[0]] = rounded(numbers, p.format, taken)
        return cache, one_scale if scale is None else scale, exact

    def _dequantised(self, k: Any, v: Any, k_scale: Any, v_scale: Any, sequence: int) -> tuple[torch.Tensor, torch.Tensor]:
        pages, found = self._entries(sequence), []
        for cache, scale in ((k, k_scale), (v, v_scale)):
            numbers = cache[pages].double()
            if scale is not None:
                numbers *= scale[pages][..., None] if self.case.problem.scales == "token" else scale
            found.append(numbers)
        return found[0], found[1]

    def _right(self, sequence: int, k_pages: torch.Tensor, v_pages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Output (q_len, q_heads, width) and logarithms of sums of one sequence, head by head."""
        p, length = self.case.problem, self.pages.lengths[sequence]
        out = torch.empty(p.q_len, p.q_heads, p.width, device=DEVICE, dtype=torch.float64)
        lse = torch.empty(p.q_len, p.q_heads, device=DEVICE, dtype=torch.float64)
        last = length - p.q_len + torch.arange(p.q_len, device=DEVICE)
        unseen = torch.arange(length, device=DEVICE)[None, :] > last[:, None]
        for head in range(p.kv_heads):
            k, v = (each[:, head].reshape(-1, each.shape[3])[:length].double() for each in (k_pages, v_pages))
            members = slice(head * p.group, (head + 1) * p.group)
            scores = self.q[sequence, :, members].double() @ k.t() * (p.scale_log2 / LOG2_E)
            scores = scores.masked_fill(unseen[:, None, :], float("-inf"))
            out[:, members] = scores.softmax(2) @ v[:, : p.width]
            lse[:, members] = scores.logsumexp(2)
        return out, lse

    def wrong(self, out: torch.Tensor, lse: torch.Tensor | None) -> str:
        """What is wrong with a result (batch, q_len, q_heads, width); empty where nothing is."""
        for sequence, (right, right_lse) in zip(self.checked, self.right, strict=True):
            distance = _distance(out[sequence], right)
            if not distance <= RIGHT:
                return f"its result for sequence {sequence} is {distance:.3g} of the norm away"
            apart = 0.0 if lse is None else float((lse[sequence].double() - right_lse).abs().max())
            if not apart <= RIGHT_LSE:
                return f"its logarithms of sums for sequence {sequence} are {apart:.3g} away"
        return "" if bool(out.isfinite().all()) else "some of its results are not finite"

    @property
    def bytes(self) -> int:
        p = self.case.problem
        return compulsory_bytes(self.case.heads, self.pages, p.format, p.scales, p.q_len).total


def _distance(found: torch.Tensor, right: torch.Tensor) -> float:
    return float((found.double() - right).norm() / right.norm())


# --- ours


def call_of(case: Case, config: Any, device: Any, tensors: Sequence[Any], workspace: Any = None) -> Any:
    """One launch; ``tensors`` are q, k, v, o, lse, table and the scales.  Makes a workspace where none is given."""
    from backends.triton.decode.call import Operands, Workspace, decode_call, workspace_shapes
    from backends.triton.decode.plan import planned

    p, operands = case.problem, Operands(*tensors)
    blocks = -(-p.rows // config.rows)
    plan = planned(case.lengths, config.block, p.kv_heads * blocks, device.units * config.resident)
    if workspace is None:
        shapes, where = workspace_shapes(p, plan, len(case.lengths)), operands.q.device
        items = torch.tensor(plan.numbers, dtype=torch.int32).to(where)
        parts, parts_lse = (torch.empty(shape, device=where) for shape in (shapes.parts, shapes.parts_lse))
        workspace = Workspace(items, parts, parts_lse, torch.zeros(shapes.arrived, dtype=torch.int32, device=where))
    return decode_call(p, config, device, plan, operands, workspace)


def compiled(case: Case, config: Any, device: Any) -> str:
    """In a process of its own: put the kernel into Triton's cache.  Tensors without memory stand for the real ones."""
    p, batch = case.problem, len(case.lengths)

    def empty(*sizes: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(*sizes, dtype=kind, device="meta")

    q = empty(batch, p.q_len, p.q_heads, p.width + p.tail, kind=torch.bfloat16)
    o = empty(batch, p.q_len, p.q_heads, p.width, kind=torch.bfloat16)
    shape = (64, p.page_size, p.kv_heads) if case.tokens_first else (64, p.kv_heads, p.page_size)
    cache = empty(*shape, p.width + p.tail, kind=DTYPES[p.format])
    cache = cache.transpose(1, 2) if case.tokens_first else cache
    scale = {"none": None, "tensor": empty(1), "token": empty(64, p.kv_heads, p.page_size)}[p.scales]
    table = empty(batch, -(-max(case.lengths) // p.page_size), kind=torch.int32)
    tensors = (q, cache, cache, o, empty(batch, p.q_len, p.q_heads), table, scale, scale)

    def warm() -> None:
        call = call_of(case, config, device, tensors)
        call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)

    failure = caught(warm, describe)
    return failure.reason if failure else ""


def configs_of(case: Case, device: Any) -> Sequence[Any]:
    from backends.triton.decode.config import candidates

    return candidates(case.problem, device)[: case.tried]


class Compiler:
    """Compiles the configurations of cases ahead, in the order in which they are asked for."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._pool = ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 2), get_context("spawn"))
        self._found: dict[str, list[Future[str]]] = {}

    def ask(self, group: Group) -> None:
        pairs = [(case, config) for case in group.cases for config in configs_of(case, self._device)]
        self._found[group.name] = [self._pool.submit(compiled, *pair, self._device) for pair in pairs]

    def wait(self, group: Group) -> None:
        """Until they are in the cache, or have failed: then the case's own attempt says why."""
        wait(self._found[group.name], timeout=COMPILE_S)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def ours(inputs: Inputs, config: Any, device: Any) -> Way:
    """A configuration of ours, loaded; it returns output and logarithms of sums."""
    from backends.triton.decode.call import Workspace
    from backends.triton.gemm.launch import load

    def launch(run: Launch) -> tuple[torch.Tensor, torch.Tensor]:
        run()
        return inputs.o, inputs.lse

    launches, workspace = [], None
    for k, v, k_scale, v_scale in inputs.copies:
        tensors = (inputs.q, k, v, inputs.o, inputs.lse, inputs.table, k_scale, v_scale)
        call = call_of(inputs.case, config, device, tensors, workspace)
        workspace = Workspace(*call.arguments[8:12])  # launches of one stream share it
        launches.append(partial(launch, load(call).launch))
    return Way(config.label, launches)


# --- theirs


def contiguous(inputs: Inputs) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The copies of the cache as (batch, kv_heads, length, columns); all sequences are of one length."""
    p, length = inputs.case.problem, inputs.pages.lengths[0]

    def gathered(cache: torch.Tensor) -> torch.Tensor:
        found = torch.empty(len(inputs.pages.lengths), p.kv_heads, length, p.width, device=DEVICE, dtype=cache.dtype)
        for sequence, row in enumerate(found):
            row.copy_(cache[inputs.table[sequence].long()].transpose(0, 1).reshape(p.kv_heads, -1, p.width)[:, :length])
        return found

    return [(gathered(k), gathered(v)) for k, v, *_ in inputs.copies]


def sdpa(name: str, backend: Any, inputs: Inputs, copies: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Way:
    q = inputs.q.transpose(1, 2)

    def launch(k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return out.transpose(1, 2)

    return Way(name, [partial(launch, *each) for each in copies])


def flashinfer(inputs: Inputs) -> Way:
    """Its paged decoding with tensor cores; planned once, outside what is timed."""
    p, pages = inputs.case.problem, inputs.pages
    counts = torch.tensor([-(-length // p.page_size) for length in pages.lengths], dtype=torch.int32)
    first = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32).to(DEVICE)
    entries = torch.cat([inputs.table[i, : int(count)] for i, count in enumerate(counts)])
    last = torch.tensor([(length - 1) % p.page_size + 1 for length in pages.lengths], dtype=torch.int32, device=DEVICE)
    space = torch.empty(256 << 20, dtype=torch.uint8, device=DEVICE)
    wrapper = import_module("flashinfer").BatchDecodeWithPagedKVCacheWrapper(space, "HND", use_tensor_cores=True)
    kinds = {"q_data_type": inputs.q.dtype, "kv_data_type": DTYPES[p.format]}
    wrapper.plan(first, entries, last, p.q_heads, p.kv_heads, p.width, p.page_size, **kinds)
    q = inputs.q[:, 0]

    def launch(k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = wrapper.run(q, (k, v))
        return out[:, None]

    return Way(FLASHINFER, [partial(launch, k, v) for k, v, *_ in inputs.copies])


# --- cases

Changed = tuple[str, Problem, dict[str, Any]]
LLAMA = Problem("bf16", 32, 8, 128, 16)
FORMATS = (("bf16", "none"), ("fp8_e4m3", "tensor"), ("fp8_e4m3", "token"), ("int8", "token"))
MLA = Problem("bf16", 128, 1, 512, 64, tail=64, shared_values=True)


def formats_of(problem: Problem, formats: Sequence[tuple[str, str]] = FORMATS) -> Iterator[tuple[str, Problem]]:
    for name, scales in formats:
        label = name if scales == "none" else f"{name}, {scales} scales"
        yield label, problem._replace(format=name, scales=scales)


def groups() -> Iterator[Group]:
    """What a limit is given for first."""
    two = (FORMATS[0], FORMATS[2])
    for name, kv_len in (("32k", 32768), ("4k", 4096)):
        cases = [
            Case(label, problem, lengths(32, kv_len), tried=6, theirs=label == "bf16") for label, problem in formats_of(LLAMA)
        ]
        yield Group(f"32/8 d128, page 16, batch 32, {name}", tuple(cases))

    def compared(name: str, cases: Sequence[Changed], kv_len: int = 8192) -> Group:
        found = [
            Case(f"{label}, {what}", each, **{"lengths": lengths(32, kv_len), **more})
            for what, problem, more in cases
            for label, each in formats_of(problem, two)
        ]
        return Group(name, tuple(found))

    sizes: list[Changed] = [(f"page {size}", LLAMA._replace(page_size=size), {}) for size in (1, 16, 64)]
    yield compared("pages, 8k", [*sizes, ("page 16 in order", LLAMA, {"order": "contiguous"})])
    spread = [(name, LLAMA, {"lengths": lengths(32, 8192, name)}) for name in ("equal", "uniform", "skewed")]
    prefixes = [(f"{shared // 1024}k shared", LLAMA, {"shared_tokens": shared}) for shared in (4096, 7168)]
    yield compared("lengths and prefixes, 8k", [*spread, *prefixes])
    more: list[Changed] = [("4 tokens", LLAMA._replace(q_len=4), {}), ("64/8", LLAMA._replace(q_heads=64), {})]
    yield compared("heads and tokens, 8k", [*more, ("tokens before heads", LLAMA, {"tokens_first": True})])
    yield compared("batch 1, 128k", [("128k", LLAMA, {"lengths": (131072,)})])
    latent = [
        Case(f"MLA {heads} heads, {label}", problem._replace(q_heads=heads), lengths(64, 4096), tried=3)
        for heads in (128, 16)
        for label, problem in formats_of(MLA, (FORMATS[0], FORMATS[1]))
    ]
    yield Group("MLA, page 64, batch 64, 4k", tuple(latent))


# --- running


def run(session: Session) -> None:
    if not torch.cuda.is_available() or session.tiny:
        session.record.add(PART.without("all", "these kernels need a CUDA device and their full sizes", Verdict.ABSENT))
        return
    from backends.triton.gemm.device import of_torch

    device = of_torch(0)
    todo = list(groups())
    compiler = Compiler(device)
    for group in todo:
        compiler.ask(group)
    best: dict[tuple[str, str], Result] = {}
    try:
        for group in todo:
            if session.deadline.left_s() < FEWEST_SECONDS:
                _show(session, PART.without("the rest", NO_TIME, Verdict.ABSENT))
                break
            began_s = time.monotonic()
            compiler.wait(group)
            waited_s = time.monotonic() - began_s
            for row in measured(group, device, best):
                _show(session, row)
            torch.cuda.empty_cache()
            print(f"    {time.monotonic() - began_s:.1f} s, {waited_s:.1f} of them for the compiler", flush=True)
    finally:
        compiler.close()
    for row in conclusions(best):
        _show(session, row)


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


def measured(group: Group, device: Any, best: dict[tuple[str, str], Result]) -> list[Row]:
    """Every way of a group: checked, then timed in turns on a stream of its own; rows case by case, the fastest first."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
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
    _heat(found[0].timed)
    for turn in range(ROUNDS):
        for each in found if turn % 2 else reversed(found):
            each.timed.times_s.append(each.timed.time_s())
    read_s = READ_BYTES / found[0].timed.median_s
    cudnn = next((each.timed.median_s for each in found if each.timed.way.name == CUDNN), None)
    yield _read_row(group, found[0])
    for case in group.cases:
        for each in sorted((each for each in found if each.case is case), key=lambda each: each.timed.median_s):
            yield _row(group, case, each, read_s, cudnn, best)
    yield from lost


def _read() -> Made:
    from backends.triton.read import row_sums

    matrix = torch.ones(READ_BYTES // 4 // 16384, 16384, device=DEVICE)
    sums = torch.empty(len(matrix), device=DEVICE)
    return Made(None, Timed(Way(READ, [partial(row_sums, matrix, sums)])), READ_BYTES, 0.0)


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
            found.append(Timed(way))

    failure = caught(prepare, describe)
    if failure:
        return failure.reason
    return Made(case, found[0], inputs.bytes, inputs.rounding) if found else said[0]


def _heat(timed: Timed) -> None:
    """So that the clock is that of work that goes on."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < HEAT_S:
        timed.time_s()


def _read_row(group: Group, made: Made) -> Row:
    time_s = made.timed.median_s
    cells = (number(time_s, 1e6), number(READ_BYTES / time_s, 1e-9), "1", NOTHING, NOTHING)
    return Row(f"{group.name}: {READ}", cells, Verdict.INFO, {"times_s": made.timed.times_s})


def _row(group: Group, case: Case, made: Made, read_s: float, cudnn: float | None, best: dict[tuple[str, str], Result]) -> Row:
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


def _show(session: Session, row: Row) -> None:
    session.record.add(row)
    print("  ".join([f"{row.name:<100}", *(f"{cell:>9}" for cell in row.cells), row.verdict.value, row.note]), flush=True)


PART = Part(
    name="decode_kernels",
    shows="roofbench's own paged decoding beside cuDNN on contiguous keys and the read bandwidth, sustained, in turns",
    headings=("us", "GB/s", "of read", "over cuDNN", "error"),
    run=run,
    foot=("The ratio is cuDNN's time on contiguous bf16 keys over that of the row, each the median of the turns.",),
)

if __name__ == "__main__":
    run_as_script(PART)
