"""One look: what it takes, and that it leaves nothing behind."""

import pytest

from suite.case import Case, Regime, Workload, items
from suite.measure.look import LEAST_SAMPLES, Glimpse, Look, Unsupported
from tests.fake.backend import FakeBackend

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
