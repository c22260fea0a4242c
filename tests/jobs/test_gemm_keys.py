"""Keys that stores out there hold: a case that was measured once must be found again by whoever asks for it later."""

import pytest

from suite.case import Case, Regime
from suite.jobs.gemm import EPILOGUES, GemmJob, GemmSettings

JOB = GemmJob()

# Of 4096x4096x4096, normal data, with the switches that are set by default: workload, and its case cold by the library on CUDA.
KEYS = {
    "fp64": ("2692103281653a44", "b3be219e2742fffb"),
    "fp32": ("f71517e08a0619e8", "6f4cc43c6a00ac12"),
    "tf32": ("ac77b7979088c355", "a8e3c227d866af58"),
    "bf16": ("f7d78f68f1f343ed", "65290123d318a699"),
    "fp16": ("e35a3b567b91964b", "984bea1c1045f406"),
    "int8": ("029a8f78a210daef", "b6ed9553c802f6f5"),
    "fp8_e4m3": ("53fba4dd6a3f839f", "5101a51f72175be7"),
}

# The rest of the precision ladder: format, scaling where there is a choice, and whether zeros are shifted.
LADDER = {
    "int8-tensor": ("4cbe7f0da1ab9739", "6e707821aa4c2669"),
    "int8-tensor-shifted": ("2a9dd49187c5cc66", "644a39068b5e69a1"),
    "int8-row": ("9be4c1c051793e9e", "b4a7e50007942fd7"),
    "int8-row-shifted": ("bf1092ead3c727f9", "5093a9b30a2aed89"),
    "fp8_e4m3-row": ("d2f144afacbc5f4b", "30cbc53ecdada3f0"),
    "fp8_e4m3-block": ("c0b9f89fdd88a224", "ed71d5098abcc631"),
    "fp8_e5m2-tensor": ("2bd6a75a4357cf8e", "20c56cfac7a9fe6c"),
    "fp8_e5m2-row": ("8f176e3dd12cf528", "fdb2f4e301b642b6"),
    "fp8_e5m2-block": ("f0f519105344c73f", "c1b9066277eeafc6"),
    "mxfp8_e4m3": ("f1c9f8b3cfa7b974", "801cb6b0cd414b32"),
    "mxfp8_e5m2": ("8796ae10ccf2fff7", "430620ae1e6b755c"),
    "mxfp6_e2m3": ("ab83b77821843826", "6443bb0a065dc454"),
    "mxfp6_e3m2": ("afdc23de6c737f09", "0428b6c9ad13dfff"),
    "mxfp4": ("0707858e73cb2d90", "44e92f4e318527bd"),
    "nvfp4": ("1e8b9fe60a008e5d", "d6d68823ce80ed6e"),
    "w8a16": ("3b93e805d6244551", "9c1baa0634fc32a6"),
    "w4a16": ("504a93ab177960c3", "97ec0d566b8ad30a"),
    "w4a16-shifted": ("3f107562576f29ca", "8d57f3c469b892a0"),
    "mxfp4a16": ("43656fd048d30dbe", "d114112760c88d2d"),
}


def keys_of(settings: GemmSettings) -> tuple[str, str]:
    (workload,) = JOB.workloads(settings)
    (switches,) = JOB.switches(settings, workload)
    case = Case(workload, "library", "cuda", Regime("cold", "sustained", "device"), switches, JOB.method_version)
    return workload.key, case.key


@pytest.mark.parametrize("name", KEYS)
def test_a_stored_case_keeps_its_keys(name: str) -> None:
    assert keys_of(GemmSettings(formats=[name], shapes=["4096x4096x4096"])) == KEYS[name]


@pytest.mark.parametrize("name", LADDER)
def test_a_stored_case_of_the_ladder_keeps_its_keys(name: str) -> None:
    format_name, *scaling = name.removesuffix("-shifted").split("-")
    chosen = {"scaling": scaling[0] if scaling else None, "zero_point": name.endswith("-shifted")}
    assert keys_of(GemmSettings(formats=[format_name], shapes=["4096x4096x4096"], **chosen)) == LADDER[name]


@pytest.mark.parametrize("name", KEYS)
def test_a_case_that_nothing_follows_keeps_its_keys_beside_those_that_something_follows(name: str) -> None:
    settings = GemmSettings(formats=[name], shapes=["4096x4096x4096"], epilogues=list(EPILOGUES))
    keys = [workload.key for workload in JOB.workloads(settings)]
    assert keys[0] == KEYS[name][0]
    assert len(set(keys)) == len(EPILOGUES)
    assert keys_of(GemmSettings(formats=[name], shapes=["4096x4096x4096"], epilogues=["none"])) == KEYS[name]


def test_asking_for_what_a_format_is_anyway_gives_no_other_keys() -> None:
    for name, keys in KEYS.items():
        own = {"int8": "none", "fp8_e4m3": "tensor"}.get(name, "row")
        settings = GemmSettings(formats=[name], shapes=["4096x4096x4096"], scaling=[own, None], zero_point=[False])
        assert keys_of(settings) == keys
