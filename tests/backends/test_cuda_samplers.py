"""The CUDA samplers' logic, on a device with a scripted clock."""

from collections.abc import Collection

import pytest

from backends.torch.cuda_graph import NODES_AT_MOST, RING, GraphSampler, Warm
from backends.torch.cuda_spin import BATCH, SPIN_CYCLES, SpinSampler
from backends.torch.graph_names import parse_names
from suite.backend import Counting
from tests.backends.fake_cuda import FakeCuda, FakeFlush, FakeKernel


@pytest.mark.parametrize("external", [True, False])
def test_a_graph_gives_back_the_time_of_its_launches(external: bool) -> None:
    cuda = FakeCuda(external=external)
    sampler = GraphSampler(FakeKernel(cuda, sets=3, seconds=1e-5), 3, sample_s=0.002, cuda=cuda)
    assert sampler.launches == 201
    assert sampler.details["events"] == ("in the graph" if external else "around each replay")
    for duration_ns in sampler.sample(25):
        assert duration_ns == pytest.approx(sampler.launches * 1e4, rel=1e-6)


def test_cold_launches_rotate_evenly_and_in_order() -> None:
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, sets=4, seconds=1e-4), 4, sample_s=0.002, cuda=cuda)
    cuda.launched.clear()
    sampler.sample(3)
    assert cuda.launched == [0, 1, 2, 3] * (3 * sampler.launches // 4)


@pytest.mark.parametrize("kept", [True, False])
def test_warm_launches_stay_with_one_set_in_each_graph(kept: bool) -> None:
    """One launch ahead of the timed ones brings back what the graph before displaced, and is in no sample."""
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, sets=3, seconds=1e-4), 3, sample_s=0.002, cuda=cuda, warm=Warm(kept))
    assert sampler.launches == 20
    cuda.launched.clear()
    samples = sampler.sample(4)
    each = sampler.launches + kept
    assert cuda.launched == [0] * each + [1] * each + [2] * each + [0] * each
    assert list(samples) == pytest.approx([sampler.launches * 1e5] * 4)


def test_warm_launches_of_one_set_need_none_ahead() -> None:
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, sets=1, seconds=1e-4), 1, sample_s=0.002, cuda=cuda, warm=Warm(True))
    cuda.launched.clear()
    sampler.sample(3)
    assert len(cuda.launched) == 3 * sampler.launches


def test_many_sets_of_tiny_warm_launches_hold_no_more_nodes_than_few() -> None:
    cuda = FakeCuda()
    few, many = (
        GraphSampler(FakeKernel(cuda, sets=sets, seconds=1e-6), sets, sample_s=0.01, cuda=cuda, warm=Warm(True))
        for sets in (1, 16)
    )
    assert many.launches * 16 == few.launches * RING == NODES_AT_MOST * RING


def test_where_events_stand_around_a_replay_warm_launches_all_use_one_set() -> None:
    """A launch ahead would be timed, and without it a graph of one launch would time a cold one and call it warm."""
    cuda = FakeCuda(external=False)
    sampler = GraphSampler(FakeKernel(cuda, sets=2, seconds=0.05), 2, sample_s=0.002, cuda=cuda, warm=Warm(True))
    assert (sampler.launches, sampler.details["sets"]) == (1, 1)
    cuda.launched.clear()
    assert list(sampler.sample(3)) == pytest.approx([5e7] * 3)
    assert cuda.launched == [0, 0, 0]
    sampler.replay()
    assert set(cuda.launched) == {0, 1}


def test_long_launches_alternate_between_samples_across_calls() -> None:
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, sets=2, seconds=0.05), 2, sample_s=0.002, cuda=cuda)
    assert sampler.launches == 1
    cuda.launched.clear()
    samples = [*sampler.sample(1), *sampler.sample(3), *sampler.sample(2)]
    assert cuda.launched == [0, 1, 0, 1, 0, 1]
    assert samples == [pytest.approx(5e7)] * 6


def test_more_samples_than_graphs_in_the_ring() -> None:
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, sets=1, seconds=1e-4), 1, sample_s=0.002, cuda=cuda)
    assert sampler.details["graphs"] == RING
    assert len(sampler.sample(RING * 5 + 1)) == RING * 5 + 1


def test_sampling_captures_nothing() -> None:
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, sets=2, seconds=1e-5), 2, sample_s=0.002, cuda=cuda)
    captured = cuda.graphs_captured
    sampler.sample(20)
    sampler.replay()
    assert cuda.graphs_captured == captured


def test_a_host_slower_than_the_device_is_not_in_a_sample() -> None:
    """10 us of host time an operation, 1 us of device time a launch: only the launches count."""
    cuda = FakeCuda(host_s=1e-5)
    sampler = GraphSampler(FakeKernel(cuda, sets=1, seconds=1e-6), 1, sample_s=0.001, cuda=cuda)
    before = sampler.launches * 1e3
    # On a replay the fake charges host time to every node, as no real device does; so the nodes are charged none here.
    cuda.host_s = 0.0
    assert list(sampler.sample(5)) == pytest.approx([before] * 5, rel=1e-6)


@pytest.mark.parametrize(("sets", "seconds"), [(3, 1e-5), (2, 0.05)])
def test_a_replay_reaches_every_set(sets: int, seconds: float) -> None:
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, sets=sets, seconds=seconds), sets, sample_s=0.002, cuda=cuda)
    cuda.launched.clear()
    sampler.replay()
    assert set(cuda.launched) == set(range(sets))


def test_a_warm_replay_reaches_the_sets_that_are_not_timed() -> None:
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, sets=3, seconds=1e-5), 1, sample_s=0.002, cuda=cuda)
    cuda.launched.clear()
    sampler.sample(4)
    assert set(cuda.launched) == {0}
    sampler.replay()
    assert set(cuda.launched) == {0, 1, 2}


def test_what_cannot_be_captured_is_refused() -> None:
    cuda = FakeCuda(capturable=False)
    before = cuda.current_stream()
    with pytest.raises(RuntimeError, match="capturing"):
        GraphSampler(FakeKernel(cuda, sets=1, seconds=1e-5), 1, sample_s=0.002, cuda=cuda)
    assert cuda.current_stream() is before


def test_the_spin_hides_the_host_and_the_flush_is_outside() -> None:
    cuda = FakeCuda(host_s=1e-5)
    sampler = SpinSampler(FakeKernel(cuda, sets=2, seconds=3e-6), 2, FakeFlush(cuda, 5e-5), cuda=cuda)
    cuda.launched.clear()
    assert list(sampler.sample(5)) == pytest.approx([3000] * 5)
    assert cuda.launched == [-1, 0, -1, 1, -1, 0, -1, 1, -1, 0]
    assert sampler.details["hidden"]
    assert sampler.details["flush_bytes"] == 1 << 20


def test_a_spin_that_ends_too_early_is_made_longer_and_the_batch_taken_again() -> None:
    """BATCH launches at 4 operations of 100 us each outlast a first spin of 2 ms."""
    cuda = FakeCuda(host_s=1e-4)
    sampler = SpinSampler(FakeKernel(cuda, sets=1, seconds=3e-6), 1, None, cuda=cuda)
    samples = sampler.sample(BATCH)
    assert list(samples) == pytest.approx([3000] * BATCH)
    assert sampler.details["spin_cycles"] > SPIN_CYCLES
    assert sampler.details["hidden"]


def test_work_of_another_stream_is_in_no_sample() -> None:
    cuda = FakeCuda()
    sampler = SpinSampler(FakeKernel(cuda, sets=1, seconds=3e-6), 1, None, cuda=cuda)
    cuda.elsewhere_s = cuda.now_s + 1.0
    assert list(sampler.sample(BATCH + 1)) == pytest.approx([3000] * (BATCH + 1))


class LazyKernel(FakeKernel):
    """Waits for the device the first time each set is launched, as a kernel does that is loaded only then."""

    def __init__(self, cuda: FakeCuda, sets: int, seconds: float) -> None:
        super().__init__(cuda, sets, seconds)
        self.loaded_behind: dict[int, int] = {}

    def enqueue(self, set_index: int) -> None:
        if set_index not in self.loaded_behind:
            self.loaded_behind[set_index] = self._cuda.spins
            self._cuda.synchronize()
        super().enqueue(set_index)


def test_every_kernel_is_loaded_before_the_first_spin() -> None:
    cuda = FakeCuda()
    kernel = LazyKernel(cuda, sets=3, seconds=3e-6)
    flush = LazyKernel(cuda, sets=1, seconds=1e-6)
    SpinSampler(kernel, 3, CallingFlush(flush), cuda=cuda).sample(7)
    assert kernel.loaded_behind == {0: 0, 1: 0, 2: 0}
    assert flush.loaded_behind == {0: 0}


class CallingFlush:
    size_bytes = 1 << 20

    def __init__(self, kernel: FakeKernel) -> None:
        self._kernel = kernel

    def __call__(self) -> None:
        self._kernel.enqueue(0)


def test_a_kernel_that_is_loaded_behind_a_spin_costs_a_batch_and_stands_in_none() -> None:
    """The spin ends by itself: the batch is late, not stuck, and is taken again."""
    cuda = FakeCuda()
    kernel = LazyKernel(cuda, sets=1, seconds=3e-6)
    sampler = SpinSampler(kernel, 1, None, cuda=cuda)
    kernel.loaded_behind.clear()
    spins = cuda.spins
    assert list(sampler.sample(5)) == pytest.approx([3000] * 5)
    assert kernel.loaded_behind == {0: spins + 1}
    assert cuda.spins == spins + 2
    assert sampler.details["hidden"]


def test_samples_come_in_the_number_asked_for() -> None:
    cuda = FakeCuda()
    sampler = SpinSampler(FakeKernel(cuda, sets=1, seconds=3e-6), 1, None, cuda=cuda)
    for count in (1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 5):
        assert len(sampler.sample(count)) == count


DOT = r"""digraph dot {
subgraph cluster_1 {
label="graph_1" graph[style="dashed"];
"graph_1_node_0"[style="solid" shape="rectangle" label="0
MEMSET
"];
"graph_1_node_1"[style="bold" shape="record" label="{KERNEL
| {ID | 1 (topoId: 1) | nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT\<\<\<132,384,213248\>\>\>}
| {{node handle | func handle} | {0x000055E7277A5C20 | 0x000055E7270A5A90}}
| {cooperative | 0}
}"];
"graph_1_node_2"[style="bold" shape="record" label="{KERNEL
| {ID | 2 (topoId: 0) | _row_sums\<\<\<\{64,1\},256,1024\>\>\>}
| {priority | 0}
}"];
"graph_1_node_1" -> "graph_1_node_2" [headlabel=0];
}
}
"""


def test_kernel_names_are_read_from_the_drivers_dump() -> None:
    assert parse_names(DOT) == ["nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", "_row_sums"]
    assert parse_names("digraph dot {}") == []


class ReturningKernel(FakeKernel):
    """Leaves results in a library's own buffers until they are handed over, which takes as long as a launch."""

    hands_over = True

    def __init__(self, cuda: FakeCuda, sets: int, seconds: float) -> None:
        super().__init__(cuda, sets, seconds)
        self.handed_over: list[int] = []
        self._returned: set[int] = set()

    def enqueue(self, set_index: int) -> None:
        super().enqueue(set_index)
        self._cuda.run(lambda: self._returned.add(set_index))

    def hand_over(self, sets: Collection[int]) -> None:
        for index in sorted(sets):
            self._cuda.run(lambda index=index: self._copy(index))

    def _copy(self, index: int) -> None:
        self._cuda.device_s += self._seconds
        self._returned.remove(index)
        self.handed_over.append(index)


def test_results_are_handed_over_behind_the_time_that_is_taken() -> None:
    cuda = FakeCuda()
    kernel = ReturningKernel(cuda, sets=3, seconds=1e-4)
    sampler = GraphSampler(kernel, 3, sample_s=0.002, cuda=cuda)
    assert "copied into the outputs" in sampler.details["untimed"]
    assert sampler.sample(4) == [pytest.approx(sampler.launches * 1e5)] * 4
    kernel.handed_over.clear()
    sampler.replay()
    assert sorted(set(kernel.handed_over)) == [0, 1, 2]


def test_sets_that_a_graph_does_not_launch_are_not_handed_over_in_it() -> None:
    cuda = FakeCuda()
    kernel = ReturningKernel(cuda, sets=2, seconds=0.05)
    sampler = GraphSampler(kernel, 2, sample_s=0.002, cuda=cuda)
    kernel.handed_over.clear()
    sampler.sample(1)
    assert kernel.handed_over == [0]


def test_where_handing_over_would_be_timed_no_graph_is_made() -> None:
    cuda = FakeCuda(external=False)
    with pytest.raises(RuntimeError, match="would time how results are handed over"):
        GraphSampler(ReturningKernel(cuda, sets=1, seconds=1e-4), 1, sample_s=0.002, cuda=cuda)


class FakeClock:
    """Counts one reading before and one after each launch of its graph; ``lost`` is the replay over which it saw nothing."""

    def __init__(self, cuda: FakeCuda, lost: int | None = None) -> None:
        self.cuda, self.lost = cuda, lost
        self.ends: list[int] = []
        self.read = 0

    def enqueue(self, end: int) -> None:
        self.ends.append(end)

    def khz(self) -> int | None:
        self.read += 1
        return None if self.read == self.lost else 1_000_000 + self.read


def test_the_clock_is_counted_over_each_sample_from_before_its_first_event_to_behind_its_last() -> None:
    cuda = FakeCuda()
    clocks: list[FakeClock] = []

    def clock() -> FakeClock:
        clocks.append(FakeClock(cuda))
        return clocks[-1]

    sampler = GraphSampler(FakeKernel(cuda, sets=1, seconds=1e-4), 1, sample_s=0.002, clock=clock, cuda=cuda)
    assert isinstance(sampler, Counting)
    assert [each.ends for each in clocks] == [[0, 1]] * RING
    assert sampler.details["clock"] == "counted over each graph"
    durations_ns = sampler.sample(RING + 1)
    assert list(sampler.clocks_khz()) == [1_000_001] * RING + [1_000_002]
    assert len(durations_ns) == len(sampler.clocks_khz())
    sampler.sample(2)
    assert len(sampler.clocks_khz()) == 2


def test_one_sample_that_was_not_counted_leaves_none_counted() -> None:
    cuda = FakeCuda()
    sampler = GraphSampler(FakeKernel(cuda, 1, 1e-4), 1, sample_s=0.002, clock=lambda: FakeClock(cuda, lost=1), cuda=cuda)
    sampler.sample(3)
    assert not sampler.clocks_khz()


def test_around_a_replay_no_clock_is_counted() -> None:
    """Its readings would be in the time."""
    cuda = FakeCuda(external=False)
    sampler = GraphSampler(FakeKernel(cuda, 1, 1e-4), 1, sample_s=0.002, clock=lambda: FakeClock(cuda), cuda=cuda)
    sampler.sample(3)
    assert not sampler.clocks_khz()
    assert sampler.details["clock"] == "not counted"
