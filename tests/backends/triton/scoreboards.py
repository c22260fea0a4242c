"""Where a program for an NVIDIA device waits for its loads, read from the control bits of its instructions.

From compute capability 7.0 an instruction has 128 bits, of which 105 to 125 tell the scheduler what to do.  Bits 110 to 112
name one of six counters that a load counts up when it is issued and down when its data is there (7 for none); bits 116 to 121
say which counters have to be zero first.  After Jia, Maggioni, Staiger and Scarpazza, "Dissecting the NVIDIA Volta GPU
architecture via microbenchmarking", 2018, and Yan, Wang and Chu's turingas.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import triton

NVDISASM = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
NO_COUNTER = 7
LINE = re.compile(r"\s+/\*(?P<address>[0-9a-f]+)\*/\s+(?P<text>.*?)\s*;?\s*/\* 0x[0-9a-f]+ \*/")
SECOND_HALF = re.compile(r"/\* (0x[0-9a-f]+) \*/")
LABEL = re.compile(r"^(?P<name>\.L_x_\d+):")
BRANCH = re.compile(r"BRA.*\((?P<name>\.L_x_\d+)\)")


class Instruction(NamedTuple):
    """``counter`` is counted up until its result is there; all of ``waits`` have to be zero before it is issued."""

    text: str
    counter: int | None
    waits: frozenset[int]


def main_loop(cubin: bytes) -> list[Instruction]:
    """Instructions of the longest loop."""
    lines = list(_lines(_disassembled(cubin)))
    labels = {line: place for place, line in enumerate(lines) if isinstance(line, str)}
    loops = [
        (labels[to["name"]], place)
        for place, line in enumerate(lines)
        if isinstance(line, Instruction) and (to := BRANCH.search(line.text)) and labels[to["name"]] < place - 1
    ]
    first, last = max(loops, key=lambda ends: ends[1] - ends[0])
    return [line for line in lines[first:last] if isinstance(line, Instruction)]


def products_under_way(loop: list[Instruction]) -> list[int]:
    """For each wait for loads from memory in a loop: how many products lie between the last load waited for and it.

    The loop is gone through twice, so that loads of one turn meet their wait in the next.
    """
    found: list[int] = []
    products, loaded_at = 0, dict[int, int]()
    for turn in range(2):
        for each in loop:
            for counter in each.waits & loaded_at.keys():
                since = products - loaded_at.pop(counter)
                if turn == 1:
                    found.append(since)
            if each.counter is not None and "LDG" in each.text:
                loaded_at[each.counter] = products
            products += "HMMA" in each.text
    return found


def _disassembled(cubin: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([NVDISASM, "-hex", "-c", file.name], capture_output=True, text=True, check=True).stdout


def _lines(text: str) -> Iterator[Instruction | str]:
    lines = text.splitlines()
    for place, line in enumerate(lines):
        if label := LABEL.match(line):
            yield label["name"]
        elif found := LINE.match(line):
            second = SECOND_HALF.search(lines[place + 1])
            assert second is not None, f"nvdisasm gives no second half of the instruction at {found['address']}"
            control = int(second[1], 16) >> (105 - 64)
            counter = control >> 5 & 7
            waits = frozenset(bit for bit in range(6) if control >> (11 + bit) & 1)
            yield Instruction(found["text"], None if counter == NO_COUNTER else counter, waits)
