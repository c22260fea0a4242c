"""What bounds TunableOp's trials of one product, and where it keeps what they found: in memory unless a user names a file."""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from suite.errors import UsageError

IN_MEMORY = "in memory"
_file = os.devnull


class Bounds(NamedTuple):
    """Trials of a kernel end after so many milliseconds or launches, whichever comes first; ``None`` leaves it to torch.

    ``file`` is read before the first trial and what they find is added to it; empty for none.
    """

    trial_ms: int | None = None
    trials: int | None = None
    file: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Bounds":
        """As a backend's options give them."""
        return cls(options["tunable_op_trial_ms"], options["tunable_op_trials"], options["tunable_op_file"])


def apply(bounds: Bounds, backend: str, is_built: bool) -> None:
    """Put bounds in force for this process; ``UsageError`` where torch keeps to others."""
    global _file
    _file = bounds.file or os.devnull
    given = {name: value for name, value in bounds._asdict().items() if value}
    if given and not is_built:
        named = ", ".join(f"backends.{backend}.options.tunable_op_{name}={value}" for name, value in given.items())
        raise UsageError(f"this build of torch has no TunableOp for {named}; leave it out")
    tunable = torch.cuda.tunable
    if bounds.trial_ms:
        tunable.set_max_tuning_duration(bounds.trial_ms)
        _confirm(backend, "trial_ms", bounds.trial_ms, tunable.get_max_tuning_duration, "MAX_TUNING_DURATION_MS")
    if bounds.trials:
        tunable.set_max_tuning_iterations(bounds.trials)
        _confirm(backend, "trials", bounds.trials, tunable.get_max_tuning_iterations, "MAX_TUNING_ITERATIONS")


def results_file() -> str:
    """The file that TunableOp is given."""
    return _file


def results_words() -> str:
    """Where results are kept, for the environment of a run: a file by its name and by what it held when the run began."""
    if _file == os.devnull:
        return IN_MEMORY
    path = Path(_file)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return f"{path.name}, new"
    return f"{path.name}, {len(content)} B, sha256 {hashlib.sha256(content).hexdigest()[:16]}"


def _confirm(backend: str, name: str, asked: int, read: Callable[[], int], variable: str) -> None:
    """A variable of the environment has precedence in torch."""
    if (found := int(read())) != asked:
        named = f"PYTORCH_TUNABLEOP_{variable}"
        why = f"{named}={os.environ[named]} is set" if named in os.environ else "this version of torch does not take it"
        raise UsageError(
            f"backends.{backend}.options.tunable_op_{name}={asked} was given and TunableOp keeps to {found}: {why}; "
            "unset it, or leave the option out"
        )
