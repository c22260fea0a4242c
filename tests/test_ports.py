"""Which jobs a backend has a port of is known without loading it, and a run of others alone is refused before anything runs."""

from importlib import import_module
from pathlib import Path

import pytest

from suite.backend import DeviceInfo
from suite.case import Case, Regime, Workload
from suite.commands.plan import remarks
from suite.config import compose
from suite.jobs.decode_step import DecodeStepSettings
from suite.plan import plan
from suite.planned import DeviceSlot
from suite.ports import BY_TORCH, BY_XLA, PORTS, has_port, nothing_ported
from suite.settings import RunConfig
from tests.cli.command import roofbench

CPU = DeviceSlot(0, "cpu", "backends.cpu:CpuBackend", None)
XLA = DeviceSlot(1, "xla", "backends.xla:XlaBackend", None)
OTHER = DeviceSlot(0, "xla", "someones.package:Backend", None)


@pytest.mark.parametrize(("registry", "told"), [("backends.torch.jobs", BY_TORCH), ("backends.jax.jobs", BY_XLA)])
def test_the_table_is_what_the_registries_have(registry: str, told: tuple[str, ...]) -> None:
    assert set(import_module(registry).PORTS) == set(told)


def test_every_backend_of_ours_is_in_it() -> None:
    assert set(PORTS) == {f"backends.{name}" for name in ("cpu", "cuda", "rocm", "xla")}
    assert has_port("someones.package:Backend", "decode_step")  # which is asked when it measures


def test_a_run_of_nothing_that_a_backend_has_is_refused_in_words() -> None:
    assert nothing_ported(["decode_step"], [XLA]) == (
        "nothing that jobs.decode_step asks for exists on backend xla, which has attention, collective, decode and gemm; ask "
        "for something else"
    )
    assert not nothing_ported(["decode_step", "gemm"], [XLA])
    assert not nothing_ported(["decode_step"], [CPU, XLA])
    assert not nothing_ported(["decode_step"], [OTHER])
    assert not nothing_ported(["decode_step"], [])


def test_a_plan_says_which_backend_has_no_port() -> None:
    config = compose(["job=[gemm,decode_step]"])
    assert [line for line in remarks(config, [CPU, XLA]) if "no port" in line] == [
        "no port of job decode_step to backend xla, which has attention, collective, decode and gemm: such cases are "
        "unsupported"
    ]
    assert not [line for line in remarks(config, [CPU]) if "no port" in line]


def test_it_is_refused_before_anything_is_created(tmp_path: Path) -> None:
    given = ("job=decode_step", "backend=xla", "+backends.xla.options.platform=cpu", "jobs.decode_step.layers=1")
    said = roofbench(tmp_path, "run", *given, "store.url=x.db")
    assert said.status == 2
    assert said.err.startswith("roofbench: nothing that jobs.decode_step asks for exists on backend xla, which has ")
    assert not (tmp_path / "x.db").exists()


def test_a_plan_says_that_such_a_run_is_refused_without_asking_a_device(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "plan", "job=decode_step", "backend=xla", "hardware=google-tpu-v5e", "jobs.decode_step.layers=1")
    assert said.status == 0
    assert "a run is refused: nothing that jobs.decode_step asks for exists on backend xla, which has " in said.out
    assert said.out.count("which has") == 1


def test_what_a_backend_has_no_port_of_takes_no_time() -> None:
    slot = XLA._replace(slot=0, info=DeviceInfo("xla", 0, "Some CPU", "c" * 16, 24 * 2**30, llc_bytes=2**25))
    cases = plan(RunConfig(jobs={"decode_step": DecodeStepSettings(layers=1)}), [slot])
    assert {case.predicted_s > 0.0 for case in cases if case.case.workload.job == "calibration"} == {True}
    assert {case.predicted_s for case in cases if case.case.workload.job == "decode_step"} == {0.0}


def test_the_reason_names_what_there_is_and_doubts_no_name() -> None:
    case = Case(Workload("decode_step", "bf16", ()), "library", "xla", Regime("cold", "sustained", "device"))
    assert import_module("backends.jax.jobs").reason(case, None) == (
        "no port of job 'decode_step' to XLA, which has attention, collective, decode and gemm"
    )
