"""The example package beside roofbench, and a store with what it measured."""

from pathlib import Path

import pytest

from tests.plugins.installed import install_example, run

SHORT = (
    "measure.min_time_s=0.005", "measure.max_time_s=0.02", "measure.steady_window_s=0.01", "measure.steady_timeout_s=0.05",
)  # fmt: skip
QUICK = ("experiment=matvec", "jobs.matvec.shapes=[64x128]", "jobs.matvec.formats=[fp32]", *SHORT)
STORE = "roofbench.db"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package installed."""
    return install_example(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing installed."""
    return tmp_path_factory.mktemp("nothing")


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Path:
    """A folder with two runs in a store: of the package as it is, and of a later version of it."""
    folder, later = tmp_path_factory.mktemp("measured"), tmp_path_factory.mktemp("later")
    for each in (site, install_example(later, "1.1")):
        said = run(folder, each, "-m", "suite.cli", "run", *QUICK)
        assert said.status == 0, said.err + said.out
        (folder / f"said-{each.name}").write_text(said.out)
    return folder
