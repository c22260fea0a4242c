"""What the profiler's planes say of a program's kernels."""

from types import SimpleNamespace
from typing import Any

import pytest

from backends.jax.slope import SlopeSampler
from tests.fake.turns import ScriptedTurns
from tests.peers import xla_profiler
from tests.peers.xla_profiler import (
    PAIRS,
    RUNS_IN_A_PAIR,
    TIMES_AT_MOST,
    Event,
    Profiled,
    added,
    busy,
    device_events,
    differences,
    longest_kernel,
    taken_again,
    undisturbed,
)


def plane(name: str, **lines: list[tuple[str, float]]) -> Any:
    made = [
        SimpleNamespace(
            name=line.replace("_", " "), events=[SimpleNamespace(name=n, start_ns=0.0, duration_ns=ns) for n, ns in events]
        )
        for line, events in lines.items()
    ]
    return SimpleNamespace(name=name, lines=made)


def test_kernels_are_those_of_a_devices_streams() -> None:
    device = plane("/device:GPU:0", Stream_13=[("gemm", 1000.0), ("add", 2.0)], XLA_Ops=[("dot.1", 1000.0)])
    host = plane("/host:CPU", Stream_1=[("python", 5.0)])
    found = list(device_events(SimpleNamespace(planes=[host, device])))
    assert [event.name for event in found] == ["gemm", "add"]
    assert [event.seconds for event in found] == pytest.approx([1e-6, 2e-9])


def test_the_kernel_is_the_one_most_time_is_spent_in_not_the_most_frequent() -> None:
    events = [Event("add", 0.0, 1e-6)] * 50 + [Event("gemm", 0.0, 40e-6)] * 2
    assert longest_kernel(events) == "gemm"
    assert longest_kernel([]) is None


@pytest.mark.parametrize("disturbed", [0, 1])
def test_launches_are_those_that_a_slope_makes(monkeypatch: pytest.MonkeyPatch, disturbed: int) -> None:
    turns = ScriptedTurns(monkeypatch, rotations=2)
    sampler = SlopeSampler(turns, sets=1, sample_s=1e-4, resolution_s=1e-7)
    turns.ran.clear()
    turns.disturbed = sampler.details["turns"] if disturbed else None
    sampler.sample(PAIRS)
    assert taken_again(sampler) == disturbed
    assert RUNS_IN_A_PAIR * (PAIRS + disturbed) * sampler.launches == sum(turns.ran) * turns.rotations


def programs(pairs: int, launches: int, first_s: float, other_s: float) -> list[Event]:
    """Of each pair 2N launches and N, each two products and what counts them; a program's first launch takes its own time."""
    events: list[Event] = []

    def append(name: str, seconds: float) -> None:
        events.append(Event(name, events[-1].began_s + events[-1].seconds if events else 0.0, seconds))

    for turns in [2 * launches, launches] * pairs:
        for turn in range(turns):
            append("count", 1e-6)
            append("gemm", first_s if turn == 0 else other_s)
            append("gemm", other_s)
    return events


def test_what_a_launch_adds_has_nothing_of_a_programs_first_one() -> None:
    found = added(programs(4, 3, first_s=150e-6, other_s=100e-6), "gemm", 4, 3)
    assert found == pytest.approx([201e-6] * 4)


def test_kernels_that_run_at_once_count_once() -> None:
    """A workspace is cleared while the product before it ends: 20 us of 30 are in it, then a pause, and one within another."""
    kernels = [
        Event("gemm", 0.0, 100e-6),
        Event("memset", 80e-6, 30e-6),
        Event("gemm", 200e-6, 100e-6),
        Event("add", 250e-6, 2e-6),
    ]
    assert busy(kernels) == pytest.approx(210e-6)
    assert busy([]) == 0.0


def test_products_that_are_not_those_of_every_launch_say_nothing() -> None:
    events = programs(4, 3, first_s=100e-6, other_s=100e-6)
    assert added(events[:-1], "gemm", 4, 3) == []
    assert added([], "gemm", 4, 3) == []


def test_pairs_are_compared_with_themselves() -> None:
    """The clock goes down from pair to pair by far more than the two sides differ."""
    kernels_s = [100e-6, 130e-6, 160e-6]
    durations_s = [3 * kernel_s * 1.01 for kernel_s in kernels_s]
    assert differences(durations_s, kernels_s, launches=3) == pytest.approx([0.01] * 3)
    with pytest.raises(ValueError, match="zip"):
        differences(durations_s[:2], kernels_s, launches=3)


def test_a_sampler_that_takes_nothing_again_is_undisturbed() -> None:
    assert taken_again(SimpleNamespace(details={})) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("disturbed", [1, TIMES_AT_MOST])
def test_samples_of_which_a_pair_was_taken_again_are_not_compared(monkeypatch: pytest.MonkeyPatch, disturbed: int) -> None:
    sampler = SimpleNamespace(details={"pairs_taken_again": 0})
    seen = []

    def taken(_: Any) -> Profiled:
        seen.append(len(seen))
        sampler.details["pairs_taken_again"] += len(seen) <= disturbed
        return Profiled([float(len(seen))], [], 1)

    monkeypatch.setattr(xla_profiler, "profiled", taken)
    found = undisturbed(sampler)  # type: ignore[arg-type]
    if disturbed < TIMES_AT_MOST:
        assert found is not None
        assert found.durations_s == [disturbed + 1]
    else:
        assert found is None
        assert len(seen) == TIMES_AT_MOST
