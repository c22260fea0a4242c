"""Plugins that cannot be used: each is told in one line that says whose it is, and nothing else stops working."""

import json
from pathlib import Path

import pytest

from tests.plugins.installed import install_example, outside_devices, roofbench, run, write_plugin

NAMES = ("bare", "lacks", "importing", "raises", "exits", "renamed", "settings", "untyped", "nothing", "unfiled", "unbuilt")
JOB_FILE = "# @package jobs.{0}\ndefaults:\n  - /schema/job/{0}@_here_\n  - _self_\n"
BACKEND_FILE = "# @package backends.{0}\ndefaults:\n  - /schema/backend@_here_\n  - _self_\nname: {0}\n"
MODULES = {
    "lacks.py": "class Job:\n    name = 'lacks'\n    tolerance = 1\n",
    "importing.py": "import not_installed_anywhere\n",
    "raises.py": "one = 1\nnone = one / 0\n",
    "exits.py": "import sys\nsys.exit('no licence')\n",
    "renamed.py": "from roofbench_example.matvec import MatvecJob as Job\n",
    "settings.py": (
        "from roofbench_example.matvec import MatvecJob\n\n"
        "class Job(MatvecJob):\n    name = 'settings'\n    settings_type = dict\n"
    ),
    "untyped.py": (
        "from dataclasses import dataclass\nfrom roofbench_example.matvec import MatvecJob, MatvecSettings\n\n"
        "@dataclass\nclass Settings(MatvecSettings):\n    when: complex = 1j\n\n"
        "class Job(MatvecJob):\n    name = 'untyped'\n    settings_type = Settings\n"
    ),
    "bare.py": "from roofbench_example.matvec import MatvecJob as Job\n",
    "unbuilt.py": "Job = 3\n",
    "unfiled.py": "from roofbench_example.matvec import MatvecJob as Job\n",
    "half.py": "class Half:\n    name = 'half'\n    def __init__(self, options): self.options = options\n",
    "absent.py": "import not_installed_anywhere\n",
    **{f"conf/job/{name}.yaml": JOB_FILE.format(name) for name in NAMES if name != "unfiled"},
    "conf/job/bare.yaml": "# @package jobs.bare\nshapes: [64x128]\n",
    **{f"conf/backend/{name}.yaml": BACKEND_FILE.format(name) for name in ("half", "absent")},
}
COMPOSE = """
import json, sys
from suite.config import compose
from suite.errors import UsageError

def answer(overrides):
    try:
        return compose(overrides).experiment
    except UsageError as error:
        return str(error)

print(json.dumps([answer(overrides) for overrides in json.loads(sys.argv[1])]))
"""


def composed(site: Path, *each: list[str]) -> list[str]:
    """What composing ends in for each list of overrides: the message of a refusal, or the experiment's name."""
    said = run(site, site, "-c", COMPOSE, json.dumps(each))
    assert said.status == 0, said.err
    answers: list[str] = json.loads(said.out)
    return answers


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example beside a plugin of which nothing works."""
    site = install_example(tmp_path_factory.mktemp("broken"))
    jobs = {name: f"bad_one.{name}:Job" for name in NAMES} | {"a name": "bad_one.lacks:Job", "whole": "bad_one.lacks"}
    backends = {"half": "bad_one.half:Half", "absent": "bad_one.absent:Absent", "gone": "bad_one.gone:Gone"}
    return write_plugin(site, "bad-one", MODULES, jobs=jobs, backends=backends)


@pytest.fixture(scope="module")
def refusals(broken: Path) -> dict[str, str]:
    names = (*NAMES, "a name", "whole")
    return dict(zip(names, composed(broken, *([f"job={name}"] for name in names)), strict=True))


ENTRY = " (entry point '{0} = bad_one.{0}:Job' of roofbench.jobs)"
EXPECTED = {
    "lacks": "lacks check, footprint, formats, implementations, method_version, misfit, settings_type, switches, tolerance, "
    "usual_regimes, work, workloads, which suite.jobs.job.Job asks for" + ENTRY,
    "importing": "cannot be loaded: ModuleNotFoundError: No module named 'not_installed_anywhere', importing.py line 1" + ENTRY,
    "raises": "cannot be loaded: ZeroDivisionError: division by zero, raises.py line 2" + ENTRY,
    "exits": "cannot be loaded: SystemExit: no licence, exits.py line 2" + ENTRY,
    "renamed": "is named 'matvec'; an entry point and its job have one name" + ENTRY,
    "settings": "has a settings_type that is no dataclass derived from suite.settings.JobSettings" + ENTRY,
    "nothing": "cannot be loaded: ModuleNotFoundError: No module named 'bad_one.nothing'" + ENTRY,
    "unbuilt": "cannot be loaded: TypeError: 'int' object is not callable" + ENTRY,
    "a name": "cannot be asked for: a name is made of letters, digits, _ and -",
    "whole": "cannot be loaded: 'bad_one.lacks' is not module:Class",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_job_that_cannot_be_had_says_whose_it_is_and_what_is_missing(refusals: dict[str, str], name: str) -> None:
    assert refusals[name] == f"job '{name}' of bad-one 0.1 {EXPECTED[name].format(name)}"


def test_a_job_without_a_file_says_where_one_is_expected(refusals: dict[str, str], broken: Path) -> None:
    folder = broken / "bad_one" / "conf"
    assert refusals["unfiled"] == f"job 'unfiled' of bad-one 0.1 has no file job/unfiled.yaml in {folder}"


def test_a_job_whose_file_has_no_schema_is_told_which_lines_are_missing(refusals: dict[str, str], broken: Path) -> None:
    file = broken / "bad_one" / "conf" / "job" / "bare.yaml"
    assert refusals["bare"] == (
        f"job 'bare' has no schema, by which its settings are known: {file} has to begin with '# @package jobs.bare' and "
        "'defaults: [/schema/job/bare@_here_, _self_]'"
    )


def test_settings_that_hydra_cannot_read_are_refused(refusals: dict[str, str]) -> None:
    assert refusals["untyped"].startswith("the settings of job 'untyped' are no schema that Hydra takes: ")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "half",
            "lacks classify, devices, environment, evidence, memory_free, peak_memory_bytes, prepare, sampler, select, "
            "supports, synchronize, telemetry, which suite.backend.Backend asks for",
        ),
        ("absent", "ModuleNotFoundError: No module named 'not_installed_anywhere'"),
    ],
)
def test_a_backend_that_cannot_be_had_says_so_before_there_is_a_store(
    broken: Path, tmp_path: Path, name: str, why: str
) -> None:
    said = roofbench(tmp_path, broken, "run", "job=matvec", f"backend={name}", "experiment=null")
    assert said.status == 2
    whose = f"backend '{name}' of bad-one 0.1 (entry point '{name} = bad_one.{name}:{name.capitalize()}' of roofbench.backends)"
    assert whose in said.err
    assert why in said.err
    assert said.err.count("\n") == 1
    assert not [*tmp_path.iterdir()]


def test_all_of_them_are_listed_with_why_and_the_others_with_their_devices(broken: Path) -> None:
    listed, complaints = outside_devices(broken)
    found = {row["backend"]: row for row in listed}
    assert found["numpy"]["device"] is not None
    assert found["absent"]["reason"] == (
        "ModuleNotFoundError: No module named 'not_installed_anywhere'; "
        "entry point 'absent = bad_one.absent:Absent' of roofbench.backends in bad-one 0.1"
    )
    assert "gone" in found
    assert "job 'a name' of bad-one 0.1 cannot be asked for" in complaints


def test_other_plugins_and_our_own_go_on_working(broken: Path) -> None:
    assert composed(broken, ["experiment=matvec"], ["experiment=quick", "backend=cpu"]) == ["matvec", "quick"]


def test_a_name_of_ours_is_never_taken(tmp_path: Path) -> None:
    site = write_plugin(
        tmp_path / "site", "evil", {}, jobs={"gemm": "evil:Job"}, backends={"cpu": "evil:Cpu", "auto": "evil:A"}
    )
    (site / "evil" / "conf" / "backend").mkdir(parents=True)
    (site / "evil" / "conf" / "backend" / "cpu.yaml").write_text("max_cases: nonsense\n")
    said = roofbench(tmp_path, site, "devices", "backend=cpu")
    assert "cpu:\n  device 0:" in said.out
    found, complaints = outside_devices(site)
    assert found == []
    for kind, name in (("job", "gemm"), ("backend", "cpu"), ("backend", "auto")):
        line = f"roofbench: {kind} '{name}', offered by evil 0.1, is refused: roofbench 0.1.0 has one of that name\n"
        assert line in complaints
    planned = json.loads(roofbench(tmp_path, site, "plan", "job=gemm", "backend=cpu", "experiment=null", "--json").out)
    assert {row["job"] for row in planned} == {"gemm", "calibration"}


def test_two_of_one_name_are_refused_and_both_are_named(tmp_path: Path) -> None:
    site = install_example(tmp_path)
    files = {"conf/job/matvec.yaml": JOB_FILE.format("matvec"), "conf/backend/numpy.yaml": BACKEND_FILE.format("numpy")}
    write_plugin(site, "other", files, jobs={"matvec": "other:Job"}, backends={"numpy": "other:Numpy"})
    job, backend, ours = composed(site, ["job=matvec"], ["backend=numpy"], ["job=gemm"])
    assert job == "job 'matvec' is offered by other 0.1 and by roofbench-example 1.0; uninstall all but one of them"
    assert backend == "backend 'numpy' is offered by other 0.1 and by roofbench-example 1.0; uninstall all but one of them"
    assert ours == "quick"


def test_two_experiments_of_one_name_are_refused(tmp_path: Path) -> None:
    site = install_example(tmp_path)
    text = "# @package _global_\nmax_cases: 3\n"
    write_plugin(site, "other", {"conf/experiment/matvec.yaml": text, "conf/experiment/own.yaml": text}, jobs={"x": "other:X"})
    both, own = composed(site, ["experiment=matvec"], ["experiment=own"])
    assert both == "experiment 'matvec' comes with other 0.1 and with roofbench-example 1.0; uninstall all but one of them"
    assert own == "own"
