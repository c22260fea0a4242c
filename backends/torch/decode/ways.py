"""The implementations of the decode job on torch devices, by name."""

from functools import partial

from backends.torch.decode import library, naive, own, packages
from backends.torch.decode.way import Way

WAYS: dict[str, Way] = {
    "naive": naive.WAY,
    **{name: library.way(name) for name in library.NAMES},
    packages.NAME: packages.WAY,
    **{name: Way(partial(own.refuses, name), partial(own.make, name)) for name in own.NAMES},
}
