"""Stores whose writer was killed, and good ones to put in their place."""

from pathlib import Path
from shutil import copyfile

from suite.store.orphans import COMPANIONS
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import material


def beside(path: Path) -> dict[str, bytes]:
    """The names and contents of everything beside a store that begins with its name."""
    return {each.name: each.read_bytes() for each in path.parent.iterdir() if each.name.startswith(f"{path.name}-")}


def fill(path: Path, count: int) -> str:
    """A run with so many results in the store; its id."""
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        for number in range(count):
            run.record(material.record(material.planned(material.case(number))))
        run.finish("complete")
    return run.run


def killed(path: Path, count: int = 5) -> str:
    """The same, as a kill leaves it: what was recorded is in the log."""
    source = path.with_name(f"source-of-{path.name}")
    with Store.open(str(source)) as store, store.start_run(material.run_start()) as run:
        for number in range(count):
            run.record(material.record(material.planned(material.case(number))))
        for suffix in ("", "-wal", "-shm"):
            copyfile(f"{source}{suffix}", f"{path}{suffix}")
    source.unlink()
    return run.run


def exchange(path: Path, good: Path) -> None:
    """Move a copy of a good store to the name, as a person does."""
    copyfile(good, f"{good}.copy")
    Path(f"{good}.copy").replace(path)


def runs(path: Path) -> list[str]:
    """The runs in a store, the newest first."""
    with Reader.open(str(path)) as reader:
        return [info.run for info in reader.runs()]


def are_aside(path: Path, number: int) -> bool:
    """Whether a log of the store was moved to a telling name, and is not where SQLite looks."""
    there = beside(path)
    return f"{path.name}-wal.orphan-{number}" in there and not any(f"{path.name}{suffix}" in there for suffix in COMPANIONS)
