"""How far off the formats are, and that they keep the order that their definitions make."""

import pytest
import torch

from backends.torch.quantise.formats import format_of
from backends.torch.quantise.quantised import quantise
from tests.backends.quantise.errors import DATA, Row, drawn, relative_error, render, table

ROWS, K = 64, 1024


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.title: row for row in table(ROWS, K)}


# Which is nearer, which is further away, and by what factor at least.
ORDERS = {
    "normal": [
        ("nvfp4 1x16", "mxfp4 1x32", 1.1),  # smaller blocks, and scales between powers of two
        ("w4a16 1x128 with zero point", "w4a16 1x128", 1.1),  # 16 levels over the range, not 15 over twice the larger side
        ("nvfp4 1x16", "w4a16 1x128", 1.1),
        ("mxfp6_e3m2 1x32", "mxfp4 1x32", 1.9),  # one bit of mantissa
        ("mxfp6_e2m3 1x32", "mxfp6_e3m2 1x32", 1.8),
        ("mxfp8_e4m3 1x32", "mxfp8_e5m2 1x32", 1.7),
        ("mxfp6_e2m3 1x32", "mxfp8_e4m3 1x32", 1.01),  # as many bits of mantissa, and it is clamped less
        ("fp8_e4m3 tensor", "fp8_e5m2 tensor", 1.9),
        ("fp8_e4m3 1x128", "fp8_e4m3 tensor", 1.01),
        ("int8 row", "int8 tensor", 1.1),
        ("int8 row", "fp8_e4m3 row", 2.5),  # steps of one size suit data without outliers
    ],
    "outliers": [
        ("nvfp4 1x16", "mxfp4 1x32", 1.3),
        ("mxfp4 1x32", "w4a16 1x128", 1.2),
        ("fp8_e4m3 1x128", "fp8_e4m3 128x128", 1.1),
        ("fp8_e4m3 row", "fp8_e4m3 tensor", 1.05),
        ("fp8_e4m3 row", "int8 row", 2.0),  # what was an advantage above is none here
        ("int8 row", "int8 tensor", 1.5),
        ("int8 row with zero point", "int8 row", 1.1),
    ],
}


@pytest.mark.parametrize(
    ("data", "nearer", "further", "factor"), [(data, *order) for data, orders in ORDERS.items() for order in orders]
)
def test_the_order(rows: dict[str, Row], data: str, nearer: str, further: str, factor: float) -> None:
    assert rows[nearer].errors[data] * factor < rows[further].errors[data]


@pytest.mark.parametrize("title", ["int8 tensor", "int8 row", "w8a16 row", "w4a16 1x128"])
@pytest.mark.parametrize("data", DATA)
def test_errors_of_even_steps_are_as_large_as_steps_make_them(rows: dict[str, Row], title: str, data: str) -> None:
    """Rounding to steps of s errs by s / sqrt(12) in the mean square."""
    name, block = title.split()
    x = drawn(data, ROWS, K)
    steps = quantise(x, format_of(name, block)).scales.to(torch.float64)
    expected = steps.square().mean().sqrt() / 12**0.5 / x.to(torch.float64).square().mean().sqrt()
    # Data with outliers are few steps wide, so that errors are not spread evenly over a step.
    assert rows[title].errors[data] == pytest.approx(float(expected), rel=0.03 if data == "normal" else 0.6)


def test_an_error_does_not_depend_on_the_unit() -> None:
    """But for float32's rounding of a scale, and for nothing where the factor is a power of two."""
    x = drawn("normal", 64, 256)
    for name in ("mxfp4", "nvfp4", "fp8_e4m3", "w4a16"):
        assert relative_error(x * 2.0**12, format_of(name)) == relative_error(x, format_of(name))
    assert relative_error(x * 3.0, format_of("fp8_e4m3")) == pytest.approx(relative_error(x, format_of("fp8_e4m3")), rel=0.02)


def test_the_table_has_a_line_for_each_format(rows: dict[str, Row]) -> None:
    lines = render(list(rows.values())).splitlines()
    assert lines[0].split() == ["bits", *DATA]
    assert len(lines) == 1 + len(rows)
    (nvfp4,) = (line for line in lines if line.startswith("nvfp4 1x16"))
    assert nvfp4.split()[2:] == ["4.500", *(f"{rows['nvfp4 1x16'].errors[name]:.3e}" for name in DATA)]
    assert len(set(map(len, lines))) == 1
