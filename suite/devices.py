"""From the backends and devices a run asks for to the ones this machine has.

Backends are asked through ``suite.probe`` in child processes; nothing here loads a framework.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from suite import errors
from suite.backend import DeviceInfo
from suite.errors import DeviceNotFound, UsageError
from suite.hardware.assign import check_named
from suite.planned import DeviceSlot
from suite.plugins import place
from suite.plugins.slow import told_when_slow
from suite.settings import OWN_BACKENDS, BackendSettings, RunConfig

if TYPE_CHECKING:
    from suite.probe import ProbeResult

    Ask = Callable[[str, Mapping[str, Any]], ProbeResult]

# What a loaded driver leaves in /dev.
DEVICE_NODES = {"cuda": Path("/dev/nvidiactl"), "rocm": Path("/dev/kfd")}
CLASS = re.compile(r"backend [\w.]+:[\w.]+(?:: (?:(\w+): )?| )")  # how a probe's reason begins
LIST = "`roofbench devices` lists what there is"
OWN = "backends"  # the package of the backends that come with roofbench
NOT_BUILT = "not built into this version of roofbench"


class Resolved(NamedTuple):
    """A configuration whose backends are named, with the device slots they stand for, in the order of the backends.

    ``notes`` are lines for people: an accelerator that is here and was passed over, a sheet that is not the device's own.
    """

    config: RunConfig
    slots: tuple[DeviceSlot, ...]
    notes: tuple[str, ...] = ()


def ask_backend(target: str, options: Mapping[str, Any], at_once: bool = False) -> "ProbeResult":
    """Probe a backend; one whose module is not there is not worth a child process to find that out.

    ``at_once`` is satisfied with the reason for which it could not be asked the last time.
    """
    from suite import probe  # a plan for a machine that is not here asks nobody

    if reason := missing(target):
        return probe.ProbeResult((), reason)
    if target.startswith(f"{OWN}."):
        return probe.probe(target, options, at_once=at_once)
    with told_when_slow(f"asking backend {target} for its devices, which has {probe.TIME_LIMIT_S:g} s"):
        return probe.probe(target, options, at_once=at_once)


def without_classes(error: str) -> str:
    """A probe's reason as people read it: no module and class of the backend, and no name of an error of ours.

    The name of another library's error stays, as its words may say nothing without it.
    """
    found = CLASS.match(error)
    if found is None:
        return error
    if not found[0].endswith(": "):
        return f"it {error[found.end() :]}"
    ours = found[1] is None or hasattr(errors, found[1])
    return error[found.end() if ours else found.start(1) :]


def _refuse_settings(error: str, backend: BackendSettings) -> None:
    """What a backend refuses as bad input is no want of a device: another option, or another environment, would do."""
    found = CLASS.match(error)
    if found is not None and found[1] == UsageError.__name__:
        of_plugin = _of_plugin(backend)
        raise UsageError(
            f"backend '{backend.name}'{of_plugin} {without_classes(error)}" if of_plugin else without_classes(error)
        )


def _of_plugin(backend: BackendSettings) -> str:
    """Whose a backend is and how it was found, for an error of its own; empty for one of ours or of the user's."""
    if backend.name in OWN_BACKENDS:
        return ""
    from suite.plugins.used import backend_offer

    offer = backend_offer(backend)
    return "" if offer is None else f" of {offer.owner} ({offer.entry})"


def missing(target: str) -> str:
    """Why a backend cannot even be asked: its module is not there; empty where it is."""
    module = target.partition(":")[0]
    if place.is_there(module):
        return ""
    if module.startswith(f"{OWN}."):
        *others, last = built_in()
        return f"{NOT_BUILT}, which has {', '.join(others)} and {last}"
    return f"its module {module} is not installed"


def _names_no_module(target: str) -> bool:
    """Whether a target leads nowhere, which no other machine would change; a backend of ours may come with another version."""
    return not target.startswith(f"{OWN}.") and bool(missing(target))


def built_in() -> list[str]:
    """The backends that this version can measure with, of those it has settings for."""
    offered = sorted(file.name.removesuffix(".yaml") for file in (resources.files("configs") / "backend").iterdir())
    return [name for name in offered if place.is_there(f"{OWN}.{name}")]


def resolve(config: RunConfig, ask: "Ask" = ask_backend) -> Resolved:
    """Ask the backends for their devices and choose the wanted ones; ``auto`` becomes the first backend that has any.

    Raises ``DeviceNotFound`` naming the backend and its reason where a backend has no device, or not the one asked for;
    ``UsageError`` where one cannot be what ``hardware`` names.
    """
    found, notes = _automatic(config.backends["auto"], ask) if "auto" in config.backends else _named(config.backends, ask)
    chosen = [(backend, info) for backend, devices in found for info in choose(devices, config.device, backend.name)]
    slots = tuple(DeviceSlot(slot, backend.name, backend.target or "", info) for slot, (backend, info) in enumerate(chosen))
    sheets = tuple(_by_another_sheet(config, [info for _, info in chosen]))
    named = {backend.name: backend for backend, _ in found}
    return Resolved(replace(config, backends=named), slots, (*notes, *sheets, *_left_out()))


def _left_out() -> tuple[str, ...]:
    """What is installed beside roofbench and cannot be asked for."""
    from suite.plugins.offers import refusals
    from suite.plugins.used import sheet_refusals

    return (*refusals(), *sheet_refusals())


def _by_another_sheet(config: RunConfig, devices: Sequence[DeviceInfo]) -> Iterator[str]:
    if config.hardware is None:
        return
    for info in devices:
        if note := check_named(info, config.hardware, config.hardware_folders):
            yield note


def candidates(backends: Mapping[str, BackendSettings]) -> dict[str, BackendSettings]:
    """The backends that may be asked: those named, or what ``auto`` chooses from in its order of preference."""
    if "auto" not in backends:
        return dict(backends)
    listed = backends["auto"].options.get("candidates", {})
    return {name: one if isinstance(one, BackendSettings) else BackendSettings(**one) for name, one in listed.items()}


class _Found(NamedTuple):
    devices: list[tuple[BackendSettings, Sequence[DeviceInfo]]]
    notes: tuple[str, ...] = ()


def _named(backends: Mapping[str, BackendSettings], ask: "Ask") -> _Found:
    return _Found([(backend, _devices(backend, ask)) for backend in backends.values()])


def _devices(backend: BackendSettings, ask: "Ask") -> Sequence[DeviceInfo]:
    result = ask(backend.target or "", backend.options)
    _refuse_settings(result.error, backend)
    if not result.devices:
        why = without_classes(result.error) or "it finds none"
        refusal = UsageError if _names_no_module(backend.target or "") else DeviceNotFound
        raise refusal(f"no device for backend '{backend.name}'{_of_plugin(backend)}: {why}; {LIST}")
    return result.devices


def _automatic(auto: BackendSettings, ask: "Ask") -> _Found:
    reasons: dict[str, str] = {}
    for backend in candidates({"auto": auto}).values():
        result = ask(backend.target or "", backend.options)
        if result.devices:
            return _Found([(backend, result.devices)], tuple(_passed_over(reasons)))
        _refuse_settings(result.error, backend)
        reasons[backend.name] = without_classes(result.error) or "it finds no device"
    tried = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise DeviceNotFound(f"no backend finds a device ({tried}); {LIST}")


def _passed_over(reasons: Mapping[str, str]) -> Iterator[str]:
    """An accelerator whose driver is loaded while its backend cannot use it is worth a line: the user means to measure it."""
    for name, reason in reasons.items():
        node = DEVICE_NODES.get(name)
        if node is not None and node.exists():
            yield f"{node} is here but backend {name} cannot use it, so another device is measured: {reason}"


def choose(devices: Sequence[DeviceInfo], wanted: Any, backend: str) -> list[DeviceInfo]:
    """The devices that ``device=`` means: an index, a list of them, ``all``, or a partition's name."""
    if wanted == "all":
        return list(devices)
    return [_one(devices, each, backend) for each in (wanted if isinstance(wanted, list) else [wanted])]


def _one(devices: Sequence[DeviceInfo], wanted: Any, backend: str) -> DeviceInfo:
    if isinstance(wanted, str):
        return _by_name(devices, wanted, backend)
    for info in devices:
        if info.index == wanted:
            return info
    indices = ", ".join(str(info.index) for info in devices)
    raise DeviceNotFound(f"device={wanted} is not among the devices of backend '{backend}' ({indices}); {LIST}")


def _by_name(devices: Sequence[DeviceInfo], wanted: str, backend: str) -> DeviceInfo:
    matching = [info for info in devices if _plain(wanted) in (_plain(info.partition or ""), _plain(info.name))]
    if len(matching) == 1:
        return matching[0]
    if matching:
        indices = ", ".join(str(info.index) for info in matching)
        raise UsageError(f"device={wanted} fits several devices of backend '{backend}'; choose by index: {indices}")
    names = ", ".join(dict.fromkeys(info.partition or info.name for info in devices))
    raise DeviceNotFound(f"device={wanted} is not among the devices of backend '{backend}' ({names}); {LIST}")


def _plain(name: str) -> str:
    """``MIG 1g.18gb``, ``MIG-1g.18gb`` and ``mig 1g.18gb`` are one name."""
    return name.lower().replace("-", " ").strip()
