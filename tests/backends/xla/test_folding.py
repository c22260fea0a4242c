"""Constants that fold and work that leaves its loop, planted where programs are made: neither becomes a time that is shown.

A compiler that knows the operands leaves their result in the place of the work.  In a loop the work is missed; in a single
launch the result is that of other data as soon as the data are others, which every check gives it.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backends.jax import kernel as kernels
from backends.jax import program
from backends.jax.hlo import is_product, parse
from backends.jax.kernel import XlaKernel
from backends.jax.program import Compiled, Operands, compile_launch, compile_loop
from backends.jax.slope import LoopTurns
from backends.jax.target import Target
from backends.xla import XlaBackend
from suite.case import Case
from tests.backends.cases import WARM, calibration_case, fresh_verdict, gemm_case, verdict

N = 64
GEMM = gemm_case("fp32", N, N, N, backend="xla", regime=WARM)
TRIAD = calibration_case("triad", 3 * 4 * N * N, backend="xla", regime=WARM)


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


@pytest.fixture
def beside(backend: XlaBackend) -> XlaBackend:
    """As on a device whose launches are timed inside a program."""
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    made._target = Target("cuda", (9, 0))
    return made


def known(compute: Callable[..., jax.Array], operands: Operands) -> Callable[..., jax.Array]:
    """The computation of these numbers, whatever it is given."""
    constants = [np.asarray(each) for each in operands]
    return lambda *given: compute(*(jnp.asarray(each) for each in constants))


def with_folded_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    def folded(compute: Any, operands: Operands, output: jax.Array) -> Compiled:
        return compile_launch(known(compute, operands), operands, output)

    monkeypatch.setattr(kernels, "compile_launch", folded)


def with_folded_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    def folded(compute: Any, operands: Any, *more: Any) -> Any:
        return compile_loop(known(compute, operands[0]), operands, *more)

    monkeypatch.setattr(kernels, "compile_loop", folded)


def prepared(backend: XlaBackend, case: Case) -> XlaKernel:
    made = backend.prepare(case, 1, seed=3)
    assert isinstance(made, XlaKernel)
    return made


@pytest.mark.parametrize("case", [GEMM, TRIAD], ids=["gemm", "triad"])
def test_a_launch_of_constants_is_incorrect(backend: XlaBackend, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """It is right of the data that it was made with, which is why a check draws others."""
    with_folded_launches(monkeypatch)
    kernel = prepared(backend, case)
    kernel.enqueue(0)
    assert verdict(kernel, case).passed
    assert not fresh_verdict(kernel, case, seed=4).passed


def test_the_constants_do_fold(backend: XlaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the bug were none: the compiled launch has a constant, and no product."""

    def products(kernel: XlaKernel) -> int:
        computations = parse(kernel._launch.text).computations
        return sum(is_product(each) for instructions in computations.values() for each in instructions)

    assert products(prepared(backend, GEMM)) == 1
    with_folded_launches(monkeypatch)
    assert products(prepared(backend, GEMM)) == 0


def test_a_loop_of_constants_is_none(beside: XlaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are timed in its place, and the reason is kept with their samples."""
    with_folded_loops(monkeypatch)
    monkeypatch.setattr("backends.jax.slope.QueueTurns.host_share", lambda turns, count: 0.1)
    kernel = prepared(beside, GEMM)
    with pytest.raises(program.NotALoop, match="left with 0 matrix products of 1"):
        LoopTurns(kernel).ready(2)
    sampler = beside.sampler(kernel, GEMM, 1e-4)
    assert sampler.method == "queue"
    assert "left with 0 matrix products" in sampler.details["why_queue"]
    assert fresh_verdict(kernel, GEMM, 8, sampler.replay).passed


def test_a_loop_of_constants_without_a_product_is_seen_by_its_copies(
    beside: XlaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is missed in a triad's: every turn copies the result that was folded."""
    with_folded_loops(monkeypatch)
    monkeypatch.setattr("backends.jax.slope.QueueTurns.host_share", lambda turns, count: 0.1)
    sampler = beside.sampler(prepared(beside, TRIAD), TRIAD, 1e-4)
    assert sampler.method == "queue"
    assert "bytes in every turn of the loop" in sampler.details["why_queue"]


@pytest.mark.parametrize("case", [GEMM, TRIAD], ids=["gemm", "triad"])
def test_work_that_leaves_its_loop_is_not_timed_there(beside: XlaBackend, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.setattr(program, "TIES", {"nothing": lambda operands, output: (operands, output)})
    monkeypatch.setattr("backends.jax.slope.QueueTurns.host_share", lambda turns, count: 0.1)
    sampler = beside.sampler(prepared(beside, case), case, 1e-4)
    assert sampler.method == "queue"
    assert "tied by nothing, XLA runs" in sampler.details["why_queue"]
    assert "once, outside the loop" in sampler.details["why_queue"]
