"""The steps of ``decode_kernels``, in groups, the most important ones first."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from backends.triton.decode.problem import Problem
from suite.jobs.decode.cache import Heads
from suite.jobs.decode.lengths import lengths
from suite.jobs.decode.pages import Pages, paged

Changed = tuple[str, Problem, dict[str, Any]]
LLAMA = Problem("bf16", 32, 8, 128, 16)
FORMATS = (("bf16", "none"), ("fp8_e4m3", "tensor"), ("fp8_e4m3", "token"), ("int8", "token"))
MLA = Problem("bf16", 128, 1, 512, 64, tail=64, shared_values=True)


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
