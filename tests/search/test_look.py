"""One look: what it takes, and that it leaves nothing behind."""

from collections.abc import Sequence
from typing import Any

import pytest

from suite.case import Case, Regime, Workload, items
from suite.measure.look import BRIEF_S, LEAST_SAMPLES, LONG_S, Glimpse, Look, Unsupported
from tests.fake.backend import FakeBackend, FakeKernel, FakeSampler

WARM = Regime("warm", "sustained", "device")


def case(side: int = 1024) -> Case:
    return Case(Workload("gemm", "bf16", items({"m": side, "n": side, "k": side, "layout": "nt"})), "library", "fake", WARM)


class Counting(FakeBackend):
    """Knows how many kernels are alive, and can refuse to make a sampler."""

    @property
    def alive(self) -> int:
        return self._alive


def test_a_look_lasts_about_as_long_as_asked() -> None:
    look = Look(Counting({}), case(), seed=1, sample_s=1e-3)
    look.take(1e-3)  # tells how long a launch is
    for seconds in (1e-3, 1e-2):
        assert sum(look.take(seconds).durations_ns) * 1e-9 == pytest.approx(seconds, rel=0.05)


def test_a_look_that_is_shorter_than_two_launches_takes_two() -> None:
    look = Look(Counting({}), case(), seed=1, sample_s=1e-3)
    assert len(look.take(0.0).durations_ns) == LEAST_SAMPLES


class Noting(Counting):
    """Notes which dispatch each sampler is for, and how many samples it is asked for."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.asked: list[tuple[str, int]] = []

    def sampler(self, kernel: FakeKernel, case: Case, sample_s: float) -> FakeSampler:
        made = super().sampler(kernel, case, sample_s)
        sample, dispatch = made.sample, case.regime.dispatch

        def noted(count: int) -> Sequence[int]:
            self.asked.append((dispatch, count))
            return sample(count)

        made.sample = noted  # type: ignore[method-assign]
        return made


def test_a_long_launch_is_looked_at_briefly_without_the_sampler_of_its_regime() -> None:
    """The launch that told its length is the first look, the next is one more; a look that is not brief gets the sampler."""
    backend = Noting({"flop_s": {"bf16": 1e12}})
    look = Look(backend, case(2048), seed=1, sample_s=1e-3)
    assert look.take(0.0).durations_ns[0] * 1e-9 > LONG_S
    assert backend.asked == [("call", 1)]
    assert len(look.take(0.0).durations_ns) == 1
    assert backend.asked == [("call", 1)] * 2
    look.take(BRIEF_S)
    look.take(0.0)
    assert [dispatch for dispatch, _ in backend.asked[2:]] == ["device"] * 2
    look.close()
    assert backend.alive == 0


def test_a_look_from_idle_is_never_brief() -> None:
    backend = Noting({"flop_s": {"bf16": 1e12}})
    Look(backend, case(2048), seed=1, sample_s=1e-3).take(0.0, idle_s=1e-6)
    assert [dispatch for dispatch, _ in backend.asked] == ["call", "device"]


def test_a_short_launch_is_timed_as_its_regime_asks_from_the_first_look_on() -> None:
    backend = Noting({})
    Look(backend, case(), seed=1, sample_s=1e-3).take(0.0)
    assert [dispatch for dispatch, _ in backend.asked] == ["call", "device"]


def test_where_single_launches_are_not_offered_no_look_is_brief() -> None:
    class Without(Noting):
        def supports(self, case: Case) -> str | None:
            return "no calls" if case.regime.dispatch == "call" else super().supports(case)

    backend = Without({"flop_s": {"bf16": 1e12}})
    Look(backend, case(2048), seed=1, sample_s=1e-3).take(0.0)
    assert backend.asked == [("device", LEAST_SAMPLES)]


def test_nothing_is_held_once_it_is_closed() -> None:
    backend = Counting({})
    look = Look(backend, case(), seed=1, sample_s=1e-3)
    assert backend.alive == 1
    look.close()
    look.close()
    assert backend.alive == 0


def test_a_sampler_that_cannot_be_made_leaves_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Counting({})

    def refuse(*_: object) -> None:
        raise RuntimeError("no sampler")

    monkeypatch.setattr(backend, "sampler", refuse)
    with pytest.raises(RuntimeError, match="no sampler"):
        Look(backend, case(), seed=1, sample_s=1e-3)
    assert backend.alive == 0


def test_what_is_not_offered_is_said_and_not_prepared() -> None:
    backend = Counting({"faults": {"1024x1024x1024": "unsupported"}})
    with pytest.raises(Unsupported, match="planted: unsupported"):
        Look(backend, case(), seed=1, sample_s=1e-3)
    assert backend.alive == 0


def test_a_glimpse_crosses_the_process_boundary_whole() -> None:
    glimpse = Glimpse((3, 1, 2), 4)
    assert Glimpse.from_json(glimpse.to_json()) == glimpse


@pytest.mark.parametrize(
    "data", [{"durations_ns": [], "launches": 1}, {"durations_ns": [0], "launches": 1}, {"durations_ns": [1], "launches": 0}]
)
def test_what_no_look_can_have_taken_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        Glimpse.from_json(data)
