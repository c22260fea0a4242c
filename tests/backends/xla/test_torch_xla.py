"""torch/XLA is asked for by name and answers with a reason, on the command line and in the list of devices."""

from pathlib import Path

import pytest

from backends.torch_xla import UNSUPPORTED, TorchXlaBackend
from suite.errors import DeviceNotFound
from tests.cli.command import roofbench


def test_it_says_why_and_what_to_take_instead() -> None:
    with pytest.raises(DeviceNotFound, match=r"torch/XLA is unsupported: .*; backend=xla measures the same compiler"):
        TorchXlaBackend({"platform": "tpu"})


@pytest.mark.parametrize("command", ["run", "plan", "devices"])
def test_every_command_that_asks_for_it_is_told(tmp_path: Path, command: str) -> None:
    said = roofbench(tmp_path, command, "backend=torch_xla")
    assert UNSUPPORTED in said.out + said.err
    assert (said.status != 0) == (command == "run")
    assert "Traceback" not in said.err
    assert not list(tmp_path.iterdir())
