"""The child that says what can be compiled (``list``), and the one that compiles (``serve``), a cell a line.

Answers go to what was standard output; whatever compilers print there goes to standard error.
"""

import argparse
import json
import os
import sys
from typing import TextIO

from backends.targets.catalogue import programs
from suite.targets.names import XLA
from suite.worker.lifeline import bind_to_parent, leave_no_core


def main() -> int:
    """Bind to the parent first, then carry out what is asked."""
    parser = argparse.ArgumentParser(prog="python -m backends.targets")
    parser.add_argument("what", choices=("list", "serve"))
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--kind", default="")
    given = parser.parse_args()
    bind_to_parent(given.parent)
    leave_no_core()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        if given.what == "serve":
            _serve(given.kind, answers)
        else:
            from backends.targets.told import told

            answers.write(json.dumps(told()) + "\n")
    return 0


def _serve(kind: str, answers: TextIO) -> None:
    """Say that it is ready once what takes long to import has been; then answer each line."""
    os.environ.pop("TRITON_INTERPRET", None)
    if kind == XLA:
        from backends.targets import xla

        xla.prepare()
        import jax  # noqa: F401
    else:
        import torch  # noqa: F401
        import triton  # noqa: F401
    from backends.targets.answering import answer

    by_name = {program.name: program for program in programs()}
    _say({"ready": True}, answers)
    for line in sys.stdin:
        asked = json.loads(line)
        _say(answer(by_name[asked["program"]], asked["target"]), answers)


def _say(value: object, answers: TextIO) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
