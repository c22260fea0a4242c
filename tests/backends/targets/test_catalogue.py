"""The programs: every room of kernels and every port to XLA is among them, and each can be made."""

import re
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from backends.targets.catalogue import programs
from backends.targets.told import told
from suite.targets import names
from suite.targets.limits import LIMITS
from tests.conftest import ROOT

EVERY = programs()
# Kernels that no program is for, each with why.
NOT_COMPILED = {
    "mxfp8_as_it_is": "no port launches it: sums would be scaled after every 32 numbers",
}


def test_names_are_unique_and_digests_need_no_framework() -> None:
    assert len({program.name for program in EVERY}) == len(EVERY)
    assert {program.kind for program in EVERY} == {names.TRITON, names.XLA}


def test_listing_them_loads_no_framework_and_answering_none_of_the_other_kind() -> None:
    """An installation for XLA has neither torch nor Triton."""
    import subprocess

    modules = "backends.targets.told, backends.targets.answering, backends.targets.xla"
    code = f"import {modules}, sys; backends.targets.told.told(); print(*sorted({{n.partition('.')[0] for n in sys.modules}}))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    assert said
    assert {"torch", "triton", "jax"}.isdisjoint(said)


def test_variables_that_change_what_is_made_are_part_of_what_a_cell_depends_on(monkeypatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    monkeypatch.setenv("DISABLE_PTXAS_OPT", "1")
    for overridden in ("JAX_PLATFORMS", "TPU_WORKER_HOSTNAMES", "TRITON_INTERPRET"):
        monkeypatch.setenv(overridden, "1")
    found = told()["versions"]
    assert found[names.XLA]["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=true"
    assert found[names.TRITON]["DISABLE_PTXAS_OPT"] == "1"
    assert {"JAX_PLATFORMS", "TPU_WORKER_HOSTNAMES", "TRITON_INTERPRET"}.isdisjoint({*found[names.XLA], *found[names.TRITON]})


@pytest.mark.parametrize("program", EVERY, ids=lambda each: each.name)
def test_each_is_made_by_a_function_that_takes_what_it_is_given(program) -> None:
    pytest.importorskip("triton" if program.kind == names.TRITON else "jax")
    module, _, function = program.make.partition(":")
    made = getattr(import_module(f"backends.targets.{module}"), function)
    first = ("device",) if program.kind == names.TRITON else ("devices", "target")
    signature(made).bind(*first, **program.given)
    assert all((ROOT / folder).is_dir() for folder in program.sources)


def test_every_port_to_xla_is_compiled() -> None:
    pytest.importorskip("jax")
    from backends.jax.jobs import PORTS
    from backends.jax.target import FORMATS

    assert {program.kernel for program in EVERY if program.kind == names.XLA} == {f"xla_{job}" for job in PORTS}
    assert {each.given["format"] for each in EVERY if each.kernel == "xla_gemm"} == set(FORMATS)


def kernels(room: Path) -> set[str]:
    """Functions that something launches: those of ``jit`` whose name another module of the room takes by itself."""
    texts = {path: path.read_text() for path in room.rglob("*.py")}
    jitted = {
        name for text in texts.values() for name in re.findall(r"@(?:triton|gluon)\.jit[^\n]*\n(?:@[^\n]*\n)*def (\w+)", text)
    }
    launched = re.compile(r"\bCall\(\s*(?:\w+\.)?(\w+)|\bkernel(?:, \w+)? = ([^\n]+)|^\s*(\w+)\[\(rows,\)\]", re.MULTILINE)
    named = {
        word for text in texts.values() for found in launched.findall(text) for word in re.findall(r"\w+", " ".join(found))
    }
    return jitted & named


def test_every_kernel_that_is_launched_is_among_those_that_the_matrix_compiles(every_kernel: set[str]) -> None:
    launched = kernels(ROOT / "backends" / "triton")
    assert len(launched) > 10
    assert launched - every_kernel <= set(NOT_COMPILED)


@pytest.fixture(scope="module")
def every_kernel() -> set[str]:
    """The kernels that the calls of every program name on some device."""
    pytest.importorskip("triton")
    from backends.targets.devices import DEVICES
    from backends.targets.refused import Refused

    found = {"read_nvidia", "read_cdna"}
    for program in EVERY:
        if program.kind != names.TRITON:
            continue
        module, _, function = program.make.partition(":")
        for name in ("sm_80", "sm_90", "gfx942"):
            try:
                made = getattr(import_module(f"backends.targets.{module}"), function)(DEVICES[name], **program.given)
            except Refused:
                continue
            found |= {call.kernel.fn.__name__ for call in made.calls(made.configs[0])}
    return found


def test_every_gpu_has_a_device() -> None:
    pytest.importorskip("triton")
    from backends.targets.devices import DEVICES

    assert set(DEVICES) == set(LIMITS)
    assert all(DEVICES[name].shared_bytes == limits.block_shared_bytes for name, limits in LIMITS.items())
