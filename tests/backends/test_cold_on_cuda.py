"""Which sampler a case gets on CUDA: what is called cold must not find its inputs in the cache."""

from typing import Any, NamedTuple

import pytest

from backends.cuda import CudaBackend
from backends.torch import cuda_graph
from suite.backend import DeviceInfo
from suite.measure.regimes import UNKNOWN_LLC_BYTES
from tests.backends.cases import COLD, WARM, gemm_case

LLC_BYTES = 60 * 2**20


class Sets(NamedTuple):
    """What a choice of sampler looks at."""

    sets: int
    set_bytes: int


class Chosen(NamedTuple):
    method: str
    sets: int
    flush: Any


FLUSH = object()


def chosen(monkeypatch: pytest.MonkeyPatch, kernel: Sets, regime: Any, llc_bytes: int | None = LLC_BYTES) -> Chosen:
    """The sampler of a backend that holds a device with this cache, and builds none."""
    monkeypatch.setattr(CudaBackend, "_flush", FLUSH)
    monkeypatch.setattr(CudaBackend, "_graph", lambda self, kernel, case, sample_s: Chosen("graph", kernel.sets, None))
    monkeypatch.setattr(CudaBackend, "_spin", lambda self, kernel, sets, flush, why: Chosen("spin", sets, flush))
    backend = CudaBackend()
    backend._device = DeviceInfo("cuda", 0, "a GPU", "u" * 16, 2**36, llc_bytes=llc_bytes)
    sampler: Any = backend.sampler(kernel, gemm_case("bf16", 64, 64, 64, backend="cuda", regime=regime), 0.002)  # type: ignore[arg-type]
    assert isinstance(sampler, Chosen)
    return sampler


@pytest.mark.parametrize(("sets", "set_bytes"), [(4096, 24 * 2**10), (2, 2**20), (1, LLC_BYTES), (3, LLC_BYTES - 1)])
def test_a_graph_replays_no_inputs_that_stay_in_the_cache(monkeypatch: pytest.MonkeyPatch, sets: int, set_bytes: int) -> None:
    """A replay clears no cache (tritonbench#519): sets that fit in three of them are flushed between launches."""
    found = chosen(monkeypatch, Sets(sets, set_bytes), COLD)
    assert (found.method, found.sets) == ("spin", sets)
    assert found.flush is FLUSH


def test_sets_that_pass_three_caches_need_no_flush_and_all_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, Sets(3, LLC_BYTES), COLD) == Chosen("graph", 3, None)


def test_a_cache_that_is_not_told_counts_as_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, Sets(3, UNKNOWN_LLC_BYTES - 1), COLD, None).flush is FLUSH
    assert chosen(monkeypatch, Sets(3, UNKNOWN_LLC_BYTES), COLD, None).method == "graph"


def test_warm_needs_no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, Sets(5, 2**20), WARM) == Chosen("graph", 5, None)


@pytest.mark.parametrize(
    ("regime", "set_bytes", "warm"),
    [
        (WARM, 2**20, cuda_graph.Warm(kept=True)),
        (WARM, 3 * LLC_BYTES - 1, cuda_graph.Warm(kept=True)),
        (WARM, 3 * LLC_BYTES, cuda_graph.Warm(kept=False)),  # nothing of it is found again: no launch ahead would bring it back
        (COLD, 3 * LLC_BYTES, None),
    ],
)
def test_warm_graphs_stay_with_one_set_each(monkeypatch: pytest.MonkeyPatch, regime: Any, set_bytes: int, warm: Any) -> None:
    monkeypatch.setattr(cuda_graph, "GraphSampler", lambda kernel, sets, sample_s, clock, warm: (sets, warm))
    monkeypatch.setattr(CudaBackend, "_no_clock", "no GPU")
    backend = CudaBackend()
    backend._device = DeviceInfo("cuda", 0, "a GPU", "u" * 16, 2**36, llc_bytes=LLC_BYTES)
    sampler: Any = backend.sampler(Sets(5, set_bytes), gemm_case("bf16", 64, 64, 64, backend="cuda", regime=regime), 0.002)  # type: ignore[arg-type]
    assert sampler == (5, warm)
