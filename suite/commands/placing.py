"""What a plan is made for: a sheet, the devices found here, or no device that is known."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from suite.backend import DeviceInfo
    from suite.hardware.spec import HardwareSpec
    from suite.planned import DeviceSlot
    from suite.probe import ProbeResult
    from suite.settings import BackendSettings, RunConfig

# Which backend of those that come with roofbench measures what a sheet's maker makes.
BACKEND_OF_MAKER = {"NVIDIA": "cuda", "AMD": "rocm", "Google": "xla", "CPU": "cpu"}


class Placed(NamedTuple):
    """A configuration and what it is planned for; ``unchecked`` says why memory cannot be checked, empty when it can."""

    config: "RunConfig"
    slots: "tuple[DeviceSlot, ...]"
    unchecked: str = ""


def here(config: "RunConfig") -> Placed:
    """For the devices found here, as a run would be."""
    from suite.devices import resolve

    found = resolve(config)
    return Placed(found.config, found.slots)


def place(config: "RunConfig") -> Placed:
    """For the devices found here, where ``hardware`` names nothing or what they are; else for what its sheet describes; without
    device facts where there is neither.
    """
    from suite.devices import ask_backend, resolve
    from suite.errors import DeviceNotFound

    if config.hardware is not None:
        return _described_here(config) or Placed(config, _slots_of_sheet(config))
    answers: list[ProbeResult] = []
    try:
        found = resolve(config, lambda target, options: _noted(answers, ask_backend(target, options, at_once=True)))
    except DeviceNotFound as error:
        if answers and answers[-1].devices:  # devices are known, and the one that was named is not among them
            raise
        return Placed(config, _slots_without_facts(config), str(error))
    return Placed(found.config, found.slots)


def _noted(answers: "list[ProbeResult]", answer: "ProbeResult") -> "ProbeResult":
    answers.append(answer)
    return answer


def _described_here(config: "RunConfig") -> Placed | None:
    """The devices that a run would measure, where the sheet that is named is theirs: a CPU, or what its name matches."""
    from suite.devices import DEVICE_NODES, ask_backend, candidates, resolve
    from suite.errors import DeviceNotFound, UsageError
    from suite.hardware.catalogue import load
    from suite.hardware.makers import CPU, is_cpu
    from suite.hardware.match import match

    folders = [Path(folder) for folder in config.hardware_folders]
    spec = load(config.hardware or "", folders)
    name = _backend_for(spec, candidates(config.backends), "auto" in config.backends)
    node = DEVICE_NODES.get(name)
    # Nobody is asked for an accelerator of which the system shows nothing: that would load a framework for nothing.
    if BACKEND_OF_MAKER[CPU] != name and (node is None or not node.exists()):
        return None
    try:
        found = resolve(config, lambda target, options: ask_backend(target, options, at_once=True))
    except (DeviceNotFound, UsageError):  # there is none, or it cannot be what the sheet describes
        return None
    devices = [slot.info for slot in found.slots if slot.info is not None]
    if devices and all(is_cpu(info) or match(info, folders).hardware == spec.id for info in devices):
        return Placed(found.config, found.slots)
    return None


def _slots_of_sheet(config: "RunConfig") -> "tuple[DeviceSlot, ...]":
    from suite.backend import DeviceInfo
    from suite.devices import candidates
    from suite.hardware.catalogue import load

    spec = load(config.hardware or "", [Path(folder) for folder in config.hardware_folders])
    offered = candidates(config.backends)
    name = _backend_for(spec, offered, "auto" in config.backends)
    info = DeviceInfo(
        backend=name,
        index=0,
        name=spec.device_names[0] if spec.device_names else spec.name,
        uid="",
        memory_bytes=spec.memory_bytes or 0,
        llc_bytes=spec.llc_bytes,
        max_clock_hz=spec.clocks.boost_hz.value,
    )
    return (_slot(0, offered[name], info if spec.memory_bytes else None),)


def _backend_for(spec: "HardwareSpec", offered: "Mapping[str, BackendSettings]", is_auto: bool) -> str:
    """The backend that measures this maker's devices; else the first that was named, where it may be meant for them.

    ``UsageError`` for one that was named and measures nothing of this maker's, as the run would be refused.
    """
    from suite.errors import UsageError
    from suite.hardware.makers import CPU, maker, makers, said

    made_by = maker(spec)
    fitting = BACKEND_OF_MAKER.get(made_by, "")
    if is_auto and fitting in offered:
        return fitting
    if is_auto:
        raise UsageError(
            f"hardware={spec.id} is of {spec.vendor}, whose devices none of {', '.join(offered)} measures; "
            f"`roofbench hardware {spec.id}` prints its figures, and backend=NAME plans for a backend of your own"
        )
    for name, backend in offered.items():
        possible = makers(name, backend.options)
        if possible and made_by not in possible:
            measures = "a CPU" if possible == (CPU,) else f"devices {said(possible)}"
            is_what = "no CPU" if possible == (CPU,) else said((made_by,))
            raise UsageError(f"backend={name} measures {measures}, and hardware={spec.id} is {is_what}; leave one of them out")
    return fitting if fitting in offered else next(iter(offered))


def _slots_without_facts(config: "RunConfig") -> "tuple[DeviceSlot, ...]":
    from suite.devices import candidates

    offered = list(candidates(config.backends).values())
    wanted = offered[:1] if "auto" in config.backends else offered
    return tuple(_slot(slot, backend, None) for slot, backend in enumerate(wanted))


def _slot(slot: int, backend: "BackendSettings", info: "DeviceInfo | None") -> "DeviceSlot":
    from suite.planned import DeviceSlot

    return DeviceSlot(slot, backend.name, backend.target or "", info)
