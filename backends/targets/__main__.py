"""The child that says what can be compiled (``list``), the one that compiles (``serve``), a cell a line, and the one that has
what reads flags read them (``check``): it ends as that ends over flags that it does not take.

Answers go to what was standard output; whatever compilers print there goes to standard error.
"""

import argparse
import json
import os
import sys
from typing import TextIO

from backends.targets.catalogue import programs
from backends.targets.told import TAKEN_AWAY, told
from suite.targets.names import TPU, XLA
from suite.worker.lifeline import bind_to_parent, leave_no_core


def main() -> int:
    """Bind to the parent first, then carry out what is asked."""
    parser = argparse.ArgumentParser(prog="python -m backends.targets")
    parser.add_argument("what", choices=("list", "serve", "check"))
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--kind", default="")
    given = parser.parse_args()
    bind_to_parent(given.parent)
    leave_no_core()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        if given.what == "serve":
            _serve(given.kind, answers)
        elif given.what == "check":
            _check(given.kind)
        else:
            answers.write(json.dumps(told()) + "\n")
    return 0


def _serve(kind: str, answers: TextIO) -> None:
    """Say that it is ready once what takes long to import has been; then answer each line."""
    for name in TAKEN_AWAY:
        os.environ.pop(name, None)
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


def _check(kind: str) -> None:
    """Of XLA all that it reads on the way to a device of the CPU, of a TPU's compiler on the way to a topology."""
    from backends.jax.flags import wrong_flags
    from backends.targets import xla

    if said := wrong_flags():
        sys.exit(said)
    xla.prepare()
    xla.devices_of(next(iter(xla.TOPOLOGIES)) if kind == TPU else xla.CPU)


def _say(value: object, answers: TextIO) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
