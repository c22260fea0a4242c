"""A sweep in miniature, in a process of its own, for tests that kill it, race it or starve it.

python -m tests.store.child [--file-limit BYTES] PATH new COUNT [FIRST]
                                              record COUNT cases of a new run, printing each key once it is committed
...                          PATH resume COUNT  continue the latest run until COUNT cases have a result
...                          PATH hold          start a run, say so, and wait
...                          PATH take          wait for a line, try to take the right to write a run, and keep it
...                          PATH lock          hold the database's exclusive lock until stdin ends
"""

import resource
import sqlite3
import sys
from pathlib import Path

from suite.errors import RoofbenchError
from suite.store import lease
from suite.store.writer import RunWriter, Store
from tests.store import material


def main(path: str, what: str, *numbers: str) -> None:
    if what in ("lock", "take"):
        (_lock if what == "lock" else _take)(path)
        return
    with Store.open(path) as store:
        run = store.resume_run("latest") if what == "resume" else store.start_run(material.run_start())
        with run:
            if what == "hold":
                say(run.run)
                sys.stdin.read()
            else:
                _record(run, *(int(number) for number in numbers))
                run.finish("complete")


def _record(run: RunWriter, count: int, first: int = 0) -> None:
    finished = run.finished
    for number in range(first, first + count):
        planned = material.planned(material.case(number))
        if (planned.slot, planned.case.key) not in finished:
            say(run.record(material.record(planned)).case_key)


def _lock(path: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    say("locked")
    sys.stdin.read()


def _take(path: str) -> None:
    say("ready")
    sys.stdin.readline()
    try:
        lease.take(Path(path), "race")
        say("taken")
    except lease.Held as holder:
        say(f"held by {holder}")
    sys.stdin.read()


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--file-limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
        del sys.argv[1:3]
    try:
        main(*sys.argv[1:])
    except RoofbenchError as error:
        say(f"{type(error).__name__}: {error}")
        sys.exit(error.exit_status)
