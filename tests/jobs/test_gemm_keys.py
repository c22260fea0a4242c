"""Keys that stores out there hold: a case that was measured once must be found again by whoever asks for it later."""

import pytest

from suite.case import Case, Regime
from suite.jobs.gemm import EPILOGUES, GemmJob, GemmSettings

JOB = GemmJob()

# Of 4096x4096x4096, normal data, with the switches that are set by default: workload, and its case cold by the library on CUDA.
KEYS = {
    "fp64": ("2692103281653a44", "9ba5f9d470d54ffb"),
    "fp32": ("f71517e08a0619e8", "d1df93a65e542cc9"),
    "tf32": ("ac77b7979088c355", "b8384304266cc0b1"),
    "bf16": ("f7d78f68f1f343ed", "0e00af80c6106a69"),
    "fp16": ("e35a3b567b91964b", "f51660ba12163c4d"),
    "int8": ("029a8f78a210daef", "12c805b45173e993"),
    "fp8_e4m3": ("53fba4dd6a3f839f", "8d77260768856d32"),
}

# The rest of the precision ladder: format, scaling where there is a choice, and whether zeros are shifted.
LADDER = {
    "int8-tensor": ("4cbe7f0da1ab9739", "29821aedb7ac6cd7"),
    "int8-tensor-shifted": ("2a9dd49187c5cc66", "4a1c0b6f53e0d396"),
    "int8-row": ("9be4c1c051793e9e", "85b4a661f60ca16e"),
    "int8-row-shifted": ("bf1092ead3c727f9", "1d1415731013285e"),
    "fp8_e4m3-row": ("d2f144afacbc5f4b", "40354b3580ba132d"),
    "fp8_e4m3-block": ("c0b9f89fdd88a224", "cf87887c83709543"),
    "fp8_e5m2-tensor": ("2bd6a75a4357cf8e", "dd2d71f059d436b0"),
    "fp8_e5m2-row": ("8f176e3dd12cf528", "ec8247027ce1e00e"),
    "fp8_e5m2-block": ("f0f519105344c73f", "fc48b35279ba4af1"),
    "mxfp8_e4m3": ("f1c9f8b3cfa7b974", "d92cc23e96891f61"),
    "mxfp8_e5m2": ("8796ae10ccf2fff7", "24b4a596427dc037"),
    "mxfp6_e2m3": ("ab83b77821843826", "6dbf8c3644933658"),
    "mxfp6_e3m2": ("afdc23de6c737f09", "5bf3cf0ac454d211"),
    "mxfp4": ("0707858e73cb2d90", "4dc0d4254343257a"),
    "nvfp4": ("1e8b9fe60a008e5d", "df0bf535fb21a65d"),
    "w8a16": ("3b93e805d6244551", "b2bec2dcbc2f010e"),
    "w4a16": ("504a93ab177960c3", "dc4168ca204d4319"),
    "w4a16-shifted": ("3f107562576f29ca", "fa29349e4d65760a"),
    "mxfp4a16": ("43656fd048d30dbe", "8cd6a0744d863bca"),
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
