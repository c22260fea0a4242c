"""The implementations of the attention job on torch devices, by name."""

from functools import partial

from backends.torch.attention import flex, naive, own, packages, sdpa
from backends.torch.attention.way import Way

WAYS: dict[str, Way] = {
    "naive": naive.WAY,
    **{name: sdpa.way(name) for name in sdpa.BACKENDS},
    "flex": flex.WAY,
    **{name: packages.way(name) for name in packages.PACKAGES},
    **{name: Way(partial(own.refuses, name), partial(own.make, name)) for name in own.NAMES},
}
