"""``roofbench hardware``: the spec sheets."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from suite.commands.options import add_config_dir, add_json
from suite.errors import UsageError
from suite.paths import shown

if TYPE_CHECKING:
    from suite.hardware.spec import HardwareSpec

SUMMARY = "List the accelerators of the table, or show one sheet with its sources and what fits."
DETAIL = """\
Every figure has its source, or says that none is recorded, and how far to trust it; one that was not found is n/a with why.
One sheet also says which of the named models fit its memory, in which format and with how long a context.

No sheet declares a CPU's figures: cpu is the one that is here, with what its peaks are derived from. A sheet of your own, in
DIR/hardware/NAME.yaml of --config-dir DIR, has what a built-in one has; what it lacks is listed with what does without it."""
EXAMPLES = """\
roofbench hardware                           all sheets
roofbench hardware nvidia-h200-sxm5-141gb    one of them; part of its name will do where it is unique
roofbench hardware cpu                       this machine's CPU, and how its peaks are derived
roofbench hardware mi300x --json             for programs"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="id, product name, or a part of either that no other sheet has")
    add_config_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the list or the sheet."""
    from suite.hardware.table import detail_json, detail_lines, list_json, list_lines

    extra = _folders(args.config_dir)
    if args.name is None:
        lines = [json.dumps(list_json(extra), indent=2, allow_nan=False)] if args.json else list_lines(extra)
    else:
        spec = _spec(args.name, extra)
        lines = [json.dumps(detail_json(spec), indent=2, allow_nan=False)] if args.json else detail_lines(spec)
    sys.stdout.writelines(line + "\n" for line in lines)
    return 0


def _spec(name: str, extra: list[Path]) -> "HardwareSpec":
    from suite.hardware import cpu
    from suite.hardware.catalogue import load

    return _of_this_cpu() if name == cpu.ID else load(name, extra)


def _of_this_cpu() -> "HardwareSpec":
    """What is derived of the CPU that is here, with what it is derived from."""
    from suite.devices import ask_backend
    from suite.errors import DeviceNotFound
    from suite.hardware import cpu

    answer = ask_backend("backends.cpu:CpuBackend", {})
    if not answer.devices:
        raise DeviceNotFound(f"this CPU could not be asked: {answer.error}; `roofbench devices` says what there is")
    return cpu.derive(answer.devices[0])


def _folders(config_dir: Path | None) -> list[Path]:
    """The user's own sheets lie where Hydra looks for them too; ``UsageError`` for a folder that is none."""
    if config_dir is not None and not config_dir.is_dir():
        raise UsageError(f"--config-dir {shown(config_dir)} is not a directory; name one that holds hardware/NAME.yaml")
    return [] if config_dir is None else [config_dir / "hardware"]
