"""Every recorded output is held against something, and its source is named."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(file for folder in ("amd", "nvidia-smi", "torch", "tpu") for file in (TESTS / "data" / folder).iterdir())


@pytest.fixture(scope="module")
def tests() -> str:
    return "\n".join(file.read_text() for file in TESTS.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_it_is_read_by_a_test_and_has_a_source(tests: str, file: Path) -> None:
    assert f'{file.name}"' in tests
    assert f"| {file.parent.name}/{file.name} |" in (TESTS / "data" / "README.md").read_text()
