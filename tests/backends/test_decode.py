"""Decoding on CPU torch: every implementation that runs there, and what is refused with which reason."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from backends.torch import jobs
from backends.torch.data import DISTRIBUTIONS
from backends.torch.decode import packages
from backends.torch.decode.library import OnePiece
from backends.torch.decode.operands import allocate
from backends.torch.decode.stored import as_bytes
from backends.torch.target import Target
from suite.case import Case, items
from suite.jobs.decode import IMPLEMENTATIONS, DecodeJob, sizes_of
from suite.jobs.decode.job import SCRATCH_BYTES, bytes_of, is_in_one_piece
from suite.jobs.emulation import as_executed
from tests.backends.cases import any_cpu
from tests.backends.decode_cases import STORED, by_definition, decode_case, fresh_verdict, prepared, run_all

HERE = ("naive", "library_flash", "library_math")
CUDA = Target(torch.device("cpu"), "cuda", {}, {}, "sm_90")


@pytest.mark.parametrize("page_size", [1, 3, 16, 128])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"lengths": "skewed", "heads": "4/1x32"},
        {"lengths": "uniform", "q_len": 3},
        {"shared_prefix": True, "heads": "2x24"},
        {"heads": "4/1x48/32"},
        {"order": "contiguous"},
    ],
    ids=str,
)
def test_the_reference_is_what_the_definition_says_whatever_the_pages(more: dict[str, Any], page_size: int) -> None:
    shared = page_size * -(-20 // page_size) if more.get("shared_prefix") and page_size < 128 else 0
    for name, scaling in (("fp16", None), ("int8", "token"), ("fp8_e4m3", "tensor")):
        case = decode_case("naive", name, page_size=page_size, kv_len=40, scaling=scaling, **{**more, "shared_prefix": shared})
        kernel = prepared(case)
        right, operands = by_definition(kernel, case), kernel.buffers[0].operands
        rows, columns = kernel.output_shape
        assert float((kernel.decoding.tile(operands, 0, 0, rows, columns) - right).norm() / right.norm()) < 1e-12
        vector = torch.randn(columns, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        projection, norms = kernel.decoding.look(operands, vector)
        assert float((projection - right @ vector).norm() / projection.norm()) < 1e-12
        assert torch.allclose(norms, right.norm(dim=1), rtol=1e-12)


@pytest.mark.parametrize("rows", [(0, 5), (3, 9), (11, 1), (7, 17)])
def test_a_tile_is_a_part_of_the_whole(rows: tuple[int, int]) -> None:
    case = decode_case("naive", "fp32", "4/2x64", 3, 33, q_len=2)
    kernel = prepared(case)
    whole = by_definition(kernel, case)
    found = kernel.decoding.tile(kernel.buffers[0].operands, rows[0], 8, rows[1], 30)
    assert torch.allclose(found, whole[rows[0] : sum(rows), 8:38], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "scaling"), STORED)
@pytest.mark.parametrize("page_size", [1, 7, pytest.param(16, marks=pytest.mark.thorough), 64])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"lengths": "skewed"},
        {"lengths": "uniform", "q_len": 3},
        {"shared_prefix": True},
        {"heads": "8/1x96/64"},
        {"heads": "4x32", "order": "contiguous"},
    ],
    ids=str,
)
def test_every_way_is_right_over_ragged_lengths_prefixes_and_pages(
    more: dict[str, Any], page_size: int, name: str, scaling: str | None
) -> None:
    shared = page_size * -(-32 // page_size) if more.get("shared_prefix") else 0
    for implementation in HERE:
        case = decode_case(implementation, name, page_size=page_size, scaling=scaling, **{**more, "shared_prefix": shared})
        if jobs.reason(case, any_cpu()) is None:
            result = fresh_verdict(prepared(case, 2), case, seed=5)
            assert result.passed, (implementation, result.reason)


def test_sequences_of_one_token_and_a_page_each() -> None:
    for kv_len in (1, 2, 16, 17):
        result = fresh_verdict(prepared(case := decode_case("naive", "fp32", kv_len=kv_len)), case, seed=5)
        assert result.passed, result.reason


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_distribution_passes(distribution: str) -> None:
    for name, scaling in STORED:
        for implementation in HERE:
            case = decode_case(implementation, name, kv_len=150, scaling=scaling, distribution=distribution)
            if jobs.reason(case, any_cpu()) is None:
                result = fresh_verdict(prepared(case), case, seed=6)
                assert result.passed, (implementation, name, result.reason)


def test_activations_of_either_type_stand_beside_eight_bits() -> None:
    for activation, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        case = decode_case("naive", "int8", scaling="token", activation=activation)
        kernel = prepared(case)
        assert kernel.buffers[0].q.data.dtype == kernel.buffers[0].o.dtype == dtype
        assert fresh_verdict(kernel, case, seed=5).passed


def test_a_set_touches_what_the_work_model_counts() -> None:
    """Places without a token are in the buffers, and in no launch."""
    for name, scaling, page_size in (("bf16", None, 128), ("int8", "token", 16), ("fp8_e4m3", "tensor", 1)):
        case = decode_case("naive", name, page_size=page_size, scaling=scaling, lengths="uniform", shared_prefix=0)
        kernel, work = prepared(case), DecodeJob().work(case.workload)
        each = kernel.buffers[0]
        pages, within = each.table.places // page_size, each.table.places % page_size
        touched = [as_bytes(cache.data)[pages, :, within] for cache in (each.k, each.v)]
        for cache in (each.k, each.v):
            if cache.scales is not None:
                touched.append(cache.scales[pages, :, within] if scaling == "token" else cache.scales)
        touched += [each.table.data[:, :-1][torch.from_numpy(each.table.used)], each.q.data, each.o]
        lengths_bytes = 3 * 4
        assert kernel.set_bytes == work.compulsory_bytes == sum(tensor.nbytes for tensor in touched) + lengths_bytes


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("bf16", {}),
        ("bf16", {"heads": "32/8x128", "page_size": 1, "order": "contiguous"}),
        ("bf16", {"heads": "4/1x48/32", "q_len": 2}),
        ("fp32", {"shared_prefix": 64}),
        ("bf16", {"lengths": "skewed", "batch": 40, "kv_len": 500, "heads": "2x8", "page_size": 1}),
        ("bf16", {"heads": "1x8", "kv_len": 1, "page_size": 128}),
        ("int8", {"q_len": 8, "heads": "128/1x8", "kv_len": 8}),
        ("int8", {"scaling": "token", "page_size": 128, "kv_len": 130}),
        ("fp8_e4m3", {"scaling": "tensor"}),
    ],
    ids=str,
)
def test_planned_memory_holds_a_set_and_a_copy_of_it_in_one_piece(name: str, more: dict[str, Any]) -> None:
    workload = decode_case("library_flash", name, **more).workload
    sizes, each = sizes_of(workload), allocate(workload, torch.device("cpu"))
    tensors = [tensor for operand in each.operands for tensor in operand.buffers]
    tensors += [each.table.places, each.o, each.lse]
    if is_in_one_piece(workload):
        piece = OnePiece(sizes, each)
        tensors += [piece.k] if sizes.has_shared_values else [piece.k, piece.v]
        tensors += [each.o]  # as much again, in a buffer of the library's own
    held = sum(tensor.nbytes for tensor in tensors)
    assert held <= DecodeJob().footprint(workload).total_bytes(1) - SCRATCH_BYTES


# Each of what is gathered: read from its page and written, read and written in fp32, read by a product.
@pytest.mark.parametrize(
    ("name", "more", "moved_bytes"),
    [
        # 32 sequences of 100 tokens as 112, in pages of 16; 2 KV heads of 64 columns of keys and as many of values.
        ("bf16", {"heads": "4/2x64", "batch": 32}, 32 * 112 * 2 * 128 * (2 + 2 + 2 + 4 + 4) + 6 * 32 * 4 * 112 * 4),
        # The values are a part of the keys, gathered once; two products read 64 and 48 columns of them.
        ("bf16", {"heads": "8/1x64/48", "batch": 2}, 2 * 112 * (64 * (2 + 2 + 2 + 4) + (64 + 48) * 4) + 6 * 2 * 8 * 112 * 4),
        # Every sequence reads its own prefix.
        ("fp32", {"heads": "2x64", "shared_prefix": 64}, 3 * 112 * 2 * 128 * (4 + 4 + 4 + 4 + 4) + 6 * 3 * 2 * 112 * 4),
        # Numbers are read and written once more for their scales, which are gathered too.
        (
            "int8",
            {"heads": "2x64", "scaling": "token"},
            3 * 112 * 2 * 128 * (1 + 1 + 1 + 4 + 4 + 4 + 4) + 3 * 112 * 2 * 2 * (4 + 4 + 4) + 6 * 3 * 2 * 112 * 4,
        ),
        ("int8", {"heads": "2x64", "scaling": "tensor"}, 3 * 112 * 2 * 128 * (1 + 1 + 1 + 4 * 4) + 8 + 6 * 3 * 2 * 112 * 4),
    ],
    ids=lambda each: str(each) if isinstance(each, str | dict) else "",
)
def test_naive_decoding_says_what_its_gathering_moves(name: str, more: dict[str, Any], moved_bytes: int) -> None:
    case = decode_case("naive", name, **more)
    work, kernel = DecodeJob().work(case.workload), prepared(case)
    executed = as_executed(work, kernel.describe())
    moved = bytes_of(case.workload)
    assert executed.traffic_bytes == moved_bytes + moved.table + moved.queries + moved.output
    assert executed.pipe == "fp32"
    assert kernel.execution == ("native" if name == "fp32" else "emulated")
    assert "traffic_bytes" not in prepared(decode_case("library_flash")).describe()


def test_in_one_piece_every_sequence_reads_its_own_prefix() -> None:
    case = decode_case("library_flash", shared_prefix=64)
    alone = DecodeJob().work(decode_case("library_flash").workload)
    described = prepared(case).describe()
    table = 3 * 7 * 4 + 3 * 4
    assert described["traffic_bytes"] == alone.compulsory_bytes - table
    assert described["bytes_without_sharing"] == alone.compulsory_bytes


def test_results_of_a_library_are_looked_at_where_the_check_looks() -> None:
    kernel = prepared(decode_case("library_flash"), 2)
    kernel.poison()
    kernel.enqueue(0)
    kernel.hand_over([0])
    assert bool(torch.isfinite(kernel.buffers[0].o).all())
    assert not bool(torch.isfinite(kernel.buffers[1].o).any())  # never launched
    kernel.enqueue(0)
    kernel.poison()  # forgets what was returned
    kernel.hand_over([0])
    assert not bool(torch.isfinite(kernel.buffers[0].o).any())


def test_launches_write_into_the_same_buffers() -> None:
    kernel = prepared(decode_case("naive", "fp16", q_len=2), 2)
    addresses = [each.o.data_ptr() for each in kernel.buffers]
    run_all(kernel)
    first = kernel.buffers[0].o.clone()
    kernel.poison()
    run_all(kernel)
    assert torch.equal(kernel.buffers[0].o, first)
    assert [each.o.data_ptr() for each in kernel.buffers] == addresses


def test_what_does_not_fit_a_host_is_refused_before_it_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.torch.decode.naive.memory_available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"gathered keys and values need.*smaller batches or kv_lens"):
        prepared(decode_case("naive"))


def test_the_description_is_json_and_names_what_ran_and_what_is_wasted() -> None:
    for implementation in HERE:
        described = prepared(decode_case(implementation, kv_len=100, shared_prefix=32)).describe()
        assert json.loads(json.dumps(described)) == described
        assert described["call"]
        assert described["pages"] == 2 + 3 * 5
        assert described["page_memory_wasted"] == pytest.approx(1 - (32 + 3 * 68) / (17 * 16))
        assert (
            sum(described["bytes"].values())
            == DecodeJob().work(decode_case("naive", shared_prefix=32).workload).compulsory_bytes
        )


def test_what_a_long_sequence_hides_is_said() -> None:
    short, long = (prepared(decode_case("naive", "bf16", "1x64", 1, length, page_size=1)) for length in (64, 4096))
    assert short.describe()["check_cannot_see"] == []
    assert "a single wrong page" in long.describe()["check_cannot_see"][0]


def test_what_the_latest_keys_have_of_a_query_is_said_where_they_have_any() -> None:
    """As many columns as the data needs; heads that are too narrow have all of theirs."""
    wanted = 1 + 0.5 * math.log(100)
    for heads, distribution, columns in (
        ("2x64", "normal", math.ceil(wanted * 8)),
        ("2x8", "normal", 8),
        ("2x64", "uniform", 64),
        ("2x128", "integer", math.ceil(wanted * 1.5 * 128**0.5)),
    ):
        described = prepared(decode_case("naive", heads=heads, distribution=distribution)).describe()
        assert described["latest_keys"] == {"columns_of_a_query": columns}
    for distribution in ("zeros", "constant"):
        assert "latest_keys" not in prepared(decode_case("naive", distribution=distribution)).describe()


def test_a_launch_asks_for_its_entries_of_the_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, found = prepared(decode_case("naive", "int8", scaling="token")), []
    select = torch.index_select

    def noted(data: torch.Tensor, dim: int, entries: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        found.append(entries)
        return select(data, dim, entries, out=out)

    monkeypatch.setattr(torch, "index_select", noted)
    kernel.enqueue(0)
    assert len(found) == 2
    assert found[0] is found[1]


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_every_implementation_of_the_job_has_a_way_through_torch(name: str) -> None:
    """Some run here, and the others say why they do not."""
    told = jobs.reason(decode_case(name), any_cpu())
    assert told is None or (told.startswith((name, f"implementation {name}")) and "\n" not in told)
    assert (told is None) == (name in HERE)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (decode_case("library_flash", heads="8/1x96/64"), "q,k,v to have the same last dimension"),
        (decode_case("library_flash", "int8"), "takes no int8"),
        (decode_case("library_flash", lengths="skewed"), "sequences of one length"),
        (decode_case("library_flash", q_len=2), "the first of several new tokens at the first key"),
        (decode_case("library_cudnn"), "library_cudnn is not on a CPU"),
        (decode_case("naiv"), "did you mean 'naive'"),
        (decode_case("naive", "bf17"), "did you mean 'bf16'"),
        (decode_case("naive", distribution="norml"), "did you mean 'normal'"),
        (decode_case("naive", order="randm"), "did you mean 'random'"),
        (decode_case("naive", semantics={"scaling": "token"}), "its numbers have no scales"),
        (decode_case("naive", "int8", semantics={"scaling": "row"}), "choose from: tensor, token"),
        (decode_case("naive", semantics={"accumulate": "fp16"}), "not in fp16"),
        (decode_case("naive", "int8", activation="fp32"), "queries are in bf16 or fp16, not in fp32"),
        (decode_case("naive", "bf16", activation="fp16"), "queries are in bf16, not in fp16"),
        (replace(decode_case("naive"), switches=items({"tf32": True})), "no switch 'tf32'"),
    ],
)
def test_refusals_say_why(case: Case, words: str) -> None:
    told = jobs.reason(case, any_cpu())
    assert told is not None
    assert words in told
    assert "\n" not in told


def test_flashinfer_says_how_to_get_it_and_what_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "installed", lambda: None)
    assert jobs.reason(decode_case("flashinfer"), CUDA) == "flashinfer is not installed; pip install flashinfer-python"
    monkeypatch.setattr(packages, "installed", lambda: "0.5")
    assert jobs.reason(decode_case("flashinfer", lengths="skewed"), CUDA) is None
    for case, words in (
        (decode_case("flashinfer", "int8"), "scales as numbers of the host"),
        (decode_case("flashinfer", "fp32"), "not fp32"),
        (decode_case("flashinfer", q_len=2), "one token a sequence"),
        (decode_case("flashinfer", heads="8/1x96/64"), "triton takes MLA"),
    ):
        assert words in (jobs.reason(case, CUDA) or "")


class Wrapper:
    """flashinfer's, as far as it is used, by the definition.

    A sequence's pages begin in ``entries`` where ``first`` says; its last one has ``last`` tokens.
    """

    copies = False

    def __init__(self, space: torch.Tensor, layout: str, use_tensor_cores: bool) -> None:
        assert layout == "HND"

    def plan(
        self,
        first: torch.Tensor,
        entries: torch.Tensor,
        last: torch.Tensor,
        q: int,
        kv: int,
        width: int,
        page: int,
        **kinds: Any,
    ) -> None:
        self._paged_kv_indices_buf = entries.clone() if self.copies else entries
        self.first, self.last, self.group = first.tolist(), last.tolist(), q // kv

    def run(self, q: torch.Tensor, caches: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        out = torch.empty_like(q)
        for sequence, (begin, end) in enumerate(zip(self.first, self.first[1:], strict=False)):
            pages = self._paged_kv_indices_buf[begin:end].long()
            length = (end - begin - 1) * caches[0].shape[2] + self.last[sequence]
            keys, values = (cache[pages].transpose(0, 1).flatten(1, 2)[:, :length].double() for cache in caches)
            keys, values = (each.repeat_interleave(self.group, 0) for each in (keys, values))
            weights = (torch.einsum("hd,hld->hl", q[sequence].double(), keys) * q.shape[2] ** -0.5).softmax(1)
            out[sequence] = torch.einsum("hl,hld->hd", weights, values).to(q.dtype)
        return out


def test_flashinfer_is_given_the_table_that_new_data_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "installed", lambda: "0.5")
    monkeypatch.setattr(packages, "import_module", lambda name: SimpleNamespace(BatchDecodeWithPagedKVCacheWrapper=Wrapper))
    case = decode_case("flashinfer", lengths="skewed", shared_prefix=16)
    kernel = jobs.prepare(case, CUDA, 2, seed=3)
    for seed in (5, 6):
        result = fresh_verdict(kernel, case, seed)
        assert result.passed, result.reason
    monkeypatch.setattr(Wrapper, "copies", True)
    with pytest.raises(NotImplementedError, match=r"keeps page tables of its own.*triton and naive"):
        jobs.prepare(case, CUDA, 1, seed=3)
