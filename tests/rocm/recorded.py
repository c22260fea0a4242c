"""What vendors' tools and torch printed on real AMD devices, read as far as a device is told by it."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

DATA = Path(__file__).parent.parent / "data"
AMD = DATA / "amd"


def torch_properties(name: str) -> SimpleNamespace:
    """A print of ``torch.cuda.get_device_properties`` as the object that it was a print of."""
    line = next(each for each in (DATA / "torch/torch_device_properties_a.txt").read_text().splitlines() if f"'{name}'" in each)
    fields: dict[str, Any] = dict(re.findall(r"(\w+)=('[^']*'|[^,)]+)", line))
    for key, text in fields.items():
        megabytes = re.fullmatch(r"(\d+)MB", text)
        fields[key] = int(megabytes[1]) * 2**20 if megabytes else int(text) if text.isdigit() else text.strip("'")
    return SimpleNamespace(**fields)


def static(file: str) -> dict[str, str]:
    """Keys and values of ``amd-smi static``, of its first GPU."""
    pairs = re.findall(r"^ +([A-Z_]+): (.+)$", (AMD / file).read_text(), re.MULTILINE)
    return dict(reversed(pairs))  # of a key that comes again, the first


class Agent(NamedTuple):
    """One agent of ``rocminfo``; ``None`` for what the print does not hold."""

    name: str
    marketing_name: str
    chip_id: str | None = None
    compute_units: int | None = None
    memory_kib: int | None = None

    @property
    def is_gpu(self) -> bool:
        """By its name: an APU's cores are called after the accelerator too."""
        return re.fullmatch(r"gfx[0-9a-f]+", self.name) is not None


def agents(file: str) -> list[Agent]:
    """Agents in the order of the print; names of instruction sets, further in, are none."""
    text = (AMD / file).read_text()
    starts = [found.start() for found in re.finditer(r"^  Name: ", text, re.MULTILINE)]
    return [_agent(text[start:stop]) for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


def _agent(text: str) -> Agent:
    return Agent(
        name=_first(r"^  Name: +(.*?) *$", text) or "",
        marketing_name=_first(r"^  Marketing Name:[ \t]*(.*?)[ \t]*$", text) or "",
        chip_id=_first(r"^  Chip ID: .*\((0x[0-9a-f]+)\)", text),
        compute_units=_number(_first(r"^  Compute Unit: +(\d+)", text)),
        memory_kib=_number(_first(r"^      Size: +(\d+)", text)),
    )


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
