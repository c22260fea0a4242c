"""Formats by name, and which targets take them."""

import re

import pytest

from backends.torch.quantise.consumable import consumable
from backends.torch.quantise.formats import FAMILIES, every_format, format_of
from suite.errors import UsageError

TARGETS = (
    "sm_70",
    "sm_75",
    "sm_80",
    "sm_89",
    "sm_90",
    "sm_100",
    "sm_103",
    "sm_120",
    "gfx90a",
    "gfx942",
    "gfx950",
    "gfx1201",
    "cpu",
)
BLACKWELL = ("sm_100", "sm_103", "sm_120")
MATRIX = ("sm_75", "sm_80", "sm_89", "sm_90", *BLACKWELL, "gfx90a", "gfx942", "gfx950", "gfx1201", "cpu")


def takers(name: str, block: str, **options: bool) -> tuple[str, ...]:
    return tuple(target for target in TARGETS if consumable(name, block, target, **options) is None)


def test_every_format_is_found_by_what_it_is_called() -> None:
    formats = every_format()
    assert len({each.title for each in formats}) == len(formats) == 21
    for each in formats:
        found = format_of(each.name, each.block.name, zero_point=each.scaling.zero_point_dtype is not None)
        assert found == each


def test_the_usual_block_need_not_be_named() -> None:
    assert format_of("fp8_e4m3").block.name == "tensor"
    assert format_of("mxfp6_e2m3").block.name == "1x32"
    assert format_of("nvfp4").block.name == "1x16"
    assert format_of("w8a16").block.name == "row"


@pytest.mark.parametrize(
    ("name", "block", "zero_point", "message"),
    [
        ("mxfp8", None, False, "unknown number format 'mxfp8'; name its elements: mxfp8_e4m3 or mxfp8_e5m2"),
        ("mxfp44", None, False, "unknown number format 'mxfp44'; did you mean 'mxfp4'"),
        ("mxfp4", "1x16", False, "mxfp4 has no blocks of 1x16, only 1x32; blocks of 1x16 have nvfp4"),
        ("nvfp4", "1x32", False, "nvfp4 has no blocks of 1x32, only 1x16; blocks of 1x32 have mxfp8_e4m3, .*, mxfp4"),
        ("w4a16", "1x64", False, "w4a16 has no blocks of 1x64, only 1x128$"),
        ("fp8_e4m3", "128x1", False, "only tensor or row or 1x128 or 128x128"),
        ("fp8_e4m3", None, True, "fp8_e4m3 has no zero point; leave it out, or take one of int8, w4a16"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(name: str, block: str | None, zero_point: bool, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        format_of(name, block, zero_point=zero_point)


@pytest.mark.parametrize(
    ("name", "block", "by_instruction", "by_library"),
    [
        ("fp8_e4m3", "tensor", ("sm_89", "sm_90", *BLACKWELL, "gfx950", "gfx1201"), None),
        ("fp8_e5m2", "row", ("sm_89", "sm_90", *BLACKWELL, "gfx950", "gfx1201"), None),
        ("fp8_e4m3", "1x128", ("sm_89", "sm_90", *BLACKWELL, "gfx950", "gfx1201"), ("sm_90",)),
        ("fp8_e4m3", "128x128", ("sm_89", "sm_90", *BLACKWELL, "gfx950", "gfx1201"), ("sm_90",)),
        ("mxfp8_e4m3", "1x32", (*BLACKWELL, "gfx950"), None),
        ("mxfp6_e2m3", "1x32", (*BLACKWELL, "gfx950"), ()),
        ("mxfp4", "1x32", (*BLACKWELL, "gfx950"), ("sm_100", "sm_103", "gfx950")),
        ("nvfp4", "1x16", BLACKWELL, None),
        ("int8", "row", MATRIX, None),
        ("w8a16", "row", MATRIX[1:], None),
        ("w4a16", "1x128", MATRIX[1:], tuple(each for each in MATRIX[1:] if each != "gfx1201")),
    ],
)
def test_who_takes_what(name: str, block: str, by_instruction: tuple[str, ...], by_library: tuple[str, ...] | None) -> None:
    assert takers(name, block) == by_instruction
    assert takers(name, block, library=True) == (by_instruction if by_library is None else by_library)


def test_no_library_takes_more_than_the_instructions() -> None:
    for each in every_format():
        options = {"zero_point": each.scaling.zero_point_dtype is not None}
        by_library = takers(each.name, each.block.name, library=True, **options)
        assert set(by_library) <= set(takers(each.name, each.block.name, **options))


@pytest.mark.parametrize(
    ("arguments", "library", "message"),
    [
        (("nvfp4", "1x16", "sm_90"), False, "nvfp4 1x16 needs sm_100 or later, or gfx1250, not sm_90; have it emulated"),
        (
            ("mxfp4", "1x32", "gfx942"),
            False,
            "needs sm_100 or later, gfx950 or gfx1250, not gfx942; have it emulated",
        ),
        (("fp8_e4m3", "128x128", "sm_100"), True, "needs sm_90 .*, not sm_100; take scales of each row, mxfp8 where"),
        (("fp8_e4m3", "128x128", "sm_80"), True, "needs sm_89 or later, gfx950 or gfx12, not sm_80; have it emulated"),
        (("fp8_e4m3", "row", "gfx942"), False, "gfx942 multiplies fp8 in the FNUZ encoding, fp8_e4m3 row is in OCP's"),
        (("mxfp6_e3m2", "1x32", "sm_100a"), True, "through a library needs another format: .* not sm_100a; take a kernel"),
        (("w4a16", "1x128", "sm_75"), False, "w4a16 1x128 needs bf16 products: sm_80 or later"),
    ],
)
def test_reasons_name_format_block_limit_and_remedy(arguments: tuple[str, str, str], library: bool, message: str) -> None:
    reason = consumable(*arguments, library=library)
    assert reason is not None
    assert "\n" not in reason
    assert re.search(message, reason), reason


def test_a_zero_point_goes_into_no_library_call_for_integers() -> None:
    assert "leave them out" in str(consumable("int8", "row", "sm_90", zero_point=True, library=True))
    assert consumable("int8", "row", "sm_90", zero_point=True) is None
    assert consumable("w4a16", "1x128", "sm_90", zero_point=True, library=True) is None


@pytest.mark.parametrize("target", ["h100", "sm_", "sm_9", "gfx", "90", ""])
def test_an_unknown_target_is_refused(target: str) -> None:
    with pytest.raises(UsageError, match=f"unknown target '{target}'"):
        consumable("nvfp4", "1x16", target)


def test_a_block_that_the_format_has_not_is_refused_before_any_target() -> None:
    for name in FAMILIES:
        with pytest.raises(UsageError, match="has no blocks of 7x7"):
            consumable(name, "7x7", "sm_90")
