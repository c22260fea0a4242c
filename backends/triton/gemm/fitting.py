"""The first configuration of a table that fits a device, and why others do not."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from triton.errors import TritonError

from backends.triton.gemm.made import Made
from backends.triton.gemm.tuning import Refused
from backends.triton.version import triton_version
from suite.reason import one_line


def told_by(error: Exception) -> str:
    """The last line of what a compiler or a driver said; the error's name where it said nothing."""
    return one_line((str(error).strip() or type(error).__name__).splitlines()[-1])


def refuse_spills(facts: Mapping[str, Any], spared_words: int = 0) -> None:
    """Raises ``Refused`` for a kernel that spills registers: what it moves through memory is not what is measured.

    ``spared_words`` are those of a kernel whose spills are known to lie around its loop.
    """
    if facts["spilled_words"] > spared_words:
        raise Refused(f"spills {facts['spilled_words']} words of each thread's registers")


def first_fitting(choices: Sequence[Any], make: Callable[[Any], Made]) -> tuple[Any, Made]:
    """The first configuration that fits the device and spills nothing, made ready.

    Raises ``NotImplementedError`` where none does, and torch's own error where memory gives out: no smaller tile would help the
    case that has no room.
    """
    passed_over: dict[str, str] = {}
    for config in choices:
        try:
            made = make(config)
        except torch.OutOfMemoryError:
            raise
        except (TritonError, RuntimeError, Refused) as error:  # nothing was launched
            passed_over[config.label] = told_by(error)
            continue
        more = {"passed_over": passed_over} if passed_over else {}
        return config, made.knowing({"chosen_by": "the first of a table that fits", **more})
    tried = "; ".join(f"{label}: {why}" for label, why in passed_over.items())
    raise NotImplementedError(
        f"none of {len(passed_over)} configurations of this kernel fits this device with Triton {triton_version()}"
        f" ({tried}); take another implementation, or another version of Triton"
    )
