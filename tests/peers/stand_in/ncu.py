#!/usr/bin/env python3
"""Stands in for the command ``ncu`` in tests: writes a table for the cases it is asked for, launches nothing.

The folder it is in may hold ``plant.json``: ``cycles`` and ``duration_ns`` of every launch, ``status`` to end with.
"""

import json
import sys
from pathlib import Path

HEADER = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'
FIXED = '"{id}","4242","python3.12","127.0.0.1","{name}","1","7","{block}","{grid}","0","9.0"'


def main(argv: list[str]) -> int:
    plant = Path(argv[0]).parent / "plant.json"
    planted = json.loads(plant.read_text()) if plant.exists() else {}
    if planted.get("status"):
        print("==ERROR== planted", file=sys.stderr)
        return int(planted["status"])
    cases = json.loads(Path(argv[argv.index("--cases") + 1]).read_text())
    calls = int(argv[argv.index("--calls") + 1])
    lines = ["==PROF== Connected to process 4242", f'{HEADER},"gpu__time_duration.sum","sm__cycles_elapsed.max"']
    lines.append(",".join(['""'] * 11 + ['"ns"', '"cycle"']))
    one = "(1, 1, 1)"
    for _ in cases:
        lines.append(_line(len(lines), "_Z11spin_kernell", one, one, 1200, 1700))
        for _ in range(calls):
            figures = planted.get("duration_ns", 2000), planted.get("cycles", 2800)
            lines.append(_line(len(lines), "nvjet_hsh_128x256", "(384, 1, 1)", "(132, 1, 1)", *figures))
    lines.append("==PROF== Disconnected from process 4242")
    Path(argv[argv.index("--log-file") + 1]).write_text("\n".join(lines) + "\n")
    return 0


def _line(number: int, name: str, block: str, grid: str, duration_ns: int, cycles: int) -> str:
    return FIXED.format(id=number, name=name, block=block, grid=grid) + f',"{duration_ns:,}","{cycles:,}"'


if __name__ == "__main__":
    sys.exit(main(sys.argv))
