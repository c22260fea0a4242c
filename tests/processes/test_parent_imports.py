"""The parent of a sweep imports no framework and no backend: those live in workers."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from pathlib import Path
from tests.processes.driver import _run
status = _run(Path(sys.argv[1]), {"shapes": ["8x8x8"]})
print(json.dumps([status, sorted(name.partition(".")[0] for name in sys.modules)]))
"""


def test_no_framework_is_in_the_process_that_plans_launches_and_stores(tmp_path: object) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, f"{tmp_path}/store.db"], capture_output=True, text=True, check=True)
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert not {"torch", "jax", "jaxlib", "triton", "backends", "dashboard", "streamlit", "plotly", "hydra", "omegaconf"} & set(
        modules
    )


def test_the_launcher_the_probe_and_the_locks_load_nothing_heavy() -> None:
    script = (
        "import sys, suite.launcher.launch, suite.probe, suite.locks, suite.environment, suite.events; "
        "print(sorted({'numpy', 'sqlalchemy', 'torch', 'rich', 'plotly', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
