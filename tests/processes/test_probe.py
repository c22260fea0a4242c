"""Devices are asked for in a child process; answers are kept until something they depend on changes."""

import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from suite import probe as module
from suite.probe import ProbeResult, forget, probe
from tests.fake.backend import FakeBackend
from tests.patience import PATIENCE_S
from tests.processes.bench import TARGET, gone_within


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Targets that a child was started for."""
    calls: list[str] = []
    ask = module._ask

    def counted(target: str, options: Mapping[str, Any], time_limit_s: float) -> ProbeResult:
        calls.append(target)
        return ask(target, options, time_limit_s)

    monkeypatch.setattr(module, "_ask", counted)
    return calls


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The same without the child, for what becomes of an answer."""
    calls: list[str] = []

    def answer(target: str, options: Mapping[str, Any], time_limit_s: float) -> ProbeResult:
        calls.append(target)
        return ProbeResult(tuple(FakeBackend(options).devices()))

    monkeypatch.setattr(module, "_ask", answer)
    return calls


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The files of a machine that answers depend on."""
    root = tmp_path / "machine"
    for name, text in {
        "proc/sys/kernel/random/boot_id": "boot-1",
        "proc/driver/nvidia/version": "NVRM version: 580.1",
        "proc/cpuinfo": "model name : X\ncpu MHz : 1000",
        "dev/nvidia0": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def kept(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache/roofbench/probe").glob("*"))


def test_an_answer_that_proved_wrong_is_forgotten_and_no_other(answered: list[str], tmp_path: Path) -> None:
    for options in ({"devices": 1}, {"devices": 2}):
        probe(TARGET, options)
    forget(TARGET, {"devices": 1})
    assert len(kept(tmp_path)) == 1
    probe(TARGET, {"devices": 2})
    assert len(answered) == 2
    assert [device.index for device in probe(TARGET, {"devices": 1}).devices] == [0]
    assert len(answered) == 3
    forget(TARGET, {"never": "asked"})


def test_devices_come_back_whole_and_are_asked_for_once(asked: list[str]) -> None:
    options = {"devices": 2, "device": {"partition": "MIG 1g", "isa": ["avx2"], "details": {"a": "b"}}}
    first = probe(TARGET, options)
    assert [device.index for device in first.devices] == [0, 1]
    assert first.devices[0].isa == ("avx2",)
    assert first.error == ""
    assert probe(TARGET, options) == first
    assert len(asked) == 1


def test_no_devices_is_an_answer_and_is_kept(asked: list[str]) -> None:
    assert probe(TARGET, {"devices": 0}) == probe(TARGET, {"devices": 0}) == ProbeResult(())
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("name", "text", "again"),
    [
        ("proc/sys/kernel/random/boot_id", "boot-2", True),
        ("proc/driver/nvidia/version", "NVRM version: 590.2", True),
        ("dev/nvidia1", "", True),
        ("proc/driver/nvidia/capabilities/gpu0/mig/gi7/access", "", True),
        ("proc/cpuinfo", "model name : X\ncpu MHz : 2000", False),
        ("dev/null", "", False),
    ],
)
def test_a_change_of_the_machine_asks_again(answered: list[str], machine: Path, name: str, text: str, again: bool) -> None:
    probe(TARGET, root=machine)
    (machine / name).parent.mkdir(parents=True, exist_ok=True)
    (machine / name).write_text(text)
    probe(TARGET, root=machine)
    assert len(answered) == (2 if again else 1)


def test_options_visibility_and_versions_ask_again(answered: list[str], machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe(TARGET, root=machine)
    probe(TARGET, {"devices": 2}, root=machine)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    probe(TARGET, root=machine)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99")
    probe(TARGET, root=machine)
    probe(TARGET, root=machine)
    assert len(answered) == 4


@pytest.mark.parametrize("name", ["XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "LD_LIBRARY_PATH"])
def test_what_drives_the_devices_in_the_environment_asks_again(
    answered: list[str], machine: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    probe(TARGET, root=machine)
    monkeypatch.setenv(name, "another")
    probe(TARGET, root=machine)
    assert len(answered) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"devices": [{}], "error": ""}', '{"devices": 3}', "\x00"])
def test_a_damaged_cache_is_ignored_and_replaced(answered: list[str], tmp_path: Path, content: str) -> None:
    first = probe(TARGET)
    (path,) = kept(tmp_path)
    path.write_text(content)
    assert probe(TARGET) == first
    assert probe(TARGET) == first
    assert len(answered) == 2


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(probe(TARGET).devices) == 1


@pytest.mark.parametrize(
    ("target", "options", "error"),
    [
        ("no.such:Backend", {}, "backend no.such:Backend: ModuleNotFoundError: No module named 'no'"),
        (TARGET, {"start": "error:no driver"}, f"backend {TARGET}: RuntimeError: no driver"),
        (
            TARGET,
            {"start": "say_and_die:driver mismatch"},
            f"backend {TARGET} ended with status -6 before it named its devices",
        ),
        (TARGET, {"start": "segfault"}, f"backend {TARGET} ended with status -11 before"),
    ],
)
def test_a_backend_that_cannot_be_asked_says_why_and_is_asked_again_but_for_who_is_in_a_hurry(
    asked: list[str], tmp_path: Path, target: str, options: dict[str, str], error: str
) -> None:
    for _ in range(2):
        result = probe(target, options)
        assert result.devices == ()
        assert result.error.startswith(error)
    assert len(asked) == 2
    assert probe(target, options, at_once=True) == result
    assert len(asked) == 2
    (answer,) = kept(tmp_path)
    long_ago = time.time() - 3600
    os.utime(answer, (long_ago, long_ago))
    probe(target, options, at_once=True)
    assert len(asked) == 3


LIMIT_S = 8.0  # in which a process loads the backend, and its children begin


def test_a_backend_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    began = time.monotonic()
    result = probe(TARGET, {"start": f"hang_with_children:{pids}"}, time_limit_s=LIMIT_S)
    assert time.monotonic() - began < LIMIT_S + PATIENCE_S
    assert f"did not say within {LIMIT_S:g} s" in result.error
    assert all(gone_within(int(pid), 0) for pid in pids.read_text().split())


def test_what_a_backend_prints_does_not_spoil_the_answer() -> None:
    assert len(probe(TARGET, {"start": "chatter:2"}).devices) == 1


def test_the_environment_of_this_process_is_left_alone() -> None:
    before = dict(os.environ)
    probe(TARGET, cache=False)
    assert dict(os.environ) == before


class Unkillable:
    """A real child that no signal reaches, as one that waits within the kernel."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.signalled: list[int] = []
        self._killpg = os.killpg
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(module.os, "killpg", lambda pid, number: self.signalled.append(pid))
        monkeypatch.setattr(module, "kill_marked", lambda mark: [])
        monkeypatch.setattr(module, "LEAVE_S", 0.05)
        monkeypatch.setattr(module, "KILLED_S", 0.1)

    def let_go(self) -> int:
        """Kill it after all; its process id."""
        (pid,) = self.signalled
        self._killpg(pid, signal.SIGKILL)
        return pid


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_backend_that_cannot_be_killed_is_not_waited_for_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    unkillable, began = Unkillable(monkeypatch), time.monotonic()
    result = probe(TARGET, {"start": "hang"}, time_limit_s=0.2)
    took_s, pid = time.monotonic() - began, unkillable.let_go()
    assert took_s < PATIENCE_S
    assert result == ProbeResult(
        (),
        f"backend {TARGET} did not say within 0.2 s which devices there are; its process {pid} was killed and did not end "
        "within 0.1 s, as under a driver that is wedged",
    )


def test_devices_whose_process_cannot_be_killed_are_none_to_measure() -> None:
    answer = json.dumps(module._to_json(ProbeResult(tuple(FakeBackend({}).devices())))).encode()
    stays = "; its process 7 was killed and did not end"
    assert module._understood(answer, TARGET, None, b"", stays) == ProbeResult((), f"backend {TARGET} named its devices{stays}")
    said = module._understood(b"", TARGET, None, b"a driver's word\n", stays)
    assert said.error == (f"backend {TARGET} said nothing before it named its devices; it printed last: a driver's word{stays}")


@pytest.mark.parametrize(
    ("target", "lacks"),
    [
        ("os:nope", "module os has no class nope"),
        ("os:path", "module os has no class path"),
        ("os:path.nope", "module os has no class path.nope"),
        ("sys:nope", "module sys has no class nope"),
        ("tests.fake.backend:Nope", "module tests.fake.backend has no class Nope"),
    ],
)
def test_a_target_that_is_not_in_its_module_is_bad_input_and_no_want_of_a_device(target: str, lacks: str) -> None:
    assert probe(target).error == (
        f"backend {target}: UsageError: {lacks}; a target is MODULE:CLASS, such as backends.cpu:CpuBackend"
    )
