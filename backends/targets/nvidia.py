"""What NVIDIA's tools say of a compiled kernel: registers, spills, warps and the size of its code."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import triton

CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")
_THREADS = re.compile(r"^\s*\.(?:reqntid|maxntid)\s+(\d+)", re.MULTILINE)
_CODE = re.compile(r"^\s*[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)\s.*PROGBITS.*\s\.text\.\S+\s*$", re.MULTILINE)


def usage(said: str) -> dict[str, int]:
    """Registers of a thread and bytes that it spills, from ``cuobjdump -res-usage``; ``ValueError`` where it says none."""
    found = _USAGE.search(said)
    if found is None:
        raise ValueError(f"cuobjdump said nothing of registers: {said.strip()[-200:]}")
    return {"registers": int(found[1]), "spilled_bytes": int(found[2]) + int(found[3])}


def code_bytes(said: str) -> int:
    """Bytes of instructions, from the sections that ``cuobjdump -elf`` lists."""
    return sum(int(size, 16) for size in _CODE.findall(said))


def warps(ptx: str) -> int:
    """Of a block, those of a specialised kernel's further roles included; ``ValueError`` where the text does not say."""
    found = _THREADS.search(ptx)
    if found is None:
        raise ValueError("the PTX says nothing of threads")
    return int(found[1]) // 32


def facts(kernel: Any) -> dict[str, int]:
    """Of a kernel with PTX and cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        said, sections = (_cuobjdump(option, file.name) for option in ("-res-usage", "-elf"))
    return {
        **usage(said),
        "warps": warps(kernel.asm["ptx"]),
        "tensor_columns": int(getattr(kernel.metadata, "tmem_size", 0)),
        "code_bytes": code_bytes(sections),
    }


def complaints(ptx: str) -> list[str]:
    """What NVIDIA's assembler says of a kernel whose products wait for each other (C7510 and the like)."""
    found = re.search(r"\.target (sm_\w+)", ptx)
    assert found is not None
    assembler = CUOBJDUMP.with_name("ptxas-blackwell" if found[1].startswith(("sm_10", "sm_12")) else "ptxas")
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command = [str(assembler), "-v", f"-arch={found[1]}", file.name, "-o", "/dev/null"]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    return waits_in(said.stdout + said.stderr)


def waits_in(said: str) -> list[str]:
    """Lines of the assembler's that tell of products that wait."""
    return [line for line in said.splitlines() if re.search(r"C75\d\d|serializ", line)]


def _cuobjdump(option: str, name: str) -> str:
    return subprocess.run([CUOBJDUMP, option, name], capture_output=True, text=True, check=True).stdout
