"""The implementations of a whole step on torch devices, by name."""

from functools import partial

from backends.torch import way
from backends.torch.decode_step import library, own
from backends.torch.decode_step.way import Way

WAYS: dict[str, Way] = {
    "library": Way(way.Way(library.refuses, library.make), paged=False),
    **{name: Way(way.Way(partial(own.refuses, name), partial(own.make, name)), paged=True) for name in own.NAMES},
}
