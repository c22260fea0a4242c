"""What an exception raised by torch, a BLAS library or Triton means for the case and for the process.

A lost CUDA context answers every later call with the same error, so the process cannot go on; an allocation that
failed or an operation that a library does not offer leaves everything usable.
"""

from typing import NamedTuple

from suite.backend import Failure
from suite.outcome import Outcome
from suite.reason import named, said


class Rule(NamedTuple):
    """An error whose text holds one of ``phrases`` (lower case) means ``outcome``."""

    phrases: tuple[str, ...]
    outcome: Outcome
    fatal: bool


# In this order: the first rule that applies decides.
RULES = (
    Rule(
        (
            "out of memory",
            "resource_exhausted",
            "can't allocate memory",
            "cannot allocate memory",
            "not enough memory: you tried to allocate",
            "cublas_status_alloc_failed",
            "hipblas_status_alloc_failed",
        ),
        Outcome.OUT_OF_MEMORY,
        fatal=False,
    ),
    Rule(
        (
            "no kernel image is available",
            "invalid device function",
            "cublas_status_not_supported",
            "cublas_status_arch_mismatch",
            "hipblas_status_not_supported",
            "hipblas_status_arch_mismatch",
            "not implemented",
            "not supported",
            "unsupported",
            "only supported",
            "requires compute capability",
            "out of resource",
            "divisible by 16",
            "needs to be greater than 16",
            "a multiple of 8",
        ),
        Outcome.UNSUPPORTED,
        fatal=False,
    ),
    # Refused before anything was launched: the context stays usable.
    Rule(
        ("invalid configuration argument", "cuda error: invalid argument", "hip error: invalid argument", "captur"),
        Outcome.ERROR,
        fatal=False,
    ),
    Rule(
        (
            "cuda error",
            "cuda_error_",
            "in an error state",
            "hip error",
            "device-side assert",
            "illegal memory access",
            "unspecified launch failure",
            "misaligned address",
            "cublas_status_execution_failed",
            "cublas_status_internal_error",
            "hipblas_status_execution_failed",
            "hipblas_status_internal_error",
        ),
        Outcome.CRASHED,
        fatal=True,
    ),
)

_OUTCOME_OF_TYPE = {
    "OutOfMemoryError": (Outcome.OUT_OF_MEMORY, False),
    "MemoryError": (Outcome.OUT_OF_MEMORY, False),
    "NotImplementedError": (Outcome.UNSUPPORTED, False),
    "OutOfResources": (Outcome.UNSUPPORTED, False),
    "NotInForce": (Outcome.NOT_HONOURED, False),
}


class Classified(Exception):
    """An error whose meaning was found where it happened: in another process, or by a check of its own."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def classify(error: BaseException) -> Failure:
    """Give the outcome of an exception, a one-line reason, and whether this process can go on."""
    if isinstance(error, Classified):
        return error.failure
    text = said(error).lower()  # what follows is advice and stack, which may hold any phrase
    for kind in type(error).__mro__:
        if kind.__name__ in _OUTCOME_OF_TYPE:
            outcome, fatal = _OUTCOME_OF_TYPE[kind.__name__]
            return Failure(outcome, named(error), fatal)
    if isinstance(error, RuntimeError | ValueError):
        for rule in RULES:
            if any(phrase in text for phrase in rule.phrases):
                return Failure(rule.outcome, named(error), rule.fatal)
    if any(kind.__name__ == "AcceleratorError" for kind in type(error).__mro__):
        return Failure(Outcome.CRASHED, named(error), fatal=True)
    return Failure(Outcome.ERROR, named(error), fatal=False)
