"""Which ways to cut attention are tried, the first being the default.

Tables by what compiles without spilling registers (tests/backends/triton/attention/test_choices.py), those of Hopper also by
what was fastest on an H200 (tests/peers/attention_kernels.py).
"""

from collections.abc import Sequence

from backends.triton.attention.config import BackwardConfig, Config, HopperBackwardConfig, HopperConfig
from backends.triton.attention.problem import Problem
from backends.triton.gemm.device import Device

Choice = Config | HopperConfig | BackwardConfig | HopperBackwardConfig

HOPPER = "90"
SPARED_OF_FORWARD = 32
WIDE = 128  # columns of a head: more of them leave room for smaller blocks only


def choices_of_forward(problem: Problem, device: Device) -> Sequence[Config]:
    """Of the portable kernel."""
    if device.is_amd:
        return _AMD_WIDE if problem.qk_dim > WIDE else _AMD
    if problem.qk_dim > WIDE:
        return _WIDE
    if device.architecture != HOPPER:
        return _NARROW
    return list(dict.fromkeys([*(_HOPPER_8_BITS if problem.format == "fp8_e4m3" else _HOPPER), *_NARROW]))


_HOPPER = (Config(128, 64, 4, 2), Config(64, 64, 4, 3))
_HOPPER_8_BITS = (Config(128, 128, 8, 3),)
_NARROW = (
    Config(128, 64, 8, 2),
    Config(128, 128, 8, 2),
    Config(128, 64, 8, 3),
    Config(128, 64, 4, 2),
    Config(64, 64, 4, 2),
    Config(128, 32, 8, 2),
    Config(64, 32, 4, 2),
)
_WIDE = (
    Config(128, 64, 8, 2),
    Config(64, 64, 4, 2),
    Config(128, 32, 8, 2),
    Config(128, 32, 8, 3),
    Config(64, 32, 4, 2),
    Config(32, 32, 4, 1),
)
_AMD = (Config(128, 64, 4, 1), Config(64, 64, 4, 1), Config(128, 32, 4, 1), Config(64, 32, 4, 1), Config(128, 64, 8, 1))
_AMD_WIDE = (Config(64, 32, 4, 1), Config(64, 64, 4, 1), Config(32, 32, 4, 1))


def spared_words(problem: Problem, device: Device, config: Config | HopperConfig) -> int:
    """How many words a thread of a forward kernel may spill.

    With a causal mask the fastest on Hopper spills addresses, before and behind the loop of whole blocks
    (tests/backends/triton/attention/test_compiled.py).
    """
    is_causal = problem.mask.first is None and problem.mask.last is not None
    return SPARED_OF_FORWARD if device.architecture == HOPPER and is_causal and config == _HOPPER[0] else 0


def hopper_choices(problem: Problem) -> Sequence[HopperConfig]:
    """Of the kernel for Hopper."""
    if problem.qk_dim > WIDE:
        return [HopperConfig(block=64, own_output=False)]
    # The last is for windows, whose two bounds take the registers that the others have.
    return [HopperConfig(), HopperConfig(own_output=False), HopperConfig(overlapped=False, own_output=False)]


def hopper_backward_choices() -> Sequence[HopperBackwardConfig]:
    """Of the kernel of gradients for Hopper."""
    return [HopperBackwardConfig()]


def choices_of_keys(problem: Problem, device: Device) -> Sequence[BackwardConfig]:
    """Of the gradients of keys and values."""
    if device.is_amd:
        return _AMD_KEYS
    if problem.qk_dim > WIDE:
        return _KEYS_WIDE
    return sorted(_KEYS, key=lambda each: each != _HOPPER_KEYS) if device.architecture == HOPPER else _KEYS


_HOPPER_KEYS = BackwardConfig(64, 64, 4, 2)
_KEYS = (
    BackwardConfig(64, 64, 8, 2),
    BackwardConfig(64, 128, 8, 2),
    BackwardConfig(64, 64, 4, 2),
    BackwardConfig(32, 128, 8, 2),
    BackwardConfig(32, 64, 8, 2),
    BackwardConfig(32, 64, 4, 2),
    BackwardConfig(16, 64, 4, 1),
    # With a causal mask the first that sm_120 has registers for.
    BackwardConfig(32, 32, 8, 1),
)
_KEYS_WIDE = (
    BackwardConfig(32, 64, 8, 2),
    # Of heads of 256 whose keys have a mask, sums of two times 256 columns take half of the registers.
    BackwardConfig(16, 64, 8, 2),
    BackwardConfig(32, 64, 8, 1),
    BackwardConfig(16, 64, 8, 1),
    BackwardConfig(16, 64, 4, 1),
    BackwardConfig(16, 32, 4, 1),
    BackwardConfig(32, 16, 8, 1),
)
_AMD_KEYS = (
    BackwardConfig(32, 64, 4, 1),
    BackwardConfig(32, 32, 4, 1),
    BackwardConfig(16, 64, 4, 1),
    BackwardConfig(16, 32, 4, 1),
)


def choices_of_queries(problem: Problem, device: Device) -> Sequence[BackwardConfig]:
    """Of the gradients of queries."""
    if device.is_amd:
        return _AMD_QUERIES
    return _QUERIES_WIDE if problem.qk_dim > WIDE else _QUERIES


_QUERIES = (
    BackwardConfig(64, 64, 4, 2),
    BackwardConfig(128, 64, 8, 2),
    BackwardConfig(64, 128, 8, 2),
    BackwardConfig(64, 32, 4, 2),
    BackwardConfig(32, 32, 4, 2),
)
_QUERIES_WIDE = (
    BackwardConfig(64, 32, 4, 2),
    BackwardConfig(128, 64, 8, 2),
    BackwardConfig(64, 64, 4, 2),
    BackwardConfig(32, 32, 4, 1),
    BackwardConfig(16, 16, 4, 1),
)
_AMD_QUERIES = (BackwardConfig(64, 32, 4, 1), BackwardConfig(32, 32, 4, 1), BackwardConfig(64, 64, 4, 1))
