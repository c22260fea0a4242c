"""What OmegaConf lets pass is refused as a literal value would be."""

import pytest

from suite.config import compose
from suite.errors import UsageError

MODELS = ("jobs.gemm.models=[llama-3-8b]", "jobs.gemm.shapes=[]")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("jobs.gemm.m=[1,[2]]", "jobs.gemm.m[1]=[2] is not a whole number"),
        ("jobs.gemm.m=[{a:1}]", "jobs.gemm.m[0]={a:1} is not a whole number"),
        ("jobs.gemm.m=[true]", "jobs.gemm.m[0]=true is not a whole number"),
        ("jobs.gemm.m=${seed}", "jobs.gemm.m=0 is one value where a list is expected; write jobs.gemm.m=[0]"),
        (
            "jobs.gemm.m=${oversize}",
            "jobs.gemm.m=refuse is not a whole number, and a list of these is expected; write jobs.gemm.m=[NUMBER,NUMBER]",
        ),
        ("jobs.gemm.formats=[[a]]", "jobs.gemm.formats[0]=[a] is not text"),
        ("jobs.gemm.formats=${seed}", "jobs.gemm.formats=0 is one value where a list is expected; write jobs.gemm.formats=[0]"),
        ("measure.regimes=${seed}", "measure.regimes=0 is one value where a list is expected; write measure.regimes=[0]"),
        (
            "measure.deadlines=${seed}",
            "measure.deadlines=0 is one value where settings are expected; write measure.deadlines.NAME=VALUE",
        ),
        ("jobs=${seed}", "jobs=0 is one value where settings are expected; write jobs.NAME=VALUE"),
        ("backends=${seed}", "backends=0 is one value where settings are expected; write backends.NAME=VALUE"),
        ("search=${oversize}", "search=refuse is one value where settings are expected; write search.NAME=VALUE"),
        ("max_cases.x=5", "max_cases takes one value and no settings by name; write max_cases=VALUE"),
        ("measure.regimes=true", "measure.regimes=true is one value where a list is expected; write measure.regimes=[true]"),
        ("experiment=${note}", "a file is chosen before there are values to choose it by"),
    ],
)
def test_a_value_of_another_type_is_named_with_what_is_expected(override: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        compose([override])
    assert str(refused.value).startswith(said)


def test_what_an_interpolation_may_come_to_is_taken() -> None:
    config = compose(["jobs.gemm.m=[16,${seed}]", "seed=4", "jobs.gemm.distributions=[${note}]", "note=zeros", *MODELS])
    assert config.jobs["gemm"].m == [16, 4]
    assert config.jobs["gemm"].distributions == ["zeros"]
    assert compose(["max_kernel_s=${seed}", "seed=3"]).max_kernel_s == 3
