"""Results that launches return in buffers of a library's own.

They go into the outputs only when they are looked at, and in a captured graph behind the launches that are timed: copying them
is not what is measured.  Until then they take the memory of one more output for each input set.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from backends.torch.kernel import InputSet, TorchKernel
from suite.backend import Observed, Probe


class Returned:
    """What the latest launch of each set returned; ``results`` are the tensors that it belongs in, set by set.

    A launch returns a tensor for each of its set's results, or the tensor where there is one.
    """

    def __init__(self, results: Sequence[Sequence[torch.Tensor]]) -> None:
        self._results = tuple(tuple(each) for each in results)
        self._latest: dict[int, Any] = {}

    def keep(self, index: int, launch: Callable[[], Any]) -> None:
        """Launch, and keep what it returns."""
        self._latest.pop(index, None)  # its memory is free for the next
        self._latest[index] = launch()

    def values(self) -> Collection[Any]:
        """As launches returned it."""
        return self._latest.values()

    def hand_over(self, sets: Collection[int]) -> None:
        """Copy what the latest launches of these sets returned where it belongs, and forget it."""
        for index in sets:
            returned = self._latest.pop(index, None)
            if returned is not None:
                given = (returned,) if isinstance(returned, torch.Tensor) else returned
                for result, each in zip(self._results[index], given, strict=True):
                    result.copy_(each)

    def clear(self) -> None:
        """Forget all of it."""
        self._latest.clear()


class HandingKernel(TorchKernel):
    """Where it ``hands_over``, launches return what ``results`` has for their set (``Returned``); else they write it."""

    def __init__(
        self, input_sets: Sequence[InputSet], results: Sequence[Sequence[torch.Tensor]], hands_over: bool, *arguments: Any
    ) -> None:
        self.hands_over, self._returned = hands_over, Returned(results)
        if hands_over:
            keep = self._returned.keep
            input_sets = [each._replace(launch=partial(keep, index, each.launch)) for index, each in enumerate(input_sets)]
        super().__init__(input_sets, *arguments)

    def poison(self) -> None:
        self._returned.clear()
        super().poison()

    def observe(self, probe: Probe) -> Observed:
        self.hand_over([probe.set_index])
        return super().observe(probe)

    def hand_over(self, sets: Collection[int]) -> None:
        """See ``Returned``."""
        self._returned.hand_over(sets)

    def describe(self) -> Mapping[str, Any]:
        of_results = {"results": "in the library's own buffers"} if self.hands_over else {}
        return {**of_results, **super().describe()}

    def close(self) -> None:
        super().close()
        self._returned = Returned(())
