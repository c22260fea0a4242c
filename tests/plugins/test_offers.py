"""Plugins are found without importing them, and looked for only when something is asked for that is not ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite import probe
from suite.plugins import place
from suite.plugins.contract import lacking
from suite.plugins.jobs import outside_job
from suite.plugins.offers import find, names
from tests.fake.backend import FakeBackend
from tests.plugins.installed import write_plugin

OURS = ("plan", "experiment=standard", "hardware=nvidia-h200-sxm5-141gb")
SPY = """
import sys
from suite.cli import main
try:
    main(sys.argv[1:])
finally:
    print("loaded:", *sorted(sys.modules), file=sys.stderr)
"""


@pytest.fixture
def loud(tmp_path: Path) -> Path:
    """A plugin that cannot be imported without it being seen."""
    modules = {
        "__init__.py": "raise SystemExit('imported')\n",
        "inner/__init__.py": "raise SystemExit('imported')\n",
        "inner/job.py": "raise SystemExit('imported')\n",
        "inner/conf/job/loud.yaml": "",
        "conf/job/loud.yaml": "",
        "other/job.py": "raise SystemExit('imported')\n",
    }
    return write_plugin(tmp_path, "loud", modules, jobs={"loud": "loud.inner.job:Job"}, backends={"loud": "loud.inner.job:B"})


@pytest.mark.parametrize("command", [("--help",), ("run", "--help"), OURS])
def test_what_is_ours_reads_no_entry_points_and_imports_no_plugin(loud: Path, command: tuple[str, ...]) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(loud), os.environ["PYTHONPATH"]])}
    child = subprocess.run([sys.executable, "-c", SPY, *command], env=env, capture_output=True, text=True, check=True)
    modules = set(child.stderr.rpartition("loaded:")[2].split())
    assert "suite.cli" in modules
    assert modules.isdisjoint({"loud", "importlib.metadata", "suite.plugins.offers"})


def test_a_folder_and_files_are_found_without_importing(loud: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(loud))
    package = loud / "loud"
    assert place.config_folder("loud.inner.job") == package / "inner" / "conf"
    assert place.config_folder("loud.other.job") == package / "conf"
    assert place.config_folder("loud") == package / "conf"
    assert place.config_folder("loud.gone.job") is None
    assert {path.relative_to(package) for path in place.sources("loud.inner.job")} == {
        Path("inner/__init__.py"),
        Path("inner/job.py"),
    }
    assert place.is_there("loud.inner.job")
    assert not place.is_there("loud.inner.gone")
    assert not place.is_there("not_installed_anywhere.job")
    assert not {name for name in sys.modules if name.startswith("loud")}


def test_a_module_without_a_package_has_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lone_backend.py").write_text("")
    (tmp_path / "another.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [*place.sources("lone_backend")] == [tmp_path / "lone_backend.py"]


def test_a_backend_whose_source_changes_is_asked_anew(loud: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(loud))
    before = probe._identity("loud.inner.job:B", {}, loud)
    assert probe._identity("loud.inner.job:B", {}, loud) == before
    os.utime(loud / "loud" / "inner" / "job.py", ns=(1, 1))
    assert probe._identity("loud.inner.job:B", {}, loud) != before


@pytest.mark.parametrize("name", ["gemm", "calibration", "never-heard-of"])
def test_nothing_outside_is_found_for_our_names_and_for_none(name: str) -> None:
    assert find("job", name) is None
    assert outside_job(name) is None
    assert name not in names("job")


def test_a_part_of_a_contract_that_cannot_be_called_is_missing() -> None:
    from suite.backend import Backend

    backend = FakeBackend({})
    assert lacking(backend, Backend) == []
    backend.devices = ()  # type: ignore[method-assign, assignment]
    del backend.name
    assert lacking(backend, Backend) == ["devices", "name"]
