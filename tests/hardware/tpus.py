"""What JAX, tpu-info and a serving engine printed on real TPUs, read as far as a device is told by it."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "tpu"
GIB = 2**30
DEVICE = re.compile(r"TpuDevice\(id=(\d+), process_index=(\d+), coords=\((\d+),(\d+),(\d+)\), core_on_chip=(\d+)\)")
USED = re.compile(r"[│|] *(\d+) *[│|] *([\d.]+) GiB / ([\d.]+) GiB")
CHIP = re.compile(r"[│|] (/dev/\S+) +[│|] (TPU \S+) chip +[│|] (\d+) ")


def text(file: str) -> str:
    return (FOLDER / file).read_text()


def printed(file: str, kind: str = "TPU v4", memory_gib: float = 0) -> list[Any]:
    """The devices of a print as JAX's objects, each once though it be printed several times; a print holds no kind."""
    found = dict.fromkeys(tuple(map(int, each)) for each in DEVICE.findall(text(file)))
    return [_device(numbers, kind, memory_gib) for numbers in found]


def chips(file: str) -> list[tuple[str, str, int]]:
    """Of tpu-info: each chip's file, its type and how many devices (cores, in older ones) it is."""
    return [(path, kind, int(count)) for path, kind, count in CHIP.findall(text(file))]


def memory(file: str) -> dict[int, tuple[float, float]]:
    """Of tpu-info: GiB used and in all by the number that stands before them."""
    return {int(number): (float(used), float(total)) for number, used, total in USED.findall(text(file))}


def _device(numbers: tuple[int, ...], kind: str, memory_gib: float) -> Any:
    number, process, x, y, z, core = numbers
    return SimpleNamespace(
        id=number,
        process_index=process,
        coords=(x, y, z),
        core_on_chip=core,
        device_kind=kind,
        platform="tpu",
        local_hardware_id=None,
        memory_stats=lambda: {"bytes_limit": round(memory_gib * GIB), "bytes_in_use": 0},
    )
