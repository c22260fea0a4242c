"""Bytes of four-bit and six-bit numbers."""

import pytest
import torch

from backends.torch.quantise.packing import pack, packed_columns, unpack


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_unpacking_is_the_inverse(bits: int) -> None:
    codes = torch.randint(0, 1 << bits, (5, 24), dtype=torch.uint8, generator=torch.Generator().manual_seed(bits))
    packed = pack(codes, bits)
    assert packed.shape == (5, packed_columns(24, bits))
    assert torch.equal(unpack(packed, bits), codes)


@pytest.mark.parametrize("bits", [4, 6])
def test_numbers_follow_each_other_bit_by_bit(bits: int) -> None:
    """The bytes of a row are one little-endian number, with the first code in its lowest bits."""
    codes = torch.randint(0, 1 << bits, (3, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(bits))
    for row, packed in zip(codes.tolist(), pack(codes, bits), strict=True):
        assert int.from_bytes(bytes(packed.tolist()), "little") == sum(code << (i * bits) for i, code in enumerate(row))


def test_the_even_number_of_a_pair_is_in_the_low_half() -> None:
    assert pack(torch.tensor([[0x1, 0xA]], dtype=torch.uint8), 4).tolist() == [[0xA1]]


@pytest.mark.parametrize(("columns", "bits"), [(3, 4), (6, 6), (2, 6)])
def test_numbers_fill_whole_bytes(columns: int, bits: int) -> None:
    with pytest.raises(AssertionError, match="whole bytes"):
        pack(torch.zeros(1, columns, dtype=torch.uint8), bits)
