"""What .dockerignore lets into a build: the sources, and no store, secret, history or recording."""

from fnmatch import fnmatchcase

import pytest

from tests.conftest import ROOT
from tests.docker.test_images import copied

LINES = [line.strip() for line in (ROOT / ".dockerignore").read_text().splitlines()]
PATTERNS = [line for line in LINES if line and not line.startswith("#")]


def matches(pattern: list[str], path: list[str]) -> bool:
    """A pattern of a folder matches all that is in it; ``**`` is any number of folders, none included."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(matches(pattern[1:], path[skipped:]) for skipped in range(len(path)))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and matches(pattern[1:], path[1:])


def is_let_in(path: str) -> bool:
    """The last pattern that matches decides."""
    let_in = True
    for line in PATTERNS:
        if matches(line.lstrip("!").split("/"), path.split("/")):
            let_in = line.startswith("!")
    return let_in


@pytest.mark.parametrize(
    "path",
    [
        *("roofbench.db", "h200.db-wal", "report.html", "report-1.html", "mine.md", "suite/stray.db", "suite/stray.db-shm"),
        *("docker/stores/roofbench.db", "docker/.env", "docker/passphrase", "docker/compose.yaml", "docker/Dockerfile"),
        *(".git/config", ".git", ".venv/bin/python", ".mypy_cache/x", "tests/recordings/h200.jsonl", "tests/conftest.py"),
        *(
            "suite/__pycache__/cli.cpython-311.pyc",
            "__pycache__/x.pyc",
            "roofbench.db.rank-1.jsonl",
            "outputs/x",
            ".ci/install",
        ),
    ],
)
def test_is_kept_out(path: str) -> None:
    assert not is_let_in(path)


def test_what_is_copied_is_let_in() -> None:
    assert [source for source in copied() if not is_let_in(source)] == []


def test_all_sources_are_let_in() -> None:
    rooms = [path for room in ("suite", "backends", "dashboard", "configs") for path in (ROOT / room).rglob("*")]
    sources = [path for path in rooms if path.suffix in (".py", ".yaml", ".typed", ".js", ".css")]
    assert len(sources) > 500
    assert [path for path in sources if not is_let_in(path.relative_to(ROOT).as_posix())] == []
