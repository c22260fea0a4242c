"""On the device: the same bits as on the host, and no more memory than is stated."""

import numpy as np
import pytest
import torch

from backends.torch.quantise import quantised as room
from backends.torch.quantise.formats import Format, every_format
from backends.torch.quantise.quantised import Quantised, dequantise, quantise
from backends.torch.quantise.swizzle import swizzle
from tests.backends.quantise.helpers import with_bad_numbers
from tests.backends.quantise.references import hard_matrix

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
each_format = pytest.mark.parametrize("fmt", every_format(), ids=lambda each: each.title)


def on_host(tensor: torch.Tensor) -> np.ndarray:
    """Bits; NaN scales have the same ones everywhere in types of a byte, and are compared as numbers in wider ones."""
    return tensor.view(torch.uint8).cpu().numpy() if tensor.dtype.itemsize == 1 else tensor.float().cpu().numpy()


@each_format
@pytest.mark.parametrize("bad", [False, True], ids=["finite", "NaN and infinities"])
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.thorough)], ids=str)
def test_the_same_bits_as_on_the_host(fmt: Format, bad: bool, dtype: torch.dtype) -> None:
    x = hard_matrix(150, 1024, 11).to(dtype)
    x = with_bad_numbers(x) if bad else x
    here, there = quantise(x, fmt), quantise(x.cuda(), fmt)
    for ours, theirs in zip(here.buffers, there.buffers, strict=True):
        np.testing.assert_array_equal(on_host(theirs), on_host(ours))
    np.testing.assert_array_equal(dequantise(there).cpu().numpy(), dequantise(here).numpy())


@each_format
def test_scratch_on_the_device(fmt: Format) -> None:
    """A matrix of 1 GiB in float32, drawn as it is read, beside which nothing of its size is ever held."""
    rows, k = 8192, 32768
    quantised = Quantised.empty(fmt, (rows, k), torch.device("cuda"))

    def drawn(start: int, stop: int) -> torch.Tensor:
        return torch.randn(stop - start, k, device="cuda", generator=torch.Generator("cuda").manual_seed(start))

    source_bytes = 4 * max(room.CHUNK_ELEMENTS, 128 * k)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    quantised.fill(drawn)
    assert torch.cuda.max_memory_allocated() - before <= room.SCRATCH_BYTES + source_bytes


def test_swizzling_on_the_device() -> None:
    scales = torch.randint(0, 256, (300, 70), dtype=torch.uint8)
    assert torch.equal(swizzle(scales.cuda()).cpu(), swizzle(scales))
