"""Whether a composed run makes sense: sizes, names, regimes, devices.  Types were checked when it was composed."""

import math
from collections.abc import Sequence
from typing import Any

from suite.config.schema import OFFERED_JOBS, outside_names
from suite.errors import UsageError, nearest
from suite.jobs.registry import find
from suite.plan import parse_regime
from suite.search.settings import check_search
from suite.settings import RunConfig
from suite.values import written

OVERSIZE = ("refuse", "record")
LONGEST_WAIT_S = 7 * 86400
LARGEST_SEED = 2**63 - 1  # what a store's integer column holds


def check(config: RunConfig) -> None:
    """Raise ``UsageError`` naming the first value that nothing can be measured with."""
    if not config.jobs:
        known = ", ".join([*OFFERED_JOBS, *outside_names("job")])
        raise UsageError(f"no job is selected; choose from: {known}, as in job=gemm or 'job=[gemm]'")
    if not config.backends:
        raise UsageError("no backend is selected; write backend=auto, or name one or several as in 'backend=[cpu,cuda]'")
    if not config.store.url.strip():
        raise UsageError("store.url is empty; write the path of an SQLite file, such as store.url=roofbench.db")
    if config.resume is not None and not config.resume.strip():
        raise UsageError("resume is empty; write resume=latest, or a run that `roofbench show --runs` lists")
    for key, chosen in (("jobs", config.jobs), ("backends", config.backends)):
        for name, settings in chosen.items():
            if settings.name not in (name, type(settings)().name):
                raise UsageError(f"{key}.{name}.name={written(settings.name)} is not what it is called here; leave it out")
    config.measure.check()
    for label in config.measure.regimes:
        if label != "standard":
            parse_regime(label)
    if config.search is not None:  # it may leave to the search what a job has to name without one
        check_search(config)
    else:
        for name, settings in config.jobs.items():
            find(name).check(settings)
    _check_backends(config)
    check_device(config.device)
    _check_limits(config)


def _check_backends(config: RunConfig) -> None:
    if "auto" in config.backends and len(config.backends) > 1:
        named = ", ".join(name for name in config.backends if name != "auto")
        raise UsageError(f"backend=[auto] cannot stand beside {named}; name the backends, or leave auto alone")
    for name, settings in config.backends.items():
        if name != "auto" and ":" not in (settings.target or ""):
            raise UsageError(f"backends.{name}.target={settings.target} is not module:Class, such as backends.cpu:CpuBackend")


def check_device(device: Any) -> None:
    """``device`` is an index, a list of them, ``all``, or the name of a partition."""
    wanted: Sequence[Any] = device if isinstance(device, list) else [device]
    if not wanted:
        raise UsageError("device=[] chooses nothing; write an index, a list such as device=[0,1], or device=all")
    for one in wanted:
        if isinstance(one, bool) or not isinstance(one, int | str) or one == "":
            raise UsageError(
                f"device={written(one)} is no device; write an index, a list such as device=[0,1], device=all or a MIG name"
            )
        if isinstance(one, int) and one < 0:
            raise UsageError(f"device={one} is below 0; devices are counted from 0 as `roofbench devices` prints them")
    if len(set(map(str, wanted))) < len(wanted):
        raise UsageError(f"device={wanted} names a device twice; name each once")
    if isinstance(device, list) and "all" in device:
        raise UsageError("device=[all] mixes a list with all; write device=all")


def _check_limits(config: RunConfig) -> None:
    if config.oversize not in OVERSIZE:
        raise UsageError(f"unknown oversize '{config.oversize}'{nearest(config.oversize, OVERSIZE)}")
    for name in ("max_cases", "max_kernel_s", "max_time_s"):
        value = getattr(config, name)
        if value is not None and not (value > 0 and math.isfinite(value)):
            wrong = "is not above 0" if math.isfinite(value) else "is not finite"
            raise UsageError(f"{name}={value} {wrong}; leave it out for no limit")
    if not 0 <= config.wait_s <= LONGEST_WAIT_S:
        raise UsageError(f"wait_s={config.wait_s:g} is not between 0 and {LONGEST_WAIT_S} (a week)")
    if not 0 <= config.seed <= LARGEST_SEED:
        raise UsageError(f"seed={config.seed} is not between 0 and {LARGEST_SEED}")
