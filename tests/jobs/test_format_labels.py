"""Every scaling of every format has a name of its own, wherever cases are listed."""

import pytest

from suite.case import Case, Regime, Workload, format_label, items
from suite.jobs.gemm.formats import FORMATS, semantics_of

COLD = Regime("cold", "sustained", "device")
VARIANTS = [
    (name, scaling, shifted)
    for name, fmt in FORMATS.items()
    for scaling, variant in fmt.variants.items()
    for shifted in ((False, True) if variant.shifted else (False,))
]


def workload(name: str, scaling: str, shifted: bool) -> Workload:
    sizes = items({"m": 4096, "n": 4096, "k": 4096})
    return Workload("gemm", name, sizes, semantics=semantics_of(name, scaling, shifted))


def test_no_two_variants_of_the_ladder_are_listed_alike() -> None:
    made = [workload(*variant) for variant in VARIANTS]
    assert len({each.format_label for each in made}) == len({each.key for each in made}) == len(VARIANTS)
    titles = {Case(each, "library", "cuda", COLD).title for each in made}
    assert len(titles) == len(VARIANTS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_formats_own_scaling_is_its_name_alone(name: str) -> None:
    own = next(iter(FORMATS[name].variants))
    assert workload(name, own, False).format_label == name
    assert format_label(name, {}) == name


@pytest.mark.parametrize(
    ("name", "semantics", "label"),
    [
        ("fp8_e4m3", {"accumulate": "fp32", "scaling": "tensor"}, "fp8_e4m3"),
        ("fp8_e4m3", {"accumulate": "fp32", "scaling": "block"}, "fp8_e4m3 block"),
        ("int8", {"accumulate": "int32", "scaling": "tensor"}, "int8 tensor"),
        ("int8", {"accumulate": "int32", "scaling": "row", "zero_point": True}, "int8 row zero point"),
        ("w4a16", {"accumulate": "fp32", "zero_point": True}, "w4a16 zero point"),
        ("int8", {"scaling": ["odd"], "zero_point": 0}, "int8 ['odd']"),
    ],
)
def test_a_label_says_what_the_name_does_not(name: str, semantics: dict[str, object], label: str) -> None:
    assert format_label(name, semantics) == label
