"""The outputs of other tools that the tests read."""

from pathlib import Path

DATA = Path(__file__).parent / "data"


def text(name: str) -> str:
    return (DATA / name).read_text()
