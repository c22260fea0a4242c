"""What nvidia-smi printed on real machines, read as far as tests hold it against what the product reads and matches."""

import csv
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

FOLDER = Path(__file__).parents[1] / "data" / "nvidia-smi"
MODEL = re.compile(r"^\|\s+\d+\s+(?P<name>\S.*?)\s+(?:On|Off|N/A)\s*\|\s*(?P<bus>\S+)\s+(?:On|Off|N/A)\s*\|")
READINGS = re.compile(
    r"^\|\s*(?P<fan>\S+)\s+(?P<temperature>\S+)\s+\S+\s+(?P<power>\S+)\s*/\s*(?P<limit>\S+)\s*\|"
    r"(?P<memory>[^|]+)\|\s*(?P<use>\S+)\s+(?P<mode>[^|]+?)\s*\|"
)
PROFILE = re.compile(r"MIG (?P<name>\S+)\s+(?P<id>\d+)\s+(?P<free>\d+)/(?P<all>\d+)\s+(?P<gib>[\d.]+)\s+\S+\s+(?P<units>\d+)\s")
INSTANCE = re.compile(r"^\|\s+0\s+(\d+)\s+(\d+)\s+(\d+)\s+\|\s+(\d+)MiB /\s+(\d+)MiB\s+\|\s+(\d+)\s")


class Entry(NamedTuple):
    """One value and the keys it stands under, outermost first."""

    keys: tuple[str, ...]
    value: str


class Report(NamedTuple):
    """What stands before the first GPU, and each GPU's entries."""

    head: list[Entry]
    gpus: list[list[Entry]]


class Row(NamedTuple):
    """One GPU of the table; ``None`` for what is no number there."""

    name: str
    bus: str
    fan: float | None
    temperature_c: float | None
    power_w: float | None
    limit_w: float | None
    used_mib: float | None
    memory_mib: float | None
    use_percent: float | None
    mode: str


class Profile(NamedTuple):
    """A kind of MIG instance as ``nvidia-smi mig -lgip`` lists it."""

    name: str
    id: int
    most: int
    memory_gib: float
    units: int


def text(file: str) -> str:
    return (FOLDER / file).read_text()


def number(cell: str) -> float | None:
    """The number that a cell begins with, whatever its unit; none in ``N/A``, ``[N/A]``, ``Not Supported`` or an error."""
    found = re.match(r"-?\d+(\.\d+)?", cell.strip())
    return float(found.group()) if found else None


def plain(file: str) -> Report:
    """Of ``nvidia-smi -q``: sections are indented, and a GPU begins at the margin."""
    head: list[Entry] = []
    gpus: list[list[Entry]] = []
    above: list[tuple[int, str]] = []
    for line in text(file).splitlines():
        if re.match(r"GPU [0-9A-F]{8}:", line):
            gpus.append([])
        key, separator, value = line.strip().partition(" : ")
        indent = len(line) - len(line.lstrip())
        above = [each for each in above if each[0] < indent]
        entry = Entry((*(each for _, each in above), key.strip()), value.strip())
        if separator:
            (gpus[-1] if gpus else head).append(entry)
        elif key:
            above.append((indent, key))
    return Report(head, gpus)


def xml(file: str) -> Report:
    """Of ``nvidia-smi -q -x``."""
    root = ElementTree.fromstring(text(file))
    return Report(
        [Entry((each.tag,), (each.text or "").strip()) for each in root if each.tag != "gpu"],
        [list(_entries(gpu, ())) for gpu in root.findall("gpu")],
    )


def values(entries: Sequence[Entry], *keys: str) -> list[str]:
    """All values whose keys end so, in the order of the print."""
    return [entry.value for entry in entries if entry.keys[-len(keys) :] == keys]


def value(entries: Sequence[Entry], *keys: str) -> str:
    """The first of ``values``."""
    return values(entries, *keys)[0]


def columns(file: str) -> dict[str, str]:
    """Headings and values of ``--query-gpu --format=csv`` of one GPU."""
    heading, row = csv.reader(text(file).splitlines(), skipinitialspace=True)
    assert len(heading) == len(row)
    return dict(zip(heading, row, strict=True))


def table(file: str) -> list[Row]:
    """GPUs of the default table: a name and its readings in the line below it."""
    lines = text(file).splitlines()
    pairs = ((MODEL.match(line), READINGS.match(below)) for line, below in pairwise(lines))
    return [_row(model, readings) for model, readings in pairs if model and readings]


def instances(file: str) -> list[tuple[int, ...]]:
    """Of the table's MIG devices: GPU instance, compute instance, device, MiB used and in all, multiprocessors."""
    found = (INSTANCE.match(line) for line in text(file).splitlines())
    return [tuple(map(int, each.groups())) for each in found if each]


def profiles(file: str) -> list[Profile]:
    return [
        Profile(each["name"], int(each["id"]), int(each["all"]), float(each["gib"]), int(each["units"]))
        for each in PROFILE.finditer(text(file))
    ]


def _entries(element: ElementTree.Element, above: tuple[str, ...]) -> list[Entry]:
    keys = (*above, element.tag)
    own = [Entry(keys, (element.text or "").strip())] if len(element) == 0 else []
    return own + [entry for child in element for entry in _entries(child, keys)]


def _row(model: re.Match[str], readings: re.Match[str]) -> Row:
    used, _, total = readings["memory"].partition("/")
    return Row(
        model["name"],
        model["bus"],
        number(readings["fan"]),
        number(readings["temperature"]),
        number(readings["power"]),
        number(readings["limit"]),
        number(used),
        number(total),
        number(readings["use"]),
        readings["mode"],
    )
