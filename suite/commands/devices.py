"""``roofbench devices``: every device that a backend finds here, and which spec sheet it is matched to."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from suite.commands.options import add_config_dir, add_json
from suite.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from suite.probe import ProbeResult
    from suite.settings import RunConfig

SUMMARY = "List the devices of every backend, and the spec sheet each is matched to."
DETAIL = """\
Each backend is asked in a child process, those of plugins too, for what `run backend=NAME` would find. A device is matched to a
sheet of configs/hardware by its exact runtime name; one that no sheet names is stated as unknown, and fractions of spec are
then n/a. A backend that cannot be loaded says why."""
EXAMPLES = """\
roofbench devices                  all backends
roofbench devices backend=cuda     one backend only
roofbench devices --json           with everything the runtime reports"""


TAKEN = ("backend", "hydra.")  # with backends.NAME and backend@PLACE


class Found(NamedTuple):
    """What one backend answered; ``folders`` hold the user's own sheets."""

    backend: str
    result: "ProbeResult"
    folders: list[str]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("overrides", nargs="*", metavar="backend=NAME", help="which backends to ask (default: all)")
    add_config_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Ask every backend and print what it finds."""
    _refuse_other_forms(args.overrides)
    found = [*_asked(args.overrides, args.config_dir)]
    if not any(text.partition("=")[0] == "backend" for text in args.overrides):
        found += _of_plugins(args.overrides, args.config_dir)
    if args.json:
        json.dump([row for each in found for row in _json_rows(each)], sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(line + "\n" for each in found for line in _lines(each))
    return 0


def _asked(overrides: Sequence[str], config_dir: "Path | None") -> Iterator[Found]:
    from suite.devices import ask_backend

    config = _named(overrides, config_dir)
    for name, backend in config.backends.items():
        yield Found(name, ask_backend(backend.target or "", backend.options), config.hardware_folders)


def _named(overrides: Sequence[str], config_dir: "Path | None") -> "RunConfig":
    """The backends to ask, each with the options that naming it gives it: ``auto`` restricts what it chooses from, as JAX to a
    TPU, and a run of that backend would not.
    """
    from suite.config import compose
    from suite.devices import candidates

    config = compose(overrides, config_dir)
    if "auto" not in config.backends:
        return config
    offered = candidates(config.backends)
    try:
        return compose([*overrides, f"backend=[{','.join(offered)}]"], config_dir)
    except UsageError:  # an option of auto's own was given, or it offers one of the user's that has no file
        return replace(config, backends=offered)


def _of_plugins(overrides: Sequence[str], config_dir: "Path | None") -> Iterator[Found]:
    """What is installed beside roofbench; one that cannot be asked says whose it is, as do those that are refused."""
    from suite.devices import without_classes
    from suite.plugins.offers import find, names, refusals
    from suite.probe import ProbeResult

    sys.stderr.writelines(f"roofbench: {line}\n" for line in refusals())
    for name in names("backend"):
        offer = find("backend", name)
        try:
            found = [*_asked([*overrides, f"backend={name}"], config_dir)]
        except UsageError as error:
            found = [Found(name, ProbeResult((), str(error)), [])]
        for each in found:
            told = (
                f"{without_classes(each.result.error)}; {offer.entry} in {offer.owner}" if offer and each.result.error else ""
            )
            yield each._replace(result=each.result._replace(error=told))


def _refuse_other_forms(overrides: Sequence[str]) -> None:
    """A bare word, and several values as for a sweep: a list of backends is asked, and nothing here is done several times."""
    for text in overrides:
        key, _, value = text.partition("=")
        if not value:
            raise UsageError(f"'{text}' does not name a backend; write backend=NAME, such as backend=cuda")
        if not key.lstrip("+~").startswith(TAKEN):
            raise UsageError(
                f"'{text}' changes nothing here: roofbench devices takes backend=NAME and the options of backends, "
                "backends.NAME.options.KEY=VALUE; other settings are for run and plan"
            )
        if key == "backend" and "," in value and not value.startswith("["):
            raise UsageError(f"{text} gives several values; write 'backend=[{value}]' to ask each of them")


def _json_rows(found: Found) -> list[dict[str, Any]]:
    from suite.devices import without_classes
    from suite.hardware.assign import assign

    if not found.result.devices:
        return [{"backend": found.backend, "device": None, "reason": without_classes(found.result.error) or "no device found"}]
    rows = []
    for info in found.result.devices:
        matched = assign(info, None, found.folders)
        spec = matched.spec.id if matched.spec is not None else None
        rows.append({"backend": found.backend, "device": info.to_json(), "hardware": spec, "reason": matched.reason})
    return rows


def _lines(found: Found) -> list[str]:
    from suite.hardware.assign import assign
    from suite.report.words import si

    if not found.result.devices:
        return [f"{found.backend}: {_none(found.backend, found.result.error)}"]
    lines = [f"{found.backend}:"]
    for info in found.result.devices:
        matched = assign(info, None, found.folders)
        partition = f" ({info.partition})" if info.partition else ""
        sheet = matched.spec.id if matched.spec is not None else "unknown"
        lines.append(f"  device {info.index}: {info.name}{partition}, {si(info.memory_bytes or None, 'B')}")
        lines.append(f"    hardware {sheet}: {matched.reason}")
    return lines


def _none(backend: str, error: str) -> str:
    """Why a backend finds nothing, without the classes that said so."""
    from suite.devices import NOT_BUILT, without_classes

    if error.startswith(NOT_BUILT):
        return NOT_BUILT
    why = without_classes(error).removeprefix(f"backend {backend} ")
    return why if why.startswith("needs ") else f"none ({why})" if why else "none"
