"""fp8 as AMD's gfx940 to gfx942 have it, code for code: against ml_dtypes, torch, and the numbers that its definition gives."""

import math

import ml_dtypes
import numpy as np
import pytest
import torch

from backends.torch.data import LARGEST_SCALED, Operand
from backends.torch.quantise.consumable import consumable, encoding_for
from backends.torch.quantise.elements import E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, SmallFloat, decode
from backends.torch.quantise.formats import FAMILIES, format_of
from backends.torch.quantise.quantised import dequantise, quantise
from suite.errors import UsageError
from suite.jobs.fp8 import FNUZ, FP8, OCP

THEIRS = {
    E4M3_FNUZ: (ml_dtypes.float8_e4m3fnuz, torch.float8_e4m3fnuz),
    E5M2_FNUZ: (ml_dtypes.float8_e5m2fnuz, torch.float8_e5m2fnuz),
}
NAN = 0x80
every_element = pytest.mark.parametrize("element", THEIRS, ids=lambda element: element.name)


def all_codes() -> torch.Tensor:
    return torch.arange(256, dtype=torch.uint8)


def encoded(element: SmallFloat, values: np.ndarray, *, saturate: bool = True) -> np.ndarray:
    return element.encode(torch.tensor(values.astype(np.float64)), saturate=saturate).numpy()


def sweep(element: SmallFloat) -> np.ndarray:
    """Every number, every midpoint, the float32 numbers next to both, and magnitudes far below and above; both signs."""
    table = decode(element, torch.arange(element.largest_code + 1, dtype=torch.uint8)).numpy()
    points = np.concatenate([table, (table[1:] + table[:-1]) / 2]).astype(np.float32)
    around = [np.nextafter(points, np.float32(side)) for side in (-np.inf, np.inf)]
    far = np.float32(2.0) ** np.arange(-149, 128, dtype=np.float32)
    values = np.concatenate([points, *around, far, np.linspace(0, 1.5 * element.largest, 4001, dtype=np.float32)])
    return np.concatenate([values, -values])


@pytest.mark.parametrize(
    ("element", "bias", "largest", "smallest_normal", "smallest"),
    [(E4M3_FNUZ, 8, 240.0, 2.0**-7, 2.0**-10), (E5M2_FNUZ, 16, 57344.0, 2.0**-15, 2.0**-17)],
    ids=["e4m3", "e5m2"],
)
def test_the_definition(element: SmallFloat, bias: int, largest: float, smallest_normal: float, smallest: float) -> None:
    """HIP documentation, "Low precision floating point types"."""
    assert (element.bias, element.largest, element.smallest) == (bias, largest, smallest)
    assert element.value(1 << element.mantissa_bits) == smallest_normal
    assert not element.has_negative_zero
    assert [code for code in range(256) if math.isnan(element.value(code))] == [NAN]
    assert all(math.isfinite(element.value(code)) for code in range(256) if code != NAN)


@every_element
def test_every_code_is_worth_what_ml_dtypes_and_torch_say(element: SmallFloat) -> None:
    of_ml_dtypes, of_torch = THEIRS[element]
    worth = decode(element, all_codes())
    np.testing.assert_array_equal(worth.numpy(), all_codes().numpy().view(of_ml_dtypes).astype(np.float64))
    torch.testing.assert_close(worth, all_codes().view(of_torch).to(torch.float64), rtol=0, atol=0, equal_nan=True)


@every_element
def test_rounding_as_ml_dtypes(element: SmallFloat) -> None:
    """Past the largest number ml_dtypes gives NaN."""
    values = sweep(element)
    with np.errstate(over="ignore"):
        theirs = values.astype(THEIRS[element][0]).view(np.uint8)
    np.testing.assert_array_equal(encoded(element, values, saturate=False), theirs)


@every_element
def test_rounding_as_torch(element: SmallFloat) -> None:
    """Up to the largest number, and to the one zero there is from either side."""
    values = sweep(element)
    values = values[np.abs(values) <= element.largest]
    theirs = torch.tensor(values).to(THEIRS[element][1]).view(torch.uint8).numpy()
    np.testing.assert_array_equal(encoded(element, values), theirs)


@every_element
def test_what_becomes_nan_and_what_does_not(element: SmallFloat) -> None:
    tiny, top = element.smallest / 4, element.largest_code
    said = encoded(element, np.array([0.0, -0.0, -tiny, math.nan, math.inf, -math.inf, -1e9]))
    assert said.tolist() == [0, 0, 0, NAN, top, top | 0x80, top | 0x80]
    assert encoded(element, np.array([1e9, -1e9]), saturate=False).tolist() == [NAN, NAN]


@pytest.mark.parametrize(("ocp", "fnuz"), [(E4M3, E4M3_FNUZ), (E5M2, E5M2_FNUZ)], ids=["e4m3", "e5m2"])
def test_read_as_the_other_encoding_numbers_are_off_by_two(ocp: SmallFloat, fnuz: SmallFloat) -> None:
    """What a check would see of data that was stored in one and multiplied as the other."""
    normal = [code for code in range(1, 0x78) if code >> ocp.mantissa_bits]
    assert all(ocp.value(code) == 2 * fnuz.value(code) for code in normal)


@pytest.mark.parametrize("name", FP8)
@pytest.mark.parametrize("block", [block.name for block in FAMILIES["fp8_e4m3"].blocks])
def test_a_matrix_is_stored_and_read_back(name: str, block: str) -> None:
    """Each scale carries the largest magnitude to the largest number of this encoding, 240 or 57344."""
    x = torch.randn(256, 384, generator=torch.Generator().manual_seed(7))
    format_ = format_of(name, block, encoding=FNUZ)
    quantised = quantise(x, format_)
    element = format_.element
    assert isinstance(element, SmallFloat)
    assert quantised.data.dtype == element.dtype == THEIRS[element][1]
    stored = quantised.data.view(torch.uint8)
    assert int((stored & 0x7F).max()) == element.largest_code
    assert not (stored == NAN).any()
    exact = stored.numpy().view(THEIRS[element][0]).astype(np.float64)
    grid = quantised.scales.to(torch.float64)
    height, width = (256 // grid.shape[0], 384 // grid.shape[1])
    scales = grid.repeat_interleave(height, 0).repeat_interleave(width, 1).numpy()
    np.testing.assert_array_equal(dequantise(quantised).numpy(), exact * scales)
    bound = element.roundoff * x.abs() + element.smallest * grid.max()
    assert ((dequantise(quantised) - x).abs() <= bound).all()


def test_the_format_keeps_its_name_and_its_title_says_fnuz() -> None:
    plain, fnuz = format_of("fp8_e4m3", "row"), format_of("fp8_e4m3", "row", encoding=FNUZ)
    assert (plain.name, fnuz.name) == ("fp8_e4m3", "fp8_e4m3")
    assert (plain.title, fnuz.title) == ("fp8_e4m3 row", "fp8_e4m3 row in FNUZ")
    assert quantise(torch.ones(32, 64), fnuz).layout["element"] == "e4m3fnuz"


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp8_e5m2", "nvfp4", "int8"])
def test_formats_that_mx_or_others_define_are_the_same_everywhere(name: str) -> None:
    assert format_of(name, encoding=FNUZ) == format_of(name)


def test_what_there_is_not_is_refused_in_this_encoding_too() -> None:
    with pytest.raises(UsageError, match="fp8_e4m3 has no blocks of 1x32"):
        format_of("fp8_e4m3", "1x32", encoding=FNUZ)
    with pytest.raises(UsageError, match="fp8_e4m3 has no zero point"):
        format_of("fp8_e4m3", zero_point=True, encoding=FNUZ)


@pytest.mark.parametrize(
    ("target", "encoding"),
    [("gfx940", FNUZ), ("gfx942", FNUZ), ("gfx950", OCP), ("gfx1201", OCP), ("sm_90", OCP), ("gfx90a", OCP), ("cpu", OCP)],
)
def test_which_device_has_which(target: str, encoding: str) -> None:
    assert encoding_for(target) == encoding


@pytest.mark.parametrize("name", FP8)
def test_one_encoding_is_never_taken_for_the_other(name: str) -> None:
    for block in ("tensor", "row"):
        assert consumable(name, block, "gfx942", encoding=FNUZ, library=True) is None
        assert consumable(name, block, "gfx950", library=True) is None
        assert "in OCP's" in str(consumable(name, block, "gfx942"))
        for other in ("gfx950", "gfx1201", "gfx90a", "sm_90", "cpu"):
            reason = consumable(name, block, other, encoding=FNUZ)
            assert reason is not None
            assert f"{name} {block} in FNUZ needs gfx940 to gfx942, not {other}" in reason
    assert consumable(name, "1x128", "gfx942", encoding=FNUZ) is None
    assert "sm_90" in str(consumable(name, "1x128", "gfx942", encoding=FNUZ, library=True))


@pytest.mark.parametrize("distribution", ["normal", "uniform", "integer", "zeros", "constant", "outliers"])
def test_plain_operands_hold_the_numbers_of_their_distribution(distribution: str) -> None:
    """Rounded as ml_dtypes does with the scale that is stored beside them; no NaN for a number just under zero."""
    stored = Operand.empty((64, 96), torch.float8_e4m3fnuz, torch.device("cpu"))
    exact = Operand.empty((64, 96), torch.float32, torch.device("cpu"))
    stored.refill(distribution, 11)
    exact.refill(distribution, 11)
    assert stored.scale is not None
    wanted = (exact.data / stored.scale).clamp(-240, 240).numpy().astype(ml_dtypes.float8_e4m3fnuz)
    np.testing.assert_array_equal(stored.data.view(torch.uint8).numpy(), wanted.view(np.uint8))
    if distribution != "zeros":
        assert stored.data.to(torch.float32).abs().max() == LARGEST_SCALED[torch.float8_e4m3fnuz] == 240.0
    assert torch.isfinite(stored.numbers(0, 64)).all()
