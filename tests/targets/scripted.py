"""A child that compiles nothing: it does what the program's name says, as compilers have been seen to do."""

import json
import os
import subprocess
import sys
import time
from typing import Any

from suite.targets.pool import Asked

KIND = "triton"


def command(_: str) -> list[str]:
    return [sys.executable, "-m", "tests.targets.scripted"]


def command_that_dies(_: str) -> list[str]:
    return [sys.executable, "-c", "import sys; sys.exit('ModuleNotFoundError: no compiler')"]


def asked(*programs: str, target: str = "sm_90") -> list[Asked]:
    return [Asked(program, target, KIND) for program in programs]


def facts(**fields: Any) -> dict[str, Any]:
    given = {"kernel": "k", "registers": 64, "spilled_bytes": 0, "shared_bytes": 1024, "warps": 4, "instructions": []}
    return {**given, "execution": "native", "instead": "", **fields}


def answer(**fields: Any) -> dict[str, Any]:
    given = {"outcome": "ok", "reason": "", "configuration": "as it is", "facts": facts(), "seconds": 0.5}
    return {**given, **fields}


def act(program: str) -> dict[str, Any]:
    if program == "abort":
        sys.stderr.write("loc(fused): note\nLLVM ERROR: Unsupported DotScaleOp\nStack dump:\n 0. main\n")
        sys.stderr.flush()
        os.abort()
    if program == "leave":
        sys.stderr.write("giving up\n")
        sys.exit(7)
    if program == "hang":
        time.sleep(600)
    if program == "hang with a child":
        own = subprocess.Popen(["sleep", "600"])
        sys.stderr.write(f"{own.pid}\n")
        sys.stderr.flush()
        time.sleep(600)
    if program == "refused":
        return answer(outcome="unsupported", reason="not made for it", facts={})
    if program == "slow":
        time.sleep(0.3)
    return answer(configuration=f"by {os.getpid()}")


def main() -> None:
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(act(json.loads(line)["program"])), flush=True)


if __name__ == "__main__":
    main()
