"""What holds for every format: buffers, bytes, pieces, scratch."""

import json
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from backends.torch.quantise import quantised as room
from backends.torch.quantise.blocks import Span
from backends.torch.quantise.formats import Format, every_format, format_of
from backends.torch.quantise.quantised import Quantised, dequantise, quantise
from suite.errors import UsageError
from tests.backends.quantise.helpers import assert_within_bound
from tests.backends.quantise.references import hard_matrix

CPU = torch.device("cpu")
each_format = pytest.mark.parametrize("fmt", every_format(), ids=lambda each: each.title)


def bits(quantised: Quantised) -> list[np.ndarray]:
    return [np.atleast_1d(each.view(torch.uint8) if each.dim() else each[None].view(torch.uint8)) for each in quantised.buffers]


def assert_same(one: Quantised, other: Quantised) -> None:
    for ours, theirs in zip(bits(one), bits(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@each_format
def test_bytes_are_counted_exactly(fmt: Format) -> None:
    quantised = quantise(torch.randn(144, 384, generator=torch.Generator().manual_seed(1)), fmt)
    counted = fmt.stored_bytes(144, 384)
    assert quantised.stored_bytes == counted
    named = {
        "elements": quantised.data,
        "scales": quantised.scales,
        "zero_points": quantised.zero_points,
        "tensor_scale": quantised.tensor_scale,
    }
    held = {name: 0 if part is None else part.numel() * part.element_size() for name, part in named.items()}
    assert counted._asdict() == held
    assert counted.total == sum(held.values())


@pytest.mark.parametrize(
    ("fmt", "expected"),
    [
        (format_of("fp8_e4m3", "128x128"), (4096 * 512, 32 * 4 * 4, 0, 0)),
        (format_of("fp8_e5m2", "row"), (4096 * 512, 4096 * 4, 0, 0)),
        (format_of("mxfp6_e3m2"), (4096 * 512 * 3 // 4, 4096 * 16, 0, 0)),
        (format_of("nvfp4"), (4096 * 256, 4096 * 32, 0, 4)),
        (format_of("int8", "tensor", zero_point=True), (4096 * 512, 4, 1, 0)),
        (format_of("w8a16"), (4096 * 512, 4096 * 2, 0, 0)),
        (format_of("w4a16", zero_point=True), (4096 * 256, 4096 * 4 * 2, 4096 * 4, 0)),
    ],
    ids=lambda value: value.title if isinstance(value, Format) else "",
)
def test_bytes_of_some_formats(fmt: Format, expected: tuple[int, ...]) -> None:
    assert fmt.stored_bytes(4096, 512) == expected


def test_a_block_that_falls_short_has_a_scale_too() -> None:
    assert format_of("fp8_e4m3", "128x128").stored_bytes(576, 7168).scales == 5 * 56 * 4


@each_format
def test_numbers_change_and_buffers_stay(fmt: Format) -> None:
    first, second = (torch.randn(128, 256, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    quantised = Quantised.empty(fmt, (128, 256), CPU)
    before = [buffer.data_ptr() for buffer in quantised.buffers]
    quantised.fill(lambda start, stop: first[start:stop])
    assert_same(quantised, quantise(first, fmt))
    quantised.fill(lambda start, stop: second[start:stop])
    assert_same(quantised, quantise(second, fmt))
    assert [buffer.data_ptr() for buffer in quantised.buffers] == before
    assert not np.array_equal(bits(quantised)[0], bits(quantise(first, fmt))[0])


@each_format
def test_pieces_do_not_matter(fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut along rows and along K, with last pieces that are smaller, and blocks that fall short."""
    x = hard_matrix(150, 384, 3)
    whole = quantise(x, fmt)
    values = dequantise(whole)
    for elements in (3000, 384 * 40):
        monkeypatch.setattr(room, "CHUNK_ELEMENTS", elements)
        assert_same(quantise(x, fmt), whole)
        assert torch.equal(dequantise(whole), values)


@each_format
def test_a_span_of_rows(fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    quantised = quantise(torch.randn(300, 128, generator=torch.Generator().manual_seed(4)), fmt)
    values = dequantise(quantised)
    monkeypatch.setattr(room, "CHUNK_ELEMENTS", 128 * 20)
    for span in (Span(0, 1), Span(130, 259), Span(299, 300), Span(0, 300)):
        assert torch.equal(dequantise(quantised, rows=span), values[span.start : span.stop])


@each_format
def test_other_types_are_rounded_from_float64(fmt: Format) -> None:
    quantised = quantise(torch.randn(128, 128, generator=torch.Generator().manual_seed(5)), fmt)
    for dtype in (torch.float32, torch.bfloat16):
        rounded = dequantise(quantised, dtype)
        assert rounded.dtype == dtype
        assert torch.equal(rounded, dequantise(quantised).to(dtype))


@each_format
def test_how_the_numbers_lie_in_memory_does_not_matter(fmt: Format) -> None:
    x = torch.randn(256, 128, generator=torch.Generator().manual_seed(6))
    before = x.clone()
    assert_same(quantise(x.t().contiguous().t(), fmt), quantise(x, fmt))
    assert_same(quantise(x.to(torch.float64), fmt), quantise(x, fmt))
    assert torch.equal(x, before), "the source is only read"


@each_format
def test_the_bound_holds_on_hard_data(fmt: Format) -> None:
    assert_within_bound(hard_matrix(130, 384, 8), fmt)
    assert_within_bound(torch.randn(130, 384, generator=torch.Generator().manual_seed(9)), fmt)


@each_format
def test_the_source_is_read_in_order_and_a_second_time_only_where_it_must(fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CHUNK_ELEMENTS", 256 * 16)
    x, asked = torch.ones(300, 256), []

    def rows(start: int, stop: int) -> torch.Tensor:
        asked.append((start, stop))
        return x[start:stop]

    Quantised.empty(fmt, (300, 256), CPU).fill(rows)
    one_pass = [(start, min(start + (fmt.block.rows if fmt.block.rows > 16 else 16), 300)) for start, _ in asked]
    passes = 2 if fmt.block.name == "tensor" or fmt.has_tensor_scale else 1
    assert asked == one_pass
    assert sorted(set(asked)) == asked[: len(asked) // passes]
    assert len(asked) == passes * len(set(asked))


class LiveBytes(TorchDispatchMode):
    """The most bytes that tensors made by operations held at one time."""

    def __init__(self) -> None:
        super().__init__()
        self.live_bytes: dict[int, int] = {}
        self.peak_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and made.untyped_storage()._cdata not in self.live_bytes:
            storage = made.untyped_storage()
            self.live_bytes[storage._cdata] = storage.nbytes()
            weakref.finalize(storage, self.live_bytes.pop, storage._cdata, None)
            self.peak_bytes = max(self.peak_bytes, sum(self.live_bytes.values()))
        return made


SCRATCH_FORMATS = (
    format_of("fp8_e4m3"),
    format_of("fp8_e4m3", "128x128"),
    format_of("mxfp6_e2m3"),
    format_of("nvfp4"),
    format_of("int8", "row", zero_point=True),
    format_of("w4a16"),
)


@pytest.mark.parametrize("fmt", SCRATCH_FORMATS, ids=lambda each: each.title)
def test_scratch_stays_within_what_is_stated(fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """128 rows of a matrix are several chunks here: they are cut along K as well."""
    stated_bytes = room.SCRATCH_BYTES // room.CHUNK_ELEMENTS * 128 * 128
    monkeypatch.setattr(room, "CHUNK_ELEMENTS", 128 * 128)
    x = torch.randn(256, 1024, generator=torch.Generator().manual_seed(7))
    quantised = quantise(x, fmt)
    held_bytes = x.numel() * x.element_size() + quantised.stored_bytes.total
    with LiveBytes() as filling:
        quantised.fill(lambda start, stop: x[start:stop])
    with LiveBytes() as reading:
        dequantise(quantised, rows=Span(100, 101))
    assert filling.peak_bytes - held_bytes <= stated_bytes
    assert reading.peak_bytes <= stated_bytes + quantised.stored_bytes.total
    assert x.numel() * 8 > stated_bytes, "one float64 copy of the whole would be seen"


@pytest.mark.parametrize(
    ("fmt", "shape", "message"),
    [
        (format_of("mxfp4"), (4, 100), "mxfp4 1x32 needs a multiple of 32 along K, not k=100; pad K to 128"),
        (format_of("nvfp4"), (4, 24), "nvfp4 1x16 needs a multiple of 16 along K, not k=24; pad K to 32"),
        (format_of("fp8_e4m3", "1x128"), (4, 2880), "multiple of 128 along K, not k=2880; pad K to 2944"),
        (format_of("w4a16", zero_point=True), (4, 64), "w4a16 1x128 with zero point needs a multiple of 128"),
        (format_of("int8"), (0, 64), "0 x 64 has no numbers"),
    ],
    ids=lambda value: value.title if isinstance(value, Format) else "",
)
def test_a_shape_that_blocks_do_not_divide_is_refused_by_name(fmt: Format, shape: tuple[int, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        quantise(torch.ones(shape), fmt)
    assert message in str(fmt.misfit(*shape))


@each_format
def test_shapes_of_models_fit(fmt: Format) -> None:
    for rows, k in ((576, 7168), (2112, 7168), (8192, 29568), (128256, 4096), (1, 512)):
        assert fmt.misfit(rows, k) is None


@each_format
def test_the_layout_can_be_recorded(fmt: Format) -> None:
    layout = json.loads(json.dumps(quantise(torch.ones(128, 256), fmt).layout))
    assert layout["format"] == fmt.title
    assert layout["stored_bytes"] == fmt.stored_bytes(128, 256).total


def test_the_layout_states_shapes_types_and_axes() -> None:
    assert quantise(torch.ones(256, 512), format_of("nvfp4")).layout == {
        "format": "nvfp4 1x16",
        "element": "e2m1",
        "data": "float4_e2m1fn_x2 [256, 256]",
        "block": [1, 16],
        "block_axes": ["rows", "k"],
        "scales": "float8_e4m3fn [256, 32]",
        "zero_points": None,
        "tensor_scale": "float32 []",
        "stored_bytes": 256 * 256 + 256 * 32 + 4,
    }


def test_only_float32_and_float64_are_quantised() -> None:
    with pytest.raises(AssertionError, match="bfloat16"):
        quantise(torch.ones(2, 32, dtype=torch.bfloat16), format_of("mxfp4"))
