"""RunConfig -> planned cases: pure, ordered, each with what it asks of the machine.

Nothing here touches a device.  Facts about devices come in through the slots; where a slot has none, memory is not
checked and no case is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any, NamedTuple, Self

from suite import predict_cpu, predict_xla
from suite.backend import DeviceInfo
from suite.case import Case, Items, Regime, Workload, shape_label
from suite.errors import UsageError
from suite.gigabytes import gigabytes
from suite.hardware.assign import assign
from suite.hardware.makers import is_cpu
from suite.hardware.spec import DEVICE_LINK, RATES, parse_pipe
from suite.jobs.calibration import CalibrationJob, CalibrationSettings, working_set_bytes
from suite.jobs.job import Job, MadeOnce
from suite.jobs.registry import find
from suite.measure.regimes import BRIEF_SHARE, energy_window_s, placed_sets, rotating_sets
from suite.measure.rounds import LEAST_SAMPLES
from suite.multiplier import expected_pipe
from suite.outcome import Outcome
from suite.planned import DeviceSlot, PlannedCase
from suite.ports import has_port
from suite.roofline import Ceilings, floors_s
from suite.rows import Calibration
from suite.settings import MeasureSettings, RunConfig
from suite.work import Footprint, Work

COLD = Regime("cold", "sustained", "device")
WARM = Regime("warm", "sustained", "device")
CALL = Regime("warm", "sustained", "call")
BURST = Regime("cold", "burst", "device")
BURST_FLOOR_S = 100e-6  # shorter kernels do not hold a burst window's clock long enough to tell it from sustained
MEMORY_SHARE = 0.92  # of a device's memory: context, allocator and library workspaces take the rest
FLUSH_BYTES_S = 8e9  # what flushing a CPU's cache is assumed to run at, for predicting time only
SETUP_S = 0.6  # compiling, filling and checking a small case, for predicting time only
SETTLING_WINDOWS = 4  # two that agree at the least; an H200 took three to ten, its power limit being why


class Machine(NamedTuple):
    """A slot with its ceilings, its last-level cache and the memory that cases may use; ``None`` where they are not known.

    ``without_peak`` are the rates that the sheet does not declare.
    """

    slot: DeviceSlot
    ceilings: Ceilings | None
    llc_bytes: int | None
    memory_bytes: int | None
    without_peak: frozenset[str]

    @classmethod
    def of(cls, slot: DeviceSlot, config: RunConfig) -> Self:
        """What is known of a slot's device, looked up once for all of its cases."""
        limits = ceilings(slot.info, config)
        if slot.info is None or limits is None:
            return cls(slot, None, None, None, frozenset())
        without_peak = frozenset(pipe for pipe in RATES if limits.peak_flop_s(pipe) is None)
        return cls(slot, limits, limits.llc_bytes, int(slot.info.memory_bytes * MEMORY_SHARE) or None, without_peak)

    def lacks(self, pipe: str | None) -> bool:
        """Whether the sheet declares no rate for the unit of a pipe."""
        return pipe is not None and parse_pipe(pipe).unit in self.without_peak


def plan(config: RunConfig, slots: Sequence[DeviceSlot], calibrated: Collection[int] = ()) -> tuple[PlannedCase, ...]:
    """Expand every axis on every slot, calibration first on slots that are not in ``calibrated``.

    Raises ``UsageError`` for settings that name nothing measurable, for more than ``max_cases`` cases on a device, and,
    with ``oversize=refuse``, for a case that cannot fit in its device's memory.
    """
    config.measure.check()
    machines = _machines(config, slots)
    cases = [case for machine in machines if machine.slot.slot not in calibrated for case in _calibration(machine, config)]
    if config.search is None:  # what a search measures follows from what it finds
        cases += _sweep(config, machines, first_cohort=len(cases))
    check_count(config, cases)
    if config.oversize == "refuse":
        _refuse_oversize(cases, machines)
    return tuple(cases)


def check_count(config: RunConfig, cases: Sequence[PlannedCase], axes: Sequence[str] = ()) -> None:
    """Raise ``UsageError`` for more than ``max_cases`` cases on a device; ``axes`` can be shortened, without any the jobs' own.

    The cases of a search are counted by whoever knows what stands in for them: none of them is in a plan.
    """
    counted = Counter(case.slot for case in cases)
    fullest = max(counted, key=lambda slot: counted[slot], default=None)
    if config.max_cases is None or fullest is None or counted[fullest] <= config.max_cases:
        return
    most = counted[fullest]
    calibrating = sum(case.slot == fullest and case.case.workload.job == CalibrationJob.name for case in cases)
    of_these = f" ({calibrating} of calibration)" if calibrating else ""
    long = ", ".join(axes or _long_axes(config))
    shorten = f"shorten an axis ({long}), or " if long else ""
    raise UsageError(
        f"the plan has {most} cases for one device{of_these}, above max_cases={config.max_cases}; {shorten}"
        f"write max_cases={most}, or null for no limit"
    )


def _long_axes(config: RunConfig) -> Iterator[str]:
    """The lists of several values that make more cases than one of them does."""
    for name, settings in config.jobs.items():
        job = find(name)
        values = ((each.name, getattr(settings, each.name)) for each in fields(settings))
        several = [(axis, given) for axis, given in values if isinstance(given, list) and len(given) > 1]
        variants = _variant_count(job, settings)
        yield from (
            f"jobs.{name}.{axis}"
            for axis, given in several
            if _variant_count(job, replace(settings, **dict[str, Any]({axis: given[:1]}))) < variants
        )
    if len(config.measure.regimes) > 1 or config.measure.regimes == ["standard"]:
        yield "measure.regimes"


def _variant_count(job: Job, settings: Any) -> int:
    """Implementations of workloads with their switches, in one regime."""
    implementations = len(set(settings.implementations))
    return implementations * sum(len(job.switches(settings, workload)) for workload in job.workloads(settings))


def ceilings(info: DeviceInfo | None, config: RunConfig) -> Ceilings | None:
    """Ceilings of a device, by the sheet it is judged by; ``None`` where no device facts are known."""
    return Ceilings(info, assign(info, config.hardware, config.hardware_folders).spec) if info is not None else None


def left_out(config: RunConfig, slots: Sequence[DeviceSlot]) -> tuple[str, ...]:
    """Workloads that ``max_kernel_s`` keeps out of the plan, as lines for people."""
    lines: list[str] = []
    for machine in _machines(config, slots) if config.search is None else ():
        spec = machine.ceilings.spec if machine.ceilings else None
        least = "about" if spec is not None and spec.derived else "at least"  # a derived peak can be passed
        for job, settings in _jobs(config):
            for workload in job.workloads(settings):
                works = (job.work(workload, switches) for switches in job.switches(settings, workload))
                floors = dict.fromkeys(_floor_s(workload, work, machine) for work in works)
                named = f"{workload.job} {shape_label(workload)} {workload.format_label}"
                lines += [
                    f"{named}: {least} {_above(floor_s, config)} s a launch on {machine.slot.backend}, "
                    f"above max_kernel_s={config.max_kernel_s}"
                    for floor_s in floors
                    if floor_s is not None and _too_long(floor_s, config)
                ]
    return tuple(dict.fromkeys(lines))  # other data takes as long


def _above(floor_s: float, config: RunConfig) -> str:
    """Seconds in as many digits as it takes to see that they are above the limit."""
    brief = f"{floor_s:.3g}"
    return brief if float(brief) > (config.max_kernel_s or 0.0) else f"{floor_s:.6g}"


def _machines(config: RunConfig, slots: Sequence[DeviceSlot]) -> list[Machine]:
    return [Machine.of(slot, config) for slot in slots]


def data_seed(seed: int, workload_key: str) -> int:
    """The seed of a workload's data: the same for every implementation and device, so that they see the same numbers."""
    return (int(workload_key, 16) ^ seed) & 0x7FFF_FFFF


def _sweep(config: RunConfig, machines: Sequence[Machine], first_cohort: int) -> list[PlannedCase]:
    cases: list[PlannedCase] = []
    cohort = first_cohort
    first_slots = {machine.slot.backend: machine.slot.slot for machine in reversed(machines)}
    for job, settings in _jobs(config):
        job.check(settings)
        switches = {workload: job.switches(settings, workload) for workload in job.workloads(settings)}
        asked = {machine.slot.slot: _asked_of(job, switches, machine) for machine in machines}
        bursts = {machine.slot.slot: _burst_workloads(asked[machine.slot.slot], machine, config) for machine in machines}
        _refuse_misfits(job, settings, switches, machines)
        of_job: list[PlannedCase] = []
        for workload in switches:
            groups: dict[Regime, list[PlannedCase]] = defaultdict(list)
            for machine in machines:
                slot = machine.slot.slot
                for case in _cases(job, settings, asked[slot][workload], machine, workload in bursts[slot], config):
                    if case.work.pipe == DEVICE_LINK and slot != first_slots[machine.slot.backend]:
                        continue  # the ranks of the first slot's are on the devices of the others
                    groups[case.case.regime].append(case)
            for group in groups.values():
                of_job += [case._replace(cohort=cohort) for case in group]
                cohort += 1
        cases += _by_what_is_made(job, of_job) if config.measure.interleave == 1 else of_job
    return cases


def _by_what_is_made(job: Job, cases: Sequence[PlannedCase]) -> list[PlannedCase]:
    """Cases that need the same made for them together; cases in alternating rounds keep their order, as all of it is there."""
    if not isinstance(job, MadeOnce):
        return list(cases)
    needs = dict.fromkeys(job.made_for(case.case) for case in cases)
    places = {each: place for place, each in enumerate(needs)}
    return sorted(cases, key=lambda case: places[job.made_for(case.case)])


def _refuse_misfits(job: Job, settings: Any, switches: Mapping[Workload, Sequence[Items]], machines: Sequence[Machine]) -> None:
    """Raise for a job of which nothing exists on a backend: it would end as a run of no cases."""
    for backend in dict.fromkeys(machine.slot.backend for machine in machines):
        reasons: dict[str, None] = {}
        for workload, implementation in product(switches, settings.implementations):
            cases = (Case(workload, implementation, backend, CALL, each) for each in switches[workload])
            misfits = [job.misfit(case) for case in cases]
            if None in misfits:
                break
            reasons |= dict.fromkeys(why for why in misfits if why)
        else:
            told = "; ".join(reasons)
            raise UsageError(
                f"nothing that jobs.{job.name} asks for exists on backend {backend}: {told}; ask for something else"
            )


def _cases(
    job: Job, settings: Any, asked: "Sequence[_Asked]", machine: Machine, wants_burst: bool, config: RunConfig
) -> Iterator[PlannedCase]:
    """One workload on one machine: every regime, implementation and set of switches that is not too long."""
    fitting = [each for each in asked if not _too_long(each.floor_s, config)]
    each_once = dict.fromkeys(_variants(job, config.measure, settings.implementations, wants_burst))
    variants = product(each_once, fitting)
    cases = [
        (each, Case(each.workload, implementation, machine.slot.backend, regime, each.switches, job.method_version))
        for (regime, implementation), each in variants
    ]
    cases = [(each, case) for each, case in cases if job.misfit(case) is None]
    alternating = config.measure.interleave > 1
    regimes = Counter(case.regime for _, case in cases) if alternating else Counter()
    for each, case in cases:
        rounds = config.measure.interleave if alternating and regimes[case.regime] > 1 else 1
        yield _planned(each, case, machine, config.measure, rounds=rounds)


def _variants(
    job: Job, measure: MeasureSettings, implementations: Sequence[str], wants_burst: bool
) -> Iterator[tuple[Regime, str]]:
    """Every implementation cold and sustained (and burst, where it tells something), the first one warm beside it; or in the
    regimes that are a job's own.
    """
    for name in dict.fromkeys(measure.regimes):
        if name != "standard" or job.usual_regimes:
            yield from product(job.usual_regimes if name == "standard" else (parse_regime(name),), implementations)
            continue
        yield from ((COLD, implementation) for implementation in implementations)
        yield WARM, implementations[0]
        if wants_burst:
            yield from ((BURST, implementation) for implementation in implementations)


def parse_regime(label: str) -> Regime:
    """Read ``cache/load/dispatch``, as in ``cold/sustained/device``."""
    axes = {"cache": ("cold", "warm"), "load": ("burst", "sustained"), "dispatch": ("device", "call")}
    parts = label.split("/")
    if len(parts) != 3:
        raise UsageError(
            f"regime '{label}' in measure.regimes is not cache/load/dispatch; write for instance cold/sustained/device"
        )
    for part, (axis, valid) in zip(parts, axes.items(), strict=True):
        if part not in valid:
            raise UsageError(f"regime '{label}' has {axis} '{part}'; choose from: {', '.join(valid)}")
    return Regime(*parts)  # type: ignore[arg-type]  # checked against the literals just above


def _burst_workloads(asked: "Mapping[Workload, Sequence[_Asked]]", machine: Machine, config: RunConfig) -> set[Workload]:
    """The workloads that get a burst case: compute-bound ones whose floor is long enough, the longest of each format first."""
    if "standard" not in config.measure.regimes or machine.ceilings is None:
        return set()
    by_format: dict[str, list[tuple[float, Workload]]] = defaultdict(list)
    for workload, variants in asked.items():
        long = (each for each in variants if each.floor_s is not None and each.floor_s > BURST_FLOOR_S)
        floor_s = max((_burst_floor_s(each.work, machine.ceilings) for each in long), default=0.0)
        if floor_s > BURST_FLOOR_S and not _too_long(floor_s, config):
            by_format[workload.format].append((floor_s, workload))
    ranked = [sorted(group, key=lambda entry: -entry[0]) for group in by_format.values()]
    turns = [(turn, workload) for group in ranked for turn, (_, workload) in enumerate(group)]
    return {workload for _, workload in sorted(turns, key=lambda entry: entry[0])[: config.measure.max_burst_cases]}


def _burst_floor_s(work: Work, limits: Ceilings) -> float:
    """The compute floor where it is above the memory floor, else 0."""
    compute_s, memory_s = floors_s(work, COLD, limits, Calibration())
    return compute_s if compute_s is not None and memory_s is not None and compute_s > memory_s else 0.0


def _calibration(machine: Machine, config: RunConfig) -> Iterator[PlannedCase]:
    job, info = CalibrationJob(), machine.slot.info
    settings = CalibrationSettings()
    if info is not None:
        limits = machine.ceilings or Ceilings(info, None)
        settings = replace(settings, bytes=working_set_bytes(info.memory_bytes, limits.llc_bytes, is_cpu(info)))
    for workload in job.workloads(settings):
        for regime in (WARM, CALL) if workload.param("op") == "empty" else (COLD,):
            case = Case(workload, "library", machine.slot.backend, regime, (), job.method_version)
            # The working set is many times the cache, so one set is cold by its size.
            yield _planned(_asked(job, workload, (), machine), case, machine, config.measure, sets=1)


class _Asked(NamedTuple):
    """What a workload with its switches asks of a machine in every regime; ``floor_s`` is the shortest a launch can take."""

    workload: Workload
    switches: Items
    work: Work
    footprint: Footprint
    tolerance: float
    floor_s: float | None
    emulated: bool


def _asked_of(job: Job, switches: Mapping[Workload, Sequence[Items]], machine: Machine) -> dict[Workload, list[_Asked]]:
    return {workload: [_asked(job, workload, each, machine) for each in variants] for workload, variants in switches.items()}


def _asked(job: Job, workload: Workload, switches: Items, machine: Machine) -> _Asked:
    work = job.work(workload, switches)
    limits = machine.ceilings
    emulated = limits is not None and limits.spec is not None and machine.lacks(work.pipe)
    return _Asked(
        workload,
        switches,
        work,
        job.footprint(workload, switches),
        job.tolerance(workload, switches),
        _floor_s(workload, work, machine),
        emulated,
    )


def _planned(
    asked: _Asked, case: Case, machine: Machine, measure: MeasureSettings, sets: int | None = None, rounds: int = 1
) -> PlannedCase:
    info = machine.slot.info
    if sets is None:
        cold_by = info.cold_by if info else "rotation"
        sets = max(
            rotating_sets(case.regime, asked.footprint, machine.llc_bytes, cold_by, measure.cold_margin),
            placed_sets(info.places if info else 1, asked.footprint, machine.memory_bytes),
        )
    needed = asked.footprint.total_bytes(sets, asked.emulated, case.implementation, case.backend)
    verdict, reason = None, ""
    if machine.memory_bytes is not None and needed > machine.memory_bytes:
        verdict = Outcome.OUT_OF_MEMORY
        reason = (
            f"needs {gigabytes(needed, 4)}, predicted; {gigabytes(machine.memory_bytes, 4)} of this device's memory is usable"
        )
    return PlannedCase(
        slot=machine.slot.slot,
        cohort=0,
        case=case,
        work=asked.work,
        tolerance=asked.tolerance,
        sets=sets,
        memory_bytes=needed,
        predicted_s=_predicted_s(asked, case.regime, machine, measure, rounds) if verdict is None else 0.0,
        verdict=verdict,
        reason=reason,
    )


def _predicted_s(asked: _Asked, regime: Regime, machine: Machine, measure: MeasureSettings, rounds: int = 1) -> float:
    """A rough wall time, settling and sampling of all alternating rounds together: for a time-left display and deadlines."""
    if not has_port(machine.slot.target, asked.workload.job):
        return 0.0  # it ends as soon as it is asked for
    launch_s, info = 2 * (asked.floor_s or 0.0), machine.slot.info
    setup_s = SETUP_S + (predict_xla.besides_s(asked.work, info) if info is not None and info.backend == "xla" else 0.0)
    if regime.load == "burst":
        idle_s = measure.burst_first_idle_s + (measure.burst_windows - 1) * measure.burst_idle_s
        return setup_s + rounds * (idle_s + measure.burst_windows * max(measure.burst_window_s, 2 * launch_s))
    flush_s = 0.0
    if regime.cache == "cold" and info is not None and info.cold_by == "flush":
        flush_s = 2 * (info.llc_bytes or 0) / FLUSH_BYTES_S
    if info is not None and machine.ceilings is not None and info.backend == "cpu":
        least_s = max(measure.min_time_s, energy_window_s(measure))
        launch_s = predict_cpu.launch_s(asked.floor_s, asked.work, machine.ceilings)
        sampling = predict_cpu.Sampling(rounds, least_s, flush_s)
        return predict_cpu.case_s(launch_s, predict_cpu.checking_s(asked.workload, asked.work), measure, sampling)
    samples = measure.min_batches if rounds == 1 else LEAST_SAMPLES
    sampling_s = max(measure.min_time_s, energy_window_s(measure), samples * max(measure.sample_s, launch_s + flush_s))
    settling_s = (SETTLING_WINDOWS + (rounds - 1) * BRIEF_SHARE) * measure.steady_window_s
    return setup_s + settling_s + rounds * sampling_s


def _floor_s(workload: Workload, work: Work, machine: Machine) -> float | None:
    """The shortest a launch can take, on the unit that is expected to multiply."""
    limits = machine.ceilings
    if limits is None:
        return None
    work = replace(work, pipe=expected_pipe(workload, work, limits.info, machine.lacks))
    known = [floor for floor in floors_s(work, COLD, limits, Calibration()) if floor is not None]
    return max(known, default=None)


def _too_long(floor_s: float | None, config: RunConfig) -> bool:
    return config.max_kernel_s is not None and floor_s is not None and floor_s > config.max_kernel_s


def _jobs(config: RunConfig) -> Iterator[tuple[Job, Any]]:
    if not config.jobs:
        raise UsageError("no job is selected; add for instance job=gemm")
    for name, settings in config.jobs.items():
        yield find(name), settings


def _refuse_oversize(cases: Sequence[PlannedCase], machines: Sequence[Machine]) -> None:
    names = {machine.slot.slot: machine.slot.info.name for machine in machines if machine.slot.info}
    too_large = [case for case in cases if case.verdict is Outcome.OUT_OF_MEMORY]
    if too_large:
        first = too_large[0]
        others = len(too_large) - 1
        more = f" (and {others} more case{'s' if others > 1 else ''})" if others else ""
        raise UsageError(
            f"{first.case.title} on {names[first.slot]} {first.reason}{more}; "
            "choose smaller shapes, or oversize=record to store such cases as out_of_memory"
        )
