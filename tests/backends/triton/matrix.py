"""Every kernel for every target, one line each.

    python -m tests.backends.triton.matrix [--limit SECONDS] [DEVICE...]

Each target's kernels compile in a process of their own, which a compiler that hangs does not outlast; what it had by then is
shown, and the rest is said to be lost.  Status 1 when a kernel failed, spills more than a little, or has no room.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from tests.backends.triton import apart
from tests.backends.triton.compiled import DEVICES, FORMATS, LAYOUTS
from tests.backends.triton.compiled_rungs import RUNGS
from tests.peers.table import NOTHING

SPILLED_BYTES = 64  # a few registers of a thread, outside the loop
HEADINGS = ("kernel", "configuration", "registers", "spilled B", "shared B", "s", "multiplies with")


def specs_of(device: str) -> list[str]:
    """Every format and layout, promoted sums of fp8, scales of rows, and sizes that no descriptor can have."""
    plain = [f"{device}/{name}/{layout}" for name in FORMATS for layout in LAYOUTS]
    scaled = [f"{device}/fp8_e4m3/nt/promoted", f"{device}/fp8_e4m3/nt/row", f"{device}/int8/nt/row"]
    return [*plain, *scaled, *(f"{device}/{name}/nt/odd" for name in FORMATS)]


def rungs_of(device: str) -> list[str]:
    """Every format with scales along K: a large square, and few rows."""
    return [f"{device}/{rung}/{sizes}" for rung in RUNGS for sizes in ("4096x4096x4096", "24x8192x8192", "128x8192x8192")]


def compile_apart(
    specs: Sequence[str], limit_s: float, cache: str, module: str = "tests.backends.triton.compiled"
) -> dict[str, dict[str, Any]]:
    """What each spec became, by its text, compiled in a process of their own; those that never came back say why."""
    done = apart.run(module, specs, apart.compiling(cache), limit_s)
    lost = f"lost with its process, status {done.status}: {done.errors.strip()[-300:]}"
    if done.status is None:
        lost = f"not done after {limit_s:.0f} s"
    found = apart.lines_by_spec(done.printed)
    return {spec: found.get(spec, {"failed": lost}) for spec in specs}


def cells(spec: str, became: dict[str, Any]) -> tuple[str, ...]:
    if "config" not in became:
        why = f"refused: {became['refused']}" if "refused" in became else f"failed: {became['failed']}"
        return (spec, why, *[NOTHING] * (len(HEADINGS) - 2))
    multiplies = ", ".join(became["instructions"]) + (" (emulated)" if became["emulation"] else "")
    sizes = (str(became[name]) for name in ("registers", "spilled_bytes", "shared_bytes"))
    return (spec, became["config"], *sizes, f"{became['seconds']:.1f}", multiplies)


def is_sound(spec: str, became: dict[str, Any]) -> bool:
    """Whether a kernel is refused with a reason, or compiles into what the device can hold."""
    if "config" not in became:
        return "refused" in became
    fits = became["shared_bytes"] <= DEVICES[spec.partition("/")[0]].shared_bytes
    waits = became.get("complaints")
    return fits and became["spilled_bytes"] <= SPILLED_BYTES and not became["scratch_bytes"] and not waits


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("devices", nargs="*", default=list(DEVICES), help="such as sm_90 or gfx942; all when left out")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one device's kernels")
    given = parser.parse_args()
    sound = True
    lines = [HEADINGS]
    with tempfile.TemporaryDirectory() as cache:
        for device in given.devices:
            found = compile_apart(specs_of(device), given.limit, cache)
            found |= compile_apart(rungs_of(device), given.limit, cache, "tests.backends.triton.compiled_rungs")
            for spec, became in found.items():
                lines.append(cells(spec, became))
                sound &= is_sound(spec, became)
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADINGS))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
