"""The options of the backends that come with roofbench, where no backend is loaded: a plan refuses what a run would.

What an option may be is the backend's own to say; a backend of the user's own takes what its class takes.
"""

from collections.abc import Mapping
from typing import Any

from suite.errors import UsageError, nearest

OPTIONS = {
    "auto": ("candidates",),
    "cpu": ("threads", "flush_factor", "telemetry_period_s"),
    "cuda": ("sampler", "flush_factor", "telemetry_period_s"),
    "rocm": (
        "sampler",
        "flush_factor",
        "telemetry_period_s",
        "blas",
        "tunable_op_trial_ms",
        "tunable_op_trials",
        "tunable_op_file",
    ),
    "xla": ("platform", "flush_factor", "telemetry_period_s"),
}
OWN_TARGET = "backends."


def refuse_unknown_options(name: str, target: str | None, options: Mapping[Any, Any]) -> None:
    """``UsageError`` for an option that the backend ``name`` does not have, unless its class is one of the user's own."""
    if name not in OPTIONS or (target and not target.startswith(OWN_TARGET)):
        return
    for option in map(str, options):
        if option not in OPTIONS[name]:
            raise no_such_option(name, option)


def no_such_option(name: str, option: str) -> UsageError:
    """The error for an option that a backend of ours does not have."""
    return UsageError(f"backend {name} has no option '{option}'{nearest(option, OPTIONS[name])}")


def option_not_set(full_key: str, option: str) -> UsageError:
    """The error for ``backends.NAME.options.OPTION`` that nothing has set, so that Hydra takes it with ``+`` only."""
    name = full_key.rpartition(".options.")[0].rpartition(".")[2]
    if name in OPTIONS and option not in OPTIONS[name]:
        return no_such_option(name, option)
    return UsageError(f"{full_key} is not set yet; add it with +{full_key}=VALUE")
