"""What a selftest runs: four passes over the products of each device, every one an ordinary run.

first     the products, cold and warm, after the device's calibration
load      the largest product of each format from idle and sustained, long enough for the energy counter
doubled   the cold products again, with everything doubled that makes them cold
again     the products again, in reversed order: the other passes are the other work in between
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from suite.errors import UsageError
from suite.jobs.gemm import GemmSettings
from suite.measure.regimes import MOST_FLUSH_FACTOR
from suite.plan import ceilings, plan
from suite.planned import DeviceSlot, PlannedCase
from suite.selftest.cases import Products, products
from suite.settings import LIMITS, BackendSettings, MeasureSettings, RunConfig

EXPERIMENT = "selftest"
COLD, WARM, BURST = "cold/sustained/device", "warm/sustained/device", "cold/burst/device"
DOUBLED = 2.0
FLUSH_OPTION = "flush_factor"
FLUSH_FACTOR = 2.0  # what the backends that have the option take when it is not given
LOAD_STRETCH = 2.0  # a load window is this many times the longest that a case may sample: over 2 s, which power and energy need

Offers = Callable[[BackendSettings], bool]


class Pass(NamedTuple):
    """One run of a selftest; ``overrides`` are the settings that make its configuration of the selftest's own."""

    name: str
    title: str
    config: RunConfig
    cases: tuple[PlannedCase, ...]
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Course:
    """The passes of devices that measure the same products side by side; ``undoubled`` is why there is no doubled pass."""

    slots: tuple[DeviceSlot, ...]
    passes: tuple[Pass, ...]
    undoubled: str = ""

    @property
    def cases(self) -> int:
        """Cases of all passes on all devices."""
        return sum(len(each.cases) for each in self.passes)

    @property
    def predicted_s(self) -> float:
        """The wall time of the slowest device."""
        planned = [case for each in self.passes for case in each.cases]
        return max(sum(case.predicted_s for case in planned if case.slot == slot.slot) for slot in self.slots)


def courses(config: RunConfig, slots: Sequence[DeviceSlot], offers: Offers) -> tuple[Course, ...]:
    """One course for each kind of device.  ``offers`` tells whether a backend can be asked with these settings.

    Raises ``UsageError`` for what cannot be measured: a product that does not fit, a setting beyond its limits.
    """
    kinds: dict[tuple[str, Products], list[DeviceSlot]] = {}
    for slot in slots:
        limits = ceilings(slot.info, config)
        assert limits is not None, "a selftest knows its devices"
        kinds.setdefault((slot.backend, products(limits)), []).append(slot)
    return tuple(_course(config, backend, wanted, alike, offers) for (backend, wanted), alike in kinds.items())


def _course(config: RunConfig, backend: str, wanted: Products, alike: Sequence[DeviceSlot], offers: Offers) -> Course:
    slots = tuple(slot._replace(slot=index) for index, slot in enumerate(alike))
    indices = [slot.info.index for slot in slots if slot.info is not None]
    base = replace(config, backends={backend: config.backends[backend]}, device=indices)
    first = _pass(base, slots, "first", "the products, after the calibration", _settings(wanted.formats, wanted.shapes))
    longest_s = LIMITS["max_time_s"].most
    longer = {
        "min_time_s": min(longest_s, LOAD_STRETCH * config.measure.max_time_s),
        "max_time_s": min(longest_s, 2 * LOAD_STRETCH * config.measure.max_time_s),
    }
    one = _settings(wanted.formats, (wanted.largest,), [BURST, COLD], **longer)
    load = _pass(base, slots, "load", "the largest product from idle and sustained", one)
    again = _pass(base, slots, "again", "the products once more, in reversed order", _settings(wanted.formats, wanted.shapes))
    again = again._replace(cases=tuple(reversed(again.cases)))
    doubled, undoubled = _doubled(base, slots, wanted, offers)
    return Course(slots, (first, load, *doubled, again), undoubled)


class _Settings(NamedTuple):
    """What a pass sets: fields of the gemm job and of ``measure``, and options of the backend."""

    gemm: Mapping[str, Any]
    measure: Mapping[str, Any]
    options: Mapping[str, Any] = {}


def _settings(
    formats: Sequence[str], shapes: Sequence[str], regimes: Sequence[str] = (COLD, WARM), **measure: Any
) -> _Settings:
    return _Settings({"formats": list(formats), "shapes": list(shapes)}, {"regimes": list(regimes), **measure})


def _doubled(base: RunConfig, slots: Sequence[DeviceSlot], wanted: Products, offers: Offers) -> tuple[tuple[Pass, ...], str]:
    """The doubled pass, or why there is none: a cache that is emptied by a flush of a size that nothing can change.

    ``UsageError`` for a setting whose double is beyond its limit.
    """
    (backend,) = base.backends.values()
    given = float(backend.options.get(FLUSH_OPTION, FLUSH_FACTOR))
    _refuse_beyond(f"backends.{backend.name}.options.{FLUSH_OPTION}", given, MOST_FLUSH_FACTOR)
    _refuse_beyond("measure.cold_margin", base.measure.cold_margin, LIMITS["cold_margin"].most)
    options = {FLUSH_OPTION: DOUBLED * given}
    if not offers(replace(backend, options={**backend.options, **options})):
        if any(slot.info is not None and slot.info.cold_by == "flush" for slot in slots):
            return (), f"backend {backend.name} has no option {FLUSH_OPTION}, so that its flush cannot be doubled"
        options = {}
    margin = DOUBLED * base.measure.cold_margin
    settings = _settings(wanted.formats, wanted.shapes, [COLD], cold_margin=margin)._replace(options=options)
    return (_pass(base, slots, "doubled", "the cold products with twice what makes them cold", settings),), ""


def _refuse_beyond(name: str, given: float, most: float) -> None:
    """Raise for a setting whose double may not be given: nobody gave that, so that its own check names what nobody knows."""
    if DOUBLED * given > most:
        raise UsageError(
            f"{name}={given:g} cannot be doubled, as a selftest does to see whether cold is cold: at most {most:g} are taken; "
            f"give it at most {most / DOUBLED:g}"
        )


def _pass(base: RunConfig, slots: Sequence[DeviceSlot], name: str, title: str, settings: _Settings) -> Pass:
    (backend,) = base.backends.values()
    gemm = base.jobs["gemm"]
    assert isinstance(gemm, GemmSettings)
    config = replace(
        base,
        jobs={"gemm": replace(gemm, models=[], **settings.gemm)},
        measure=_measure(base.measure, settings.measure),
        backends={backend.name: replace(backend, options={**backend.options, **settings.options})},
        note=f"{base.note}; {name} pass" if base.note else f"{name} pass",
    )
    calibrated = () if name == "first" else [slot.slot for slot in slots]
    return Pass(name, title, config, plan(config, slots, calibrated), tuple(_overrides(config, settings)))


def _measure(settings: MeasureSettings, changes: Mapping[str, Any]) -> MeasureSettings:
    changed: MeasureSettings = replace(settings, **changes)
    return changed


def _overrides(config: RunConfig, settings: _Settings) -> list[str]:
    """The settings as they are written on the command line of ``roofbench run``."""
    (backend,) = config.backends
    return [
        f"backend={backend}",
        f"device={_written(config.device)}",
        *(f"jobs.gemm.{name}={_written(value)}" for name, value in settings.gemm.items()),
        *(f"measure.{name}={_written(value)}" for name, value in settings.measure.items()),
        *(f"++backends.{backend}.options.{name}={_written(value)}" for name, value in settings.options.items()),
    ]


def _written(value: Any) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)
