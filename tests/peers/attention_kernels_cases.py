"""The attentions of ``attention_kernels``, the most important ones first, and the configurations that are tried."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from backends.triton.attention.problem import FULL, Problem, causal
from tests.peers.attention_kernels_builds import GRADIENTS, HOPPER, HOPPER_GRADIENTS, PORTABLE, Build
from tests.peers.attention_kernels_inputs import Inputs
from tests.peers.attention_kernels_peers import theirs
from tests.peers.rotation import Way

TOKENS, HEADS, DIM = 16384, 16, 128


class Case(NamedTuple):
    """A problem with everything that computes it."""

    name: str
    problem: Problem
    builds: Sequence[Build]
    theirs: Sequence[tuple[str, Callable[[Inputs], Way]]]
    backward: bool = False


def problem_of(q_len: int, is_causal: bool, dim: int = DIM, format_name: str = "bf16", **changes: Any) -> Problem:
    """16k tokens in total, hidden 2048."""
    heads = HEADS * DIM // dim
    mask = causal(q_len, q_len) if is_causal else FULL
    return Problem(format_name, TOKENS // q_len, heads, heads, q_len, q_len, dim, dim, mask)._replace(**changes)


def cases() -> Iterator[Case]:
    """What a limit is given for first."""
    from backends.triton.attention.config import BackwardConfig, Config, HopperBackwardConfig, HopperConfig

    hopper = [HopperConfig(), HopperConfig(ordered=False), HopperConfig(stages=3, own_output=False)]
    portable = [Config(128, 64, 4, 2), Config(64, 64, 4, 3)]

    def forward(name: str, problem: Problem, ours: Sequence[Any], flash: bool = True) -> Case:
        builds = [Build(HOPPER if isinstance(each, HopperConfig) else PORTABLE, problem, each) for each in ours]
        return Case(name, problem, builds, theirs(problem, False) if flash else ())

    for q_len in (4096, 16384, 1024):
        for is_causal in (False, True):
            yield forward(_title(q_len, is_causal), problem_of(q_len, is_causal), [*hopper, *portable])
    of_keys = [BackwardConfig(64, 128, 8, 2), BackwardConfig(32, 128, 8, 3), BackwardConfig(64, 64, 4, 2)]
    of_queries = [BackwardConfig(128, 64, 8, 2), BackwardConfig(128, 128, 8, 2), BackwardConfig(64, 64, 4, 2)]
    for q_len in (4096, 16384, 1024):
        for is_causal in (False, True):
            problem = problem_of(q_len, is_causal)
            pairs = zip(of_keys, of_queries, strict=True)
            builds = [
                Build(HOPPER_GRADIENTS, problem, HopperBackwardConfig()),
                *(Build(GRADIENTS, problem, pair) for pair in pairs),
            ]
            yield Case(f"backward {_title(q_len, is_causal)}", problem, builds, theirs(problem, True), backward=True)
    for is_causal in (False, True):
        wide = problem_of(4096, is_causal, 256)
        narrow = problem_of(4096, is_causal, 64)
        yield forward(
            f"d256 {_title(4096, is_causal)}",
            wide,
            [
                HopperConfig(block=64, own_output=False),
                HopperConfig(block=64, own_output=False, ordered=False),
                Config(128, 64, 8, 2),
                Config(128, 32, 8, 3),
            ],
        )
        yield forward(
            f"d64 {_title(4096, is_causal)}",
            narrow,
            [HopperConfig(), HopperConfig(stages=3), HopperConfig(stages=3, ordered=False), Config(128, 64, 4, 2)],
        )
    grouped = problem_of(4096, True, q_heads=32, kv_heads=8)
    yield forward("GQA 32/8 " + _title(4096, True), grouped, [HopperConfig(), HopperConfig(ordered=False), *portable])
    deep = problem_of(4096, True, batch=1, q_heads=64, kv_heads=64, qk_dim=192)
    yield forward("MLA 192/128, 64 heads " + _title(4096, True), deep, [Config(128, 64, 8, 2), Config(128, 64, 4, 2)])
    fp8 = problem_of(4096, False, format_name="fp8_e4m3", v_transposed=True)
    eight = [Config(128, 128, 8, 2), Config(128, 64, 8, 3), Config(128, 128, 8, 3)]
    yield forward("fp8, V transposed, " + _title(4096, False), fp8, eight, flash=False)


def _title(q_len: int, is_causal: bool) -> str:
    return f"{'causal' if is_causal else 'full'} {q_len // 1024}k"
