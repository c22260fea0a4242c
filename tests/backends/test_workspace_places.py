"""Each input set of a captured graph has a place of its own for what BLAS libraries work in, whatever memory is reused."""

import pytest
import torch

from backends.torch import capture, workspace_places
from backends.torch.cuda_graph import GraphSampler
from backends.torch.workspace_places import BYTES_AT_MOST, MIB, WorkspacePlaces
from tests.backends.fake_cuda import FakeCuda, FakeKernel


class Allocator:
    """Gives the lowest address that is free, as torch's does among blocks of one size, and one workspace until it is freed."""

    def __init__(self) -> None:
        self.taken: dict[int, int] = {}
        self.most = 0
        self.workspace: Held | None = None

    def hold(self, size_bytes: int) -> "Held":
        address = next(address for address in range(len(self.taken) + 1) if address not in self.taken)
        self.taken[address] = size_bytes
        self.most = max(self.most, len(self.taken))
        return Held(self, address)

    def free_workspaces(self) -> None:
        self.workspace = None


class Held:
    def __init__(self, allocator: Allocator, address: int) -> None:
        self.allocator, self.address = allocator, address

    def __del__(self) -> None:
        del self.allocator.taken[self.address]


class WorkingKernel:
    """Notes where the library worked for each launch."""

    sets = 4

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.worked: list[tuple[int, int]] = []

    def enqueue(self, set_index: int) -> None:
        if self.allocator.workspace is None:
            self.allocator.workspace = self.allocator.hold(MIB)
        self.worked.append((set_index, self.allocator.workspace.address))


def _places(allocator: Allocator, sets: int, workspace_bytes: int = MIB) -> WorkspacePlaces:
    return WorkspacePlaces(workspace_bytes, sets, allocator.free_workspaces, allocator.hold)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 0, 1, 2, 3], [0, 0, 1, 1, 3, 3], [3, 1, 2, 3, 0]])
def test_each_set_works_at_one_place_and_no_two_at_the_same(order: list[int]) -> None:
    allocator = Allocator()
    kernel = WorkingKernel(allocator)
    with _places(allocator, 4) as places:
        for _graph in range(3):
            for set_index in order:
                places.enqueue(kernel, set_index)
            places.leave()
    found = set(kernel.worked)
    assert len(kernel.worked) == 3 * len(order)
    assert len(found) == len(set(order)) == len({address for _set, address in found})
    assert allocator.most == len(set(order))


def test_sets_share_places_where_they_would_take_too_much_memory() -> None:
    allocator = Allocator()
    kernel = WorkingKernel(allocator)
    with _places(allocator, 4, BYTES_AT_MOST // 2) as places:
        for set_index in range(4):
            places.enqueue(kernel, set_index)
        places.leave()
    assert places.count == 2
    assert kernel.worked == [(0, 0), (1, 1), (2, 0), (3, 1)]


def test_one_workspace_larger_than_the_limit_is_still_one() -> None:
    assert _places(Allocator(), 4, 2 * BYTES_AT_MOST).count == 1


def test_nothing_is_held_where_launches_need_no_workspace() -> None:
    allocator = Allocator()
    with _places(allocator, 4, 0) as places:
        places.enqueue(FakeKernel(FakeCuda(), 4, 1e-4), 3)
        places.leave()
    assert (places.count, allocator.most) == (0, 0)


def test_memory_is_free_again_when_a_capture_fails() -> None:
    allocator = Allocator()
    kernel = WorkingKernel(allocator)

    def capture_two() -> None:
        with _places(allocator, 4) as places:
            places.enqueue(kernel, 0)
            places.enqueue(kernel, 1)
            raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(RuntimeError, match="capturing"):
        capture_two()
    allocator.free_workspaces()
    assert not allocator.taken


def test_a_sampler_says_where_libraries_worked_and_leaves_them_no_graphs_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda, allocator = FakeCuda(), Allocator()
    kernel = WorkingKernel(allocator)
    fake = FakeKernel(cuda, 4, 1e-4)

    class Both:
        sets = 4

        def enqueue(self, set_index: int) -> None:
            kernel.enqueue(set_index)
            fake.enqueue(set_index)

    monkeypatch.setattr(cuda, "memory_allocated", lambda: sum(allocator.taken.values()))
    for module in (capture, workspace_places):
        monkeypatch.setattr(module, "free_workspaces", allocator.free_workspaces)
    monkeypatch.setattr(WorkspacePlaces.__init__, "__defaults__", (allocator.free_workspaces, allocator.hold))
    sampler = GraphSampler(Both(), 4, sample_s=0.002, cuda=cuda)
    assert (sampler.details["workspaces"], sampler.details["workspace_bytes"]) == (4, MIB)
    assert {address for _set, address in kernel.worked} == {0, 1, 2, 3}
    assert not allocator.taken


def test_freeing_workspaces_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: freed.append(1), raising=False)
    workspace_places.free_workspaces()
    assert freed == [1]


def test_a_torch_without_cuda_has_none_to_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_cuda_clearCublasWorkspaces", raising=False)
    workspace_places.free_workspaces()
