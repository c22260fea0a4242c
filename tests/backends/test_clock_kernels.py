"""The kernels that read a device's counters, compiled for each target without a device, and what they became."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("triton")

from backends.triton.clock_kernels import CDNA, clock_kernel

ROOT = Path(__file__).parent.parent.parent
# In a process of its own: a compiler that gives up may take its process with it.
COMPILE = """
import json, re, sys
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from backends.triton.clock_kernels import clock_kernel

READS = r"s_memtime|s_memrealtime|HW_REG_\\w+|%clock64|%globaltimer|%smid"
found = {}
for name in sys.argv[1:]:
    amd = name.startswith("gfx")
    kernel, constants = clock_kernel(name if amd else None)
    signature = {"out_ptr": "*i64", **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(kernel, signature, {(1 + place,): value for place, value in enumerate(constants.values())})
    target = GPUTarget("hip", name, 64) if amd else GPUTarget("cuda", int(name), 32)
    compiled = compile(source, target=target, options={"num_warps": 1})
    found[name] = re.findall(READS, compiled.asm["amdgcn" if amd else "ptx"])
print(json.dumps(found))
"""


def test_each_target_reads_its_cycles_before_its_timer(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMPILE, "90", *CDNA]
    environment = {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join([str(ROOT), *sys.path]), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("90") == ["%smid", "%clock64", "%globaltimer"]
    assert set(found) == set(CDNA)
    for target, reads in found.items():
        expected = {"HW_REG_HW_ID": 1, "s_memtime": 1, "s_memrealtime": 1, **({"HW_REG_XCC_ID": 1} if CDNA[target] else {})}
        assert Counter(reads) == expected, target
        assert reads.index("s_memtime") < reads.index("s_memrealtime")


def test_a_target_without_a_lasting_counter_is_refused_by_name() -> None:
    with pytest.raises(RuntimeError, match="gfx1100 has no cycle counter"):
        clock_kernel("gfx1100")
