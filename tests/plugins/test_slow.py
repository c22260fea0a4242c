"""A plugin that hangs where it is imported: the command says which one it waits for, and can be ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from suite.plugins import slow
from suite.plugins.slow import told_when_slow
from tests.patience import PATIENCE_S
from tests.plugins.installed import install_example, write_plugin

JOB_FILE = "# @package jobs.hangs\ndefaults:\n  - /schema/job/hangs@_here_\n  - _self_\n"
BACKEND_FILE = "# @package backends.silent\ndefaults:\n  - /schema/backend@_here_\n  - _self_\nname: silent\n"
HANGS = "import time\ntime.sleep(600)\n"
PLAN = "import sys; from suite.plugins import slow; slow.SLOW_S = 0.3; from suite.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = install_example(tmp_path_factory.mktemp("hanging"))
    files = {"job.py": HANGS, "backend.py": HANGS, "conf/job/hangs.yaml": JOB_FILE, "conf/backend/silent.yaml": BACKEND_FILE}
    return write_plugin(site, "hanging", files, jobs={"hangs": "hanging.job:Job"}, backends={"silent": "hanging.backend:B"})


@pytest.mark.parametrize(
    ("asked", "told", "interrupts"),
    [
        (
            ("job=hangs", "backend=numpy"),
            "importing job 'hangs' of hanging 0.1 (entry point 'hangs = hanging.job:Job' of roofbench.jobs)",
            2,
        ),
        (("job=matvec", "backend=silent"), "asking backend hanging.backend:B for its devices, which has 90 s", 1),
    ],
    ids=["job", "backend"],
)
def test_a_plan_that_waits_for_a_plugin_says_for_which_and_is_ended_by_two_interrupts_at_most(
    hanging: Path, tmp_path: Path, asked: tuple[str, ...], told: str, interrupts: int
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(hanging), os.environ["PYTHONPATH"]])}
    command = [sys.executable, "-c", PLAN, "plan", "experiment=null", *asked]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        assert child.stderr.readline() == f"roofbench: still {told}, after 0.3 s; Ctrl-C, and once more if need be, ends it\n"
        for _ in range(interrupts):  # no more: a further one could reach an interpreter that is ending, and kill it
            time.sleep(0.5)
            assert child.poll() is None
            child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE_S) == 130
        assert child.stderr.read() == "roofbench: interrupted\n"


def test_a_plugin_that_is_there_soon_is_not_talked_of(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(slow, "SLOW_S", 0.5)
    monkeypatch.setattr(slow, "_tell", told.append)
    with told_when_slow("importing it"):
        pass
    time.sleep(1.0)
    assert told == []


@pytest.mark.parametrize(
    ("handler", "advice"),
    [(signal.default_int_handler, "; Ctrl-C, and once more if need be, ends it"), (signal.SIG_IGN, "")],
    ids=["a terminal's", "ignored, as in the background"],
)
def test_what_takes_longer_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], handler: Any, advice: str
) -> None:
    monkeypatch.setattr(slow, "SLOW_S", 0.01)
    before, said = signal.signal(signal.SIGINT, handler), ""
    until_s = time.monotonic() + PATIENCE_S
    try:
        with told_when_slow("importing it"):
            while not said.endswith("\n") and time.monotonic() < until_s:
                time.sleep(0.01)
                said += capsys.readouterr().err
            time.sleep(0.1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert said + capsys.readouterr().err == f"roofbench: still importing it, after 0.01 s{advice}\n"
