"""Attention's kernels as they are launched, on tensors without memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from backends.targets.made import Made, empty
from backends.targets.refused import refuse
from backends.triton.attention.call import Gradients, Operands, backward_calls, forward_call, hopper_call
from backends.triton.attention.choices import (
    choices_of_forward,
    choices_of_keys,
    choices_of_queries,
    hopper_backward_choices,
    hopper_choices,
    spared_words,
)
from backends.triton.attention.config import BackwardConfig
from backends.triton.attention.hopper_backward_call import hopper_backward_calls, room_for
from backends.triton.attention.port import GLUON, refused
from backends.triton.attention.problem import FULL, Problem, causal
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.port import emulation

SMALL = BackwardConfig(16, 16, 4, 1)  # of the kernel that is not looked at


def forward(device: Device, **given: Any) -> Made:
    """The portable kernel; ``given`` makes a ``Problem``, ``is_causal`` its mask."""
    problem = problem_of(**given)
    refuse(refused("triton", problem, device, backward=False))
    tensors = operands(problem)
    made = _made(problem, choices_of_forward(problem, device), lambda config: [forward_call(problem, config, device, tensors)])
    return replace(made, spared_words=partial(spared_words, problem, device))


def gluon(device: Device, **given: Any) -> Made:
    """The kernel for Hopper."""
    problem = problem_of(**given)
    refuse(refused(GLUON, problem, device, backward=False))
    tensors = operands(problem)
    return _made(problem, hopper_choices(problem), lambda config: [hopper_call(problem, config, device, tensors)])


def gluon_prepare_blocks(device: Device, **given: Any) -> Made:
    """Where the sums of the gradients for Hopper begin."""
    return _gluon_gradients(device, problem_of(**given), 1)


def gluon_gradients(device: Device, **given: Any) -> Made:
    """The gradients for Hopper."""
    return _gluon_gradients(device, problem_of(**given), 2)


def gluon_round_sums(device: Device, **given: Any) -> Made:
    """dQ from its sums."""
    return _gluon_gradients(device, problem_of(**given), 3)


def row_products(device: Device, **given: Any) -> Made:
    """The backward pass's sums of rows, which have no configuration of their own."""
    made = keys(device, **given)
    return Made(made.configs[:1], lambda config: made.calls(config)[:1], first_fitting=True)


def keys(device: Device, **given: Any) -> Made:
    """Gradients of keys and values, after the sums of rows."""
    problem = problem_of(**given)
    return _gradients(device, problem, choices_of_keys(problem, device), lambda config: (config, SMALL), slice(0, 2))


def queries(device: Device, **given: Any) -> Made:
    """Gradients of queries."""
    problem = problem_of(**given)
    return _gradients(device, problem, choices_of_queries(problem, device), lambda config: (SMALL, config), slice(2, 3))


def problem_of(*, is_causal: bool = False, **given: Any) -> Problem:
    """As the kernels see it; V of fp8 is given transposed."""
    mask = causal(given["q_len"], given["kv_len"]) if is_causal else FULL
    return Problem(**given, mask=mask, v_transposed=given["format"] == "fp8_e4m3")


def operands(problem: Problem) -> Operands:
    """Q, K, V, the result and what is summed of each row, with the scales of fp8."""
    kind, wide = problem.format, "bf16" if problem.format == "fp8_e4m3" else problem.format
    q = empty(problem.batch, problem.q_heads, problem.q_len, problem.qk_dim, kind=kind)
    k = empty(problem.batch, problem.kv_heads, problem.kv_len, problem.qk_dim, kind=kind)
    of_v = (problem.v_dim, problem.kv_len) if problem.v_transposed else (problem.kv_len, problem.v_dim)
    v = empty(problem.batch, problem.kv_heads, *of_v, kind=kind)
    o = empty(problem.batch, problem.q_heads, problem.q_len, problem.v_dim, kind=wide)
    rows = empty(problem.batch, problem.q_heads, problem.q_len)
    return Operands(q, k, v, o, rows, rows, rows, rows)


def backward(problem: Problem, configs: Sequence[BackwardConfig], device: Device) -> Sequence[Call]:
    """The three calls of a backward pass: of keys and of queries by a configuration each."""
    given = operands(problem)
    gradients = Gradients(given.o, given.q, given.k, given.v, given.lse)
    of_keys, of_queries = configs
    return backward_calls(problem, of_keys, of_queries, device, given, gradients)


def _gradients(
    device: Device,
    problem: Problem,
    configs: Sequence[BackwardConfig],
    pair: Callable[[Any], Sequence[BackwardConfig]],
    wanted: slice,
) -> Made:
    refuse(refused("triton", problem, device, backward=True))
    return _made(problem, configs, lambda config: backward(problem, pair(config), device)[wanted])


def _gluon_gradients(device: Device, problem: Problem, launches: int) -> Made:
    """The first of the three launches; the product spares the few words that the second of them spills."""
    refuse(refused(GLUON, problem, device, backward=True))
    held = operands(problem)
    given, room = Gradients(held.o, held.q, held.k, held.v, held.lse), room_for(problem, torch.device("meta"))
    return Made(
        hopper_backward_choices(),
        lambda config: hopper_backward_calls(problem, config, held, given, room)[:launches],
        emulation=partial(emulation, format_name=problem.format) if launches == 2 else None,
    )


def _made(problem: Problem, configs: Sequence[Any], calls: Callable[[Any], Sequence[Call]]) -> Made:
    return Made(configs, calls, first_fitting=True, emulation=partial(emulation, format_name=problem.format))
