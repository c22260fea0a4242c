"""docker/prepare: who owns stores, the host's groups, the commit, and a passphrase that nobody else can read."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.patience import PATIENCE_S

COMPOSE = (ROOT / "docker" / "compose.yaml").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the script on a host that knows no group but video."""
    getent = tmp_path / "bin" / "getent"
    getent.parent.mkdir()
    getent.write_text('#!/bin/sh\n[ "$2" = video ] && echo video:x:39: || exit 2\n')
    getent.chmod(0o755)
    (tmp_path / "repository" / "docker").mkdir(parents=True)
    return Path(shutil.copy(ROOT / "docker" / "prepare", tmp_path / "repository" / "docker")).parent


def prepare(folder: Path) -> dict[str, str]:
    path = f"{folder.parents[1] / 'bin'}:{os.environ['PATH']}"
    environment = {"PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(folder.parents[1])}
    said = subprocess.run([folder / "prepare"], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert said.stderr == ""
    assert not (folder / ".env.new").exists()
    return dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines())


def test_it_writes_what_compose_reads(folder: Path) -> None:
    written = prepare(folder)
    own = [str(os.getuid() or 1000), str(os.getgid() if os.getuid() else 1000)]
    assert [written[f"ROOFBENCH_{name}"] for name in ("UID", "GID", "VIDEO_GID", "REVISION")] == [*own, "39", "unknown"]
    assert "ROOFBENCH_RENDER_GID" not in written
    assert set(written) <= set(re.findall(r"\$\{(ROOFBENCH_\w+)", COMPOSE))


def test_the_passphrase_is_the_owners_alone_and_long_enough_for_the_dashboard(folder: Path) -> None:
    prepare(folder)
    phrase = folder / "passphrase"
    assert stat.S_IMODE(phrase.stat().st_mode) == 0o600
    assert phrase.stat().st_uid == (folder / "stores").stat().st_uid == (os.getuid() or 1000)
    assert re.fullmatch(r"[0-9a-f]{32}\n", phrase.read_text())


def test_it_keeps_what_is_there(folder: Path) -> None:
    (folder / ".env").write_text("ROOFBENCH_UID=77\nROOFBENCH_PID=host\n")
    (folder / "passphrase").write_text("one of mine\n")
    for _ in range(2):
        written = prepare(folder)
    assert written["ROOFBENCH_PID"] == "host"
    assert written["ROOFBENCH_UID"] != "77"
    assert len((folder / ".env").read_text().splitlines()) == len(written)
    assert (folder / "passphrase").read_text() == "one of mine\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_told_and_whether_sources_differ_from_it(folder: Path) -> None:
    git = ["git", "-C", str(folder.parent), "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    (folder.parent / "source").write_text("a")
    for words in (["init", "--quiet"], ["add", "source"], ["commit", "--quiet", "--message", "Sources"]):
        subprocess.run([*git, *words], check=True, capture_output=True, timeout=PATIENCE_S)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True, timeout=PATIENCE_S
    ).stdout.strip()
    assert prepare(folder)["ROOFBENCH_REVISION"] == commit
    (folder.parent / "source").write_text("b")
    assert prepare(folder)["ROOFBENCH_REVISION"] == f"{commit}-dirty"
