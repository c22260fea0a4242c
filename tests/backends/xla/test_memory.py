"""Memory that gives out behind a call that has returned: JAX tells it to whoever waits for the result."""

from typing import Any

import pytest

from backends.jax import kernel as kernels
from backends.jax.data import Operand
from backends.jax.kernel import XlaKernel
from backends.xla import XlaBackend
from suite.outcome import Outcome
from tests.backends.cases import gemm_case

CASE = gemm_case("fp32", 16, 16, 16, backend="xla")


class NoRoom:
    """The result of a call for which there was no memory."""

    def block_until_ready(self) -> None:
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 300219760640 bytes.")


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


@pytest.mark.parametrize(
    ("name", "given"),
    [("drawn", lambda *_: Operand(NoRoom())), ("check.poisoned", lambda *_: NoRoom())],  # type: ignore[arg-type]
    ids=["inputs", "outputs"],
)
def test_what_has_no_room_is_told_when_it_is_prepared(
    backend: XlaBackend, monkeypatch: pytest.MonkeyPatch, name: str, given: Any
) -> None:
    room, _, function = name.rpartition(".")
    monkeypatch.setattr(getattr(kernels, room) if room else kernels, function, given)
    with pytest.raises(RuntimeError, match="Out of memory") as lost:
        backend.prepare(CASE, 2, seed=3)
    assert backend.classify(lost.value).outcome is Outcome.OUT_OF_MEMORY


def test_fresh_data_that_have_no_room_are_told_when_they_are_drawn(
    backend: XlaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = backend.prepare(CASE, 1, seed=3)
    assert isinstance(kernel, XlaKernel)
    monkeypatch.setattr(kernels, "drawn", lambda *_: Operand(NoRoom()))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Out of memory"):
        kernel.refill(4)
