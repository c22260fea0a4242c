"""What follows a product, as an axis of the gemm job."""

from dataclasses import replace

import pytest

from suite.case import Case, Regime, Workload, shape_label
from suite.errors import UsageError
from suite.jobs.gemm import EPILOGUES, FORMATS, IMPLEMENTATIONS, GemmJob, GemmSettings
from suite.jobs.gemm.epilogue import OFFERED, not_offered
from suite.jobs.gemm.formats import variant_of

JOB = GemmJob()


def workloads(name: str = "bf16", shape: str = "64x96x128", **settings: object) -> dict[str, Workload]:
    """By their epilogues."""
    found = JOB.workloads(GemmSettings(formats=[name], shapes=[shape], epilogues=list(EPILOGUES), **settings))
    return {str(dict(each.params).get("epilogue", "none")): each for each in found}


def test_the_axis_multiplies_and_repeats_nothing() -> None:
    settings = GemmSettings(formats=["bf16"], shapes=["64"], layouts=["nt", "nn"], epilogues=["none", "bias", "none"])
    found = [(dict(each.params)["layout"], dict(each.params).get("epilogue")) for each in JOB.workloads(settings)]
    assert found == [("nt", None), ("nt", "bias"), ("nn", None), ("nn", "bias")]


def test_a_sweep_without_a_word_about_epilogues_has_none() -> None:
    assert GemmSettings().epilogues == ["none"]


def test_each_is_a_workload_of_its_own_that_tells_its_name() -> None:
    found = workloads()
    assert tuple(found) == tuple(EPILOGUES)
    assert len({each.key for each in found.values()}) == len(EPILOGUES)
    assert [name for name, each in found.items() if f"epilogue={name}" in shape_label(each)] == list(EPILOGUES)[1:]
    case = Case(found["silu"], "library", "cpu", Regime("cold", "sustained", "device"))
    assert Case.from_json(case.to_json()) == case


@pytest.mark.parametrize("name", OFFERED)
def test_only_the_bytes_of_a_bias_are_more_work(name: str) -> None:
    found = workloads(name)
    plain = JOB.work(found["none"])
    size = 4 if name in ("fp32", "tf32") else 2
    for epilogue, workload in found.items():
        more = 96 * size if EPILOGUES[epilogue].bias else 0
        assert JOB.work(workload) == replace(plain, compulsory_bytes=plain.compulsory_bytes + more)
        assert JOB.footprint(workload).set_bytes == JOB.footprint(found["none"]).set_bytes + more


@pytest.mark.parametrize("name", OFFERED)
def test_a_tolerance_leaves_room_for_a_rounding_a_step(name: str) -> None:
    found = workloads(name)
    (switches,) = JOB.switches(GemmSettings(), found["none"])
    tolerances = [JOB.tolerance(found[each], switches) for each in ("none", "bias", "bias_relu")]
    half = 0.0 if name == "tf32" else variant_of(found["none"]).roundoff / 2  # tf32 is held to what its operands lose
    assert tolerances == pytest.approx([tolerances[0], tolerances[0] + half, tolerances[0] + 2 * half])
    assert JOB.tolerance(found["silu"], switches) == pytest.approx(tolerances[1])


def test_formats_that_have_none_are_named_with_those_that_have() -> None:
    for name in FORMATS:
        for epilogue, workload in workloads(name, "64x96x128").items():
            told = not_offered(workload)
            assert (told is None) is (name in OFFERED or epilogue == "none")
            assert told is None or (f"epilogue {epilogue}" in told and f"not for {name}" in told)


def test_room_is_kept_for_what_a_compiled_launch_returns_beside_the_output() -> None:
    footprint = JOB.footprint(workloads("bf16")["bias"])
    more = {name: footprint.total_bytes(3, implementation=name) - footprint.total_bytes(3) for name in IMPLEMENTATIONS}
    assert more == {name: 3 * 64 * 96 * 2 if name == "compiled" else 0 for name in IMPLEMENTATIONS}


@pytest.mark.parametrize(
    ("epilogues", "words"),
    [
        (["bias_gelu"], ("no epilogue 'bias_gelu'", "bias_gelu_tanh", "jobs.gemm.epilogues")),
        (["none", None], ("no epilogue 'None'",)),
        ([], ("jobs.gemm.epilogues is empty", "bias_relu")),
    ],
)
def test_bad_settings_are_named_with_their_limit(epilogues: list[str], words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as error:
        JOB.check(GemmSettings(epilogues=epilogues))
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)
