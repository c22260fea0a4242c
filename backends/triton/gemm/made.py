"""Launches that are ready, and what is known of them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from backends.triton.gemm.tuning import Found

COMPILER_CACHE = "Triton's own, on disk: it shortens compile_s and tuning_s, and changes no choice"


class Made(NamedTuple):
    """A launch for each input set, and what is known of the kernel that they launch."""

    launches: tuple[Callable[[], Any], ...]
    facts: Mapping[str, Any]

    def knowing(self, more: Mapping[str, Any]) -> "Made":
        return Made(self.launches, {**self.facts, **more})


def tuning_facts(found: Found[Any]) -> dict[str, Any]:
    """What was tried and what it took; times are of one launch, the fastest first."""
    ranked = sorted(found.times_s.items(), key=lambda each: each[1])
    return {
        "chosen_by": "trial",
        "tuning_s": found.seconds,
        "tried": [{"configuration": config.label, "time_s": time_s} for config, time_s in ranked],
        "refused": {config.label: why for config, why in found.refused.items()},
        "untried": found.untried,
    }
